"""Saving checkpoints beside the training: written whole or not at all.

At its step every rank copies its tensors to host memory, which is all that the training waits
for. A thread then writes the copy, hashes the files, and learns from the other ranks that
theirs are on the disk too; only then is the manifest written, and only then do older
checkpoints go. A save that fails on one rank fails on all.

While a save is under way its thread alone speaks on the storage group.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import errno
import os
import shutil
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import torch
import torch.distributed.checkpoint as dcp
from torch import nn

from bitwatch import config as configuration
from bitwatch.record import events
from bitwatch.record.rundir import write_whole
from trainer import agreement, checkpoint, parallel
from trainer.checkpoint import MANIFEST, Counters, File, Manifest
from trainer.failures import Failed, sentence
from trainer.parallel import Place


@dataclasses.dataclass
class _Save:
    """One save. `bytes` stays None when that step's checkpoint was whole already."""

    path: Path
    counters: Counters
    began: float
    seconds: float = 0.0
    paused_s: float = 0.0
    bytes: int | None = None
    error: BaseException | None = None
    thread: threading.Thread | None = None


class Saver:
    """Saves one checkpoint at a time into `folder`. Its methods, but for `outcome`, are called
    on all ranks at the same step.

    `trouble` says why a save has failed, as soon as this rank knows; empty while none has.
    """

    def __init__(self, folder: Path, place: Place, config: configuration.Config) -> None:
        self.trouble = ""
        self._folder, self._place, self._config = folder, place, config
        self._stager = parallel.stager(place.device)
        self._save: _Save | None = None  # under way
        self._error: BaseException | None = None
        self._untold: deque[events.Checkpoint] = deque()

    def begin(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, counters: Counters
    ) -> float:
        """Begins to save this moment of the training, once the save before has ended.

        Returns the seconds for which training stood still. With checkpoint.async = false
        it returns when the save has ended. Raises as `wait` does.
        """
        came = time.monotonic()
        self.wait()
        save = _Save(
            path=self._folder / f"step-{counters.step}",
            counters=copy.deepcopy(counters),  # the training counts on in the original
            began=time.monotonic(),
        )
        state = checkpoint.state_of(model, optimizer, self._place)
        if self._config.checkpoint.asynchronous:
            copied = self._stager.stage(state)
            save.thread = threading.Thread(
                target=self._run, args=(save, copied, True), name="checkpoint", daemon=True
            )
            save.thread.start()
            save.paused_s = time.monotonic() - save.began
            self._save = save
        else:
            self._run(save, state, False)
            save.paused_s = save.seconds
            self._save = save
            self.wait()
        return time.monotonic() - came

    def outcome(self) -> events.Checkpoint | None:
        """The next one that has been written and was not asked for yet: rank 0's alone
        speaks of it."""
        if self._save and self._save.thread and not self._save.thread.is_alive():
            self._collect()
        return self._untold.popleft() if self._untold else None

    def tell(self, write: Callable[[events.Checkpoint], object]) -> None:
        """Every outcome that was not asked for yet."""
        while saved := self.outcome():
            write(saved)

    def wait(self) -> None:
        """Until the save under way has ended. Raises Failed, on all ranks alike, when one has
        failed; what only this rank has met (the others are gone) as it is."""
        save = self._save
        if save and save.thread:
            began = time.monotonic()
            save.thread.join()
            save.paused_s += time.monotonic() - began
        if save:
            self._collect()
        if self._error is not None:
            raise self._error

    def fail(self) -> NoReturn:
        """Raises Failed with what any of the ranks has met."""
        said = agreement.gather(self.trouble, self._place.control)
        raise Failed("; ".join(dict.fromkeys(filter(None, said))))

    def _collect(self) -> None:
        """Takes note of the save that has ended."""
        save, self._save = self._save, None
        assert save
        self._error = self._error or save.error
        if save.bytes is not None and self._place.rank == 0:
            self._untold.append(
                events.Checkpoint(
                    step=save.counters.step,
                    path=str(save.path),
                    seconds=save.seconds,
                    paused_s=min(save.paused_s, save.seconds),
                    bytes=save.bytes,
                )
            )

    def _run(self, save: _Save, state: Any, beside: bool) -> None:
        place = self._place
        try:
            with parallel.beside(place.device) if beside else contextlib.nullcontext():
                save.bytes = write(save.path, place, state, save.counters, self._config)
            save.seconds = time.monotonic() - save.began
            if place.rank == 0:
                prune(self._folder, self._config.checkpoint.keep)
        except BaseException as error:  # no thread may end without a word
            if not isinstance(error, Failed):
                with contextlib.suppress(OSError):
                    traceback.print_exc(file=sys.stderr)
            save.error, self.trouble = error, sentence(error)


