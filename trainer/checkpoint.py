"""Checkpoints, as they are read back: whole and unchanged, under any number of ranks.

`torch.distributed.checkpoint` writes the files, and knows neither whether it finished nor
whether a byte has changed since. So a manifest with the size and sha256 of every file is
written last: a folder without one is wreckage, and what does not match it is not loaded.

A checkpoint holds the model, the optimiser, the state of every rank's random generators, and
the counters. The learning rate is not in it: it is a function of the step. Of generators there
are torch's only: the trainer draws from no other (the order of the text comes from a seed).
`saving` writes them.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from bitwatch.plan import resume
from trainer import agreement, parallel
from trainer.data.state import LoaderState
from trainer.failures import Failed, sentence
from trainer.model import BitTransformerLM
from trainer.parallel import Place

MANIFEST = "manifest.json"
DAMAGED = "manifest.damaged.json"  # a manifest that its files did not match


class File(msgspec.Struct):
    """What a file of a checkpoint was when it had been written."""

    bytes: int
    sha256: str


class Counters(msgspec.Struct):
    """How far the training is. tokens: bits trained on; text: where in it; skipped: steps left
    out so far; outliers: see `health.Outliers.kept`."""

    step: int = 0
    tokens: int = 0
    text: LoaderState = msgspec.field(default_factory=LoaderState)
    skipped: int = 0
    outliers: list[list[float]] = []


class Manifest(msgspec.Struct, kw_only=True):
    """What a whole checkpoint is. `seal` is the sha256 of everything else in the manifest."""

    counters: Counters
    ranks: int
    torch: str
    created: float
    config: dict[str, Any]
    files: dict[str, File]
    seal: str = ""


def load(
    folder: Path, place: Place, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Counters | None, list[str]]:
    """Puts the newest checkpoint that is whole and unchanged into model, optimiser and this
    rank's random generators.

    Returns its counters, None when there is none, and a sentence for each newer one that
    was passed over. The number of ranks may differ from that of the save: the generators of a
    rank that did not exist stay as they are. All ranks must call it.
    """
    passed_over: list[str] = []
    for path in reversed(whole(folder)):
        # Ranks share the reading; every rank then knows what any of them has found.
        # What cannot be read just now is no damage: it fails, and nothing is condemned.
        wrong = "".join(everyone(place, path, lambda: _compare(path, place.rank, place.ranks)))  # noqa: B023
        if wrong:
            passed_over.append(f"{path.name} is damaged ({wrong.strip()}) and was passed over")
            if place.rank == 0:
                _condemn(path)
            continue
        manifest = manifest_of(path)
        _refuse_another_model(path, manifest, model)
        if manifest.counters.step:  # else nothing was learned, and all is as it begins
            everyone(place, path, lambda: _fill(path, place, model, optimizer))  # noqa: B023
        return manifest.counters, passed_over
    return None, passed_over


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer, place: Place) -> dict[str, Any]:
    """Everything of this rank that the files hold. Tensors are the living ones, not copies."""
    model_state, optimizer_state = get_state_dict(model, optimizer)
    mine = {str(place.rank): parallel.random_state(place.device)}
    return {"model": model_state, "optimizer": optimizer_state, "random": mine}


def whole(folder: Path) -> list[Path]:
    """The checkpoints in `folder` that were written to their end, oldest step first."""
    return [path for path in every(folder) if (path / MANIFEST).exists()]


def every(folder: Path) -> list[Path]:
    """Whole ones and wreckage, oldest step first."""
    try:
        found = [path for path in folder.iterdir() if re.fullmatch(r"step-\d+", path.name)]
    except OSError:
        return []
    return sorted(found, key=step_of)


def verified(path: Path) -> Manifest:
    """The manifest of a checkpoint whose every file matches it, for a reader without ranks.
    Raises Failed with what does not; nothing is changed."""
    if wrong := _compare(path, rank=0, ranks=1):
        raise Failed(wrong.strip())
    return manifest_of(path)


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def hash_of(path: Path) -> File:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return File(bytes=file.tell(), sha256=digest)


def manifest_of(path: Path) -> Manifest:
    """Raises OSError, or MsgspecError where it does not say what it said when it was written."""
    said: dict[str, Any] = msgspec.json.decode((path / MANIFEST).read_bytes(), type=dict)
    if "seal" in said and said["seal"] != seal_of(said):
        raise msgspec.ValidationError("has changed")
    return msgspec.convert(said, Manifest)


def seal_of(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "seal"}
    return hashlib.sha256(msgspec.json.encode(rest)).hexdigest()


def everyone(place: Place, path: Path, act: Callable[[], Any]) -> list[Any]:
    """Does `act` on every rank and returns what each returned; Failed on all if one failed.
    It speaks on the storage group: one thread of a rank at a time."""
    result, cause = None, ""
    try:
        result = act()
    except (Exception, CheckpointException) as error:  # torch's own is no Exception
        cause = why(error, place.rank)
    said = agreement.gather((result, cause), place.storage)
    causes = [cause for _, cause in said if cause]
    if causes:
        raise Failed(f"checkpoint: {path}: {causes[0]}{_room_left(path)}")
    return [result for result, _ in said]


# ---------------------------------------------------------------------------------------
# Parts


def _fill(path: Path, place: Place, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    state = state_of(model, optimizer, place)
    kept = dcp.FileSystemReader(path).read_metadata().state_dict_metadata
    # Only what is asked for is read, and what is not there cannot be asked for.
    state["random"] = {
        rank: {name: value for name, value in own.items() if f"random.{rank}.{name}" in kept}
        for rank, own in state["random"].items()
    }
    dcp.load(state, checkpoint_id=path, process_group=place.storage)
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    parallel.set_random_state(place.device, state["random"][str(place.rank)])


def _refuse_another_model(path: Path, manifest: Manifest, model: nn.Module) -> None:
    """Tensors of another shape would be left out or taken for others without a word."""
    assert isinstance(model, BitTransformerLM)
    if changed := resume.model_differences(manifest.config.get("model", {}), model.shape):
        raise Failed(f"resume: {path.name} is of another model: {', '.join(changed)}")


def _condemn(path: Path) -> None:
    """From now on it counts as wreckage: no save of its step is spared because of it, and it
    never stands in the way of a good one when old ones are pruned."""
    with contextlib.suppress(OSError):
        (path / MANIFEST).rename(path / DAMAGED)


def _compare(path: Path, rank: int, ranks: int) -> str:
    """Empty, or what does not match the manifest in this rank's share of the files."""
    try:
        manifest = manifest_of(path)
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        return f"{MANIFEST}: {sentence(error)} "
    for name in sorted(manifest.files)[rank::ranks]:
        try:
            if hash_of(path / name) != manifest.files[name]:
                return f"{name} has changed "
        except FileNotFoundError as error:
            return f"{name}: {error.strerror} "
    return ""


def why(error: BaseException, rank: int = 0) -> str:
    """Which rank met what: torch raises the same on all ranks, with the failures of some."""
    if isinstance(error, CheckpointException) and error.failures:
        rank, (error, _) = min(error.failures.items(), key=lambda failure: failure[0])
    return f"rank {rank}: {sentence(error)}"


def _room_left(path: Path) -> str:
    for folder in path.parents:
        try:
            return f" ({shutil.disk_usage(folder).free >> 20} MiB free)"
        except OSError:
            continue
    return ""
