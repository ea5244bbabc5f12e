"""Every alert that bitwatch can raise, all at once, as a screen would show them."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.view import View
from tests.tui import views

ERRORS = {
    "data-unusable": "data.source: train-00001.parquet has no rows, which breaks the stream.",
    "devices-unknown": "The GPUs could not be looked at: the driver does not answer.",
    "disk-low": "less than 16 GiB left on the disk of the checkpoints; the next one needs 14.5 GiB",
    "does-not-fit": "This needs about 26.1 GiB of each GPU, and 22.5 are there (NVIDIA L4).",
    "ecc-errors-1": "GPU 1: an uncorrected memory error since the attempt began",
    "gpu-lost-2": "GPU 2 has fallen off the bus",
    "inspection-failed": "The model could not be built to be looked at: no module named 'torch'.",
    "leftovers": "12 processes of ended attempt 1 are still there",
    "loss-not-finite": "the loss is not finite (nan): step 12,404, at least 10 steps in all",
    "model-unusable": "model.heads: 12 does not divide model.d_model, 1,000.",
    "more-ranks-than-gpus": "8 ranks need 8 GPUs, and this machine has 4.",
    "parameters-differ": "The model has 793,602 parameters, not the 800,000 that are asked for.",
    "rank-died": "rank 2 was killed by SIGKILL; the others are ended with it",
    "rank-without-data": "There is no text for rank 3: 3 rows in 1 shard for 4 ranks.",
    "record-unreadable": "the folder of this run has been deleted or moved; its last picture stays",
    "relaunch-failed": "attempt 2 did not get as far as a step: out of memory",
    "reshard-needs-parquet": 'data.sharding = "reshard" needs parquet, and austen has text files.',
    "worker-died": "worker 1 of rank 0 was killed by SIGKILL; its rank cannot go on without it",
}
WARNINGS = {
    "count-is-shard": "198,401 parameters is no model but one rank's share of attempt 1.",
    "data-starved": "rank 3 waits for about 40 % of each step or more for its text",
    "data-unknown": "Nobody has looked at the data: shards, rows and steps are not known.",
    "every-rank-reads-everything": "Every rank reads everything: 2 shards for 4 ranks.",
    "gpu-held": "other processes hold memory of GPU 3",
    "gpu-throttled-3": "GPU 3 is slowed down by heat, and the other ranks wait for it",
    "grace-too-short": "a stop can take 94 s (a checkpoint took 41), and the launch allowed it 30 s",
    "idle-reader": "8 of 16 readers have nothing to read: rank 0 worker 2, rank 0 worker 3, ...",
    "index-too-large": 'data.sharding = "indexed" may have no room: 514 GiB for 412 GiB free.',
    "left-of-watched": "5 processes of this training live on after its launcher",
    "log-unreadable": "the log train.log cannot be read: Permission denied",
    "loss-spike": "the loss has jumped from 0.0912 to 0.231 at step 3,120",
    "nvml-silent": "NVML does not answer: nothing is known of the GPUs now",
    "process-count": "1,204 processes of this run, more than the 1,000 of watch.max_processes",
    "resume-lost": "the place in the text was not saved: epoch 3 begins anew",
    "row-groups-unknown": "The row groups of the files could not all be looked at in time.",
    "session-will-kill": "the end of your session may end or break this run: no lingering",
    "shm-low": "/dev/shm is almost full: workers die with a bus error once it is full",
    "stalled": "no step since 07:14:02: rank 2 waits in DataLoader queue.get",
    "straggler": "rank 3 keeps the others waiting: its own part of a step takes longer",
    "supervisor-gone": "supervisor gone; the ranks go on, and nothing watches or records them",
    "telemetry-stale": "nothing has been measured since 07:14:02",
    "uneven-batches": "epoch 2 left 12 % of rank 1's text unread (about 1,204 sequences)",
    "workers-exceed-shards": "8 of 16 readers idle: 2 shards for 4 ranks x 4 workers",
}
NOTES = {
    "newer-version": "made by a newer version of bitwatch: what this version understands is shown",
    "target-lowered": "The target is 793,602 parameters, 12 % fewer than those of attempt 1.",
}


def view() -> View:
    known = (("error", ERRORS), ("warning", WARNINGS), ("info", NOTES))
    alerts = [
        events.Alert(id=name, severity=severity, text=text, attempt=2, t=views.NOW - 60.0 * at)
        for severity, some in known
        for at, (name, text) in enumerate(some.items(), start=1)
    ]  # fmt: skip
    return views.on_l4s(alerts=alerts, past_alerts=alerts)