def write(
    path: Path,
    place: Place,
    state: dict[str, Any],
    counters: Counters,
    config: configuration.Config,
) -> int | None:
    """Writes a checkpoint and returns its bytes when it is durable; None when there was a
    whole one at that place, which stays as it is.

    All ranks must call it; raises Failed on all of them when one cannot write. Then, and
    whenever a rank dies, nothing is left that could be taken for a checkpoint.
    """
    empty = checkpoint.everyone(place, path, lambda: place.rank == 0 and _make_room(path))
    if not empty[0]:
        return None
    try:
        checkpoint.everyone(
            place,
            path,
            # It also sees to it that the bytes of its files are on the disk (sync_files).
            lambda: dcp.save(state, checkpoint_id=path, process_group=place.storage),
        )
        hashes = checkpoint.everyone(place, path, lambda: _hash_own(path, place.rank))
        files = {name: file for part in hashes for name, file in part.items()}
        manifest = Manifest(
            counters=counters,
            ranks=place.ranks,
            torch=str(torch.__version__),
            created=time.time(),
            config=msgspec.to_builtins(config),
            files=files,
        )
        checkpoint.everyone(
            place, path, lambda: _finish(path, manifest) if place.rank == 0 else None
        )
    except Failed:
        if place.rank == 0:  # half a checkpoint is of no use, and its space may be
            shutil.rmtree(path, ignore_errors=True)
        raise
    return sum(file.bytes for file in files.values())


def prune(folder: Path, keep: int) -> None:
    """Removes all but the newest `keep` whole checkpoints, and wreckage older than those.
    What cannot be removed stays as it is."""
    kept = checkpoint.whole(folder)[-keep:]
    for path in checkpoint.every(folder):
        if kept and path not in kept and checkpoint.step_of(path) < checkpoint.step_of(kept[-1]):
            with contextlib.suppress(OSError):
                # The manifest goes first: what a kill leaves of the rest is then no checkpoint.
                (path / MANIFEST).unlink(missing_ok=True)
                shutil.rmtree(path, ignore_errors=True)


# ---------------------------------------------------------------------------------------
# Parts of a save


def _make_room(path: Path) -> bool:
    """An empty folder; wreckage of an earlier try goes. False when nothing is to be done."""
    if (path / MANIFEST).exists():
        return False
    if path.exists():
        shutil.rmtree(path)
    path.mkdir(parents=True, mode=0o700)
    return True


def _hash_own(path: Path, rank: int) -> dict[str, File]:
    """Size and hash of each file this rank wrote; rank 0 wrote the metadata as well."""
    names = [file.name for file in path.glob(f"__{rank}_*")]
    if rank == 0:
        names.append(".metadata")
    return {name: checkpoint.hash_of(path / name) for name in names}


def _finish(path: Path, manifest: Manifest) -> None:
    """Makes it a checkpoint. The names of the files are on the disk before the manifest that
    speaks of them, and its own name is before anything older may go."""
    said = msgspec.to_builtins(manifest)
    said["seal"] = checkpoint.seal_of(said)
    _sync(path)
    write_whole(path / MANIFEST, msgspec.json.format(msgspec.json.encode(said)))
    _sync(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Sees to it that the names in a folder are on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # this file system has no such thing
            raise
    finally:
        os.close(fd)
