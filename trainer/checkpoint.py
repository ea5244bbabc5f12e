"""Checkpoints: written whole or not at all, and read back under any number of ranks.

`torch.distributed.checkpoint` writes the files, and knows neither whether it finished nor
whether a byte has changed since. So a manifest with the size and sha256 of every file is
written last: a folder without one is wreckage, and what does not match it is not loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from bitwatch import config as configuration
from bitwatch.record import events
from bitwatch.record.rundir import write_whole
from trainer import agreement
from trainer.data.state import LoaderState
from trainer.failures import Failed, sentence
from trainer.parallel import Place

MANIFEST = "manifest.json"
DAMAGED = "manifest.damaged.json"  # a manifest that its files did not match


class File(msgspec.Struct):
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
    counters: Counters
    ranks: int
    torch: str
    created: float
    config: dict[str, Any]
    files: dict[str, File]


def save(
    folder: Path,
    place: Place,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    counters: Counters,
    config: configuration.Config,
) -> events.Checkpoint:
    """Writes `folder`/step-<n> and then removes older ones beyond checkpoint.keep.

    A whole checkpoint of that step stays as it is. All ranks must call it; raises Failed on
    all of them when one cannot write.
    """
    began = time.monotonic()
    path = folder / f"step-{counters.step}"
    if not (path / MANIFEST).exists():
        _everyone(place, path, lambda: _make_room(path) if place.rank == 0 else None)
        try:
            _everyone(place, path, lambda: _save_tensors(path, place, model, optimizer))
            hashes = _everyone(place, path, lambda: _hash_own(path, place.rank))
            files = {name: file for part in hashes for name, file in part.items()}
            manifest = Manifest(
                counters=counters,
                ranks=place.ranks,
                torch=str(torch.__version__),
                created=time.time(),
                config=msgspec.to_builtins(config),
                files=files,
            )
            _everyone(place, path, lambda: _write(manifest, path) if place.rank == 0 else None)
        except Failed:
            if place.rank == 0:  # half a checkpoint is of no use, and its space may be
                shutil.rmtree(path, ignore_errors=True)
            raise
    if place.rank == 0:
        prune(folder, config.checkpoint.keep)
    return events.Checkpoint(
        step=counters.step,
        path=str(path),
        seconds=time.monotonic() - began,
        bytes=sum(file.bytes for file in _manifest(path).files.values()),
    )


def load(
    folder: Path, place: Place, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Counters | None, list[str]]:
    """Puts the newest checkpoint that is whole and unchanged into model and optimiser.

    Returns its counters, None when there is none, and a sentence for each newer one that
    was passed over. The number of ranks may differ from that of the save. All ranks must
    call it.
    """
    passed_over: list[str] = []
    for path in reversed(whole(folder)):
        # Ranks share the reading; every rank then knows what any of them has found.
        wrong = "".join(_everyone(place, path, lambda: _compare(path, place.rank, place.ranks)))  # noqa: B023
        if wrong:
            passed_over.append(f"{path.name} is damaged ({wrong.strip()}) and was passed over")
            if place.rank == 0:
                _condemn(path)
            continue
        model_state, optimizer_state = get_state_dict(model, optimizer)
        state: dict[str, Any] = {"model": model_state, "optimizer": optimizer_state}
        dcp.load(state, checkpoint_id=path, process_group=place.storage)
        set_state_dict(
            model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        return _manifest(path).counters, passed_over
    return None, passed_over


def _condemn(path: Path) -> None:
    """From now on it counts as wreckage: no save of its step is spared because of it, and it
    never stands in the way of a good one when old ones are pruned."""
    with contextlib.suppress(OSError):
        (path / MANIFEST).rename(path / DAMAGED)


def whole(folder: Path) -> list[Path]:
    """The checkpoints in `folder` that were written to their end, oldest step first."""
    return [path for path in _steps(folder) if (path / MANIFEST).exists()]


def verified(path: Path) -> Manifest:
    """The manifest of a checkpoint whose every file matches it, for a reader without ranks.
    Raises Failed with what does not; nothing is changed."""
    if wrong := _compare(path, rank=0, ranks=1):
        raise Failed(wrong.strip())
    return _manifest(path)


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def prune(folder: Path, keep: int) -> None:
    """Removes all but the newest `keep` whole checkpoints, and wreckage older than those."""
    kept = whole(folder)[-keep:]
    for path in _steps(folder):
        if kept and path not in kept and step_of(path) < step_of(kept[-1]):
            # The manifest goes first: what a kill leaves of the rest is then no checkpoint.
            (path / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)


# ---------------------------------------------------------------------------------------
# Parts of a save


def _everyone(place: Place, path: Path, act: Callable[[], Any]) -> list[Any]:
    """Does `act` on every rank and returns what each returned; Failed on all if one failed."""
    result, cause = None, ""
    try:
        result = act()
    except (Exception, CheckpointException) as error:  # torch's own is no Exception
        cause = why(error)
    said = agreement.gather((result, cause), place.storage)
    for rank, (_, cause) in enumerate(said):
        if cause:
            raise Failed(f"checkpoint: {path}: rank {rank}: {cause}{_room_left(path)}")
    return [result for result, _ in said]


def why(error: BaseException) -> str:
    """A sentence for what torch's checkpoints raise: the first failure inside it."""
    if isinstance(error, CheckpointException) and error.failures:
        inner = next(iter(error.failures.values()))[0]
        return sentence(inner)
    return sentence(error)


def _room_left(path: Path) -> str:
    for folder in path.parents:
        try:
            return f" ({shutil.disk_usage(folder).free >> 20} MiB free)"
        except OSError:
            continue
    return ""


def _make_room(path: Path) -> None:
    """An empty folder; wreckage of an earlier try goes."""
    if path.exists():
        shutil.rmtree(path)
    path.mkdir(parents=True, mode=0o700)


def _save_tensors(
    path: Path, place: Place, model: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    model_state, optimizer_state = get_state_dict(model, optimizer)
    dcp.save(
        {"model": model_state, "optimizer": optimizer_state},
        checkpoint_id=path,
        process_group=place.storage,
    )


def _hash_own(path: Path, rank: int) -> dict[str, File]:
    """Size and hash of each file this rank wrote; rank 0 wrote the metadata as well."""
    names = [file.name for file in path.glob(f"__{rank}_*")]
    if rank == 0:
        names.append(".metadata")
    return {name: hash_file(path / name) for name in names}


def hash_file(path: Path) -> File:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return File(bytes=file.tell(), sha256=digest)


def _write(manifest: Manifest, path: Path) -> None:
    write_whole(path / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))


# ---------------------------------------------------------------------------------------
# Reading


def _manifest(path: Path) -> Manifest:
    return msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)


def _compare(path: Path, rank: int, ranks: int) -> str:
    """Empty, or what does not match the manifest in this rank's share of the files."""
    try:
        manifest = _manifest(path)
    except (OSError, msgspec.MsgspecError) as error:
        return f"{MANIFEST}: {sentence(error)} "
    for name in sorted(manifest.files)[rank::ranks]:
        try:
            if hash_file(path / name) != manifest.files[name]:
                return f"{name} has changed "
        except OSError as error:
            return f"{name}: {error.strerror} "
    return ""


def _steps(folder: Path) -> list[Path]:
    try:
        found = [path for path in folder.iterdir() if re.fullmatch(r"step-\d+", path.name)]
    except OSError:
        return []
    return sorted(found, key=step_of)
