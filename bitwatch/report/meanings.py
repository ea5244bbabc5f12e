"""What an alert that was recorded means and what it does not, for whoever reads of it later."""

from __future__ import annotations

import re

OF_ONE = re.compile(r"-\d+$")
WHY = {
    "workers-exceed-shards": "There are more readers than shards, so some of them have nothing to "
    "read. By itself that costs reading speed; it does not hang a run, and it says nothing of "
    "why one hung.",
    "every-rank-reads-everything": "The shards cannot be dealt out evenly, so each rank reads and "
    "decodes all rows and keeps its part. It costs time; no text is trained on twice.",
    "uneven-batches": "Ranks have different numbers of batches. bitwatch's trainer ends an epoch "
    "for all of them at the same step; one that does not would hang in a collective here.",
    "rank-without-data": "A rank has nothing to read: the others cannot go on without it.",
    "idle-reader": "By their own accounts, some readers were given nothing to read. The others do "
    "the work, and nothing hangs for that.",
    "parameters-differ": "The model that was trained is not the one that was asked for: its losses "
    "and its checkpoints are those of another model.",
    "target-lowered": "An earlier attempt was to train a larger model. bitwatch never lowers a "
    "target by itself: whoever launched this attempt did.",
    "count-is-shard": "The smaller number is the part of one rank, not a smaller model.",
    "does-not-fit": "By its arithmetic the model needs more memory on each GPU than there is.",
    "stalled": "No step was taken for longer than the configuration allows.",
    "straggler": "The others wait for the slowest rank at every step.",
    "data-starved": "Ranks waited for text. It slows a run, and one reader that never answers "
    "stops all ranks.",
    "loss-not-finite": "From there on the model learns nothing, unless those steps were skipped.",
    "loss-spike": "Single batches can do it, and a learning rate that is too high; by itself it is "
    "no end of a run, and often passes.",
    "disk-low": "A checkpoint that does not fit is not written; the ones before it stay.",
    "telemetry-stale": "What is known of these ranks, or of the GPUs, is of before that time.",
    "gpu-lost": "A rank on it cannot go on, and the others not without it. Class of the cause: "
    "hardware, or its driver.",
    "gpu-throttled": "Its clocks were held down by heat or by the power supply: all ranks wait for "
    "the slowest at every step. Class of the cause: hardware.",
    "ecc-errors": "Memory of the GPU has given wrong bits that it could not mend. Class of the "
    "cause: hardware.",
    "nvml-silent": "The driver did not answer the one who reads the GPUs; the training itself does "
    "not ask it.",
    "rank-died": "The others cannot go on without it, and are ended with it.",
    "worker-died": "What it was to read is gone with it, so its rank ends.",
    "leftovers": "They hold memory, perhaps a GPU, and files of an attempt that is over.",
    "gpu-held": "Memory that somebody else holds is missing where the plan counted on it.",
    "shm-low": "Workers hand blocks over in /dev/shm and die with a bus error once it is full.",
    "session-will-kill": "At the end of the login session the system itself ends the run.",
    "grace-too-short": "A stop would end the ranks before their checkpoint is written.",
    "resume-lost": "What was done since the checkpoint that it went on from was done again, or a "
    "place in the text was not found again.",
    "process-count": "Something starts processes that the plan does not explain.",
    "log-unreadable": "What the training wrote meanwhile is not on record; it does not stop for "
    "that, and its processes were watched on.",
    "relaunch-failed": "The attempt that was asked for was not made, or took no step.",
}
NEXT = {
    "parameters-differ": "Do not go on from its checkpoints; correct the [model] section, or "
    "model.expected_parameters, and start a new run.",
    "leftovers": "bitwatch clean lists them with their proof, and ends those that are ours.",
}


def why(id_: str) -> str:
    """Of an alert about one GPU the id ends with its index."""
    return WHY.get(OF_ONE.sub("", id_), "")


def next_of(id_: str, said: str) -> str:
    """What the alert itself said was meant for a screen while the run lived."""
    return NEXT.get(id_, said)
