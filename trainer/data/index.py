"""The flat form of a text, a folder with three files.

    text.bin      the texts of all rows end to end, as `rowtext.text_bytes` gives them, in the
                  order of shards and rows
    offsets.bin   uint64, little endian: where each row's text begins, and the end of the last
    index.json    written last: what the others must look like

A folder is whole when index.json says so and the other two have the size and the time of
their last change that it names. It is held against deletion by a lock beside it.
"""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trainer.data import locks
from trainer.failures import Failed

FORMAT = 1
TEXT, OFFSETS, ABOUT = "text.bin", "offsets.bin", "index.json"
PATIENCE_S = 10.0  # that a reader waits for one who looks whether the text may be deleted


class Unusable(Failed):
    """A folder that is not a whole index, and why."""


class File(msgspec.Struct):
    """A file as it was when it was finished."""

    size: int
    mtime_ns: int


class About(msgspec.Struct, kw_only=True):
    """index.json. `source` says for people where the text came from, `files` of it counts."""

    format: int = FORMAT
    key: str
    source: str
    files: int
    documents: int
    bytes: int
    text: File
    offsets: File
    created: float
    seconds: float


class Where(msgspec.Struct):
    """index.json of an attempt: where `prepare` has put the text for the ranks."""

    path: str
    key: str
    documents: int
    bytes: int


class Index:
    """A whole index, open for reading. It cannot be deleted until it is closed, or every
    process that has it has ended. Pickled, it is opened again where it arrives."""

    def __init__(self, folder: Path, patience_s: float = PATIENCE_S) -> None:
        """Raises Unusable, naming the file and what is wrong with it; also when somebody
        writes to it for longer than `patience_s`."""
        self.folder = folder
        self._lock = _hold(folder, patience_s)
        try:
            self.about = check(folder)
        except Unusable:
            self.close()
            raise

    @functools.cached_property
    def text(self) -> np.ndarray[Any, Any]:
        """uint8 [bytes], a memory map."""
        return _map(self.folder / TEXT, np.uint8, self.about.bytes)

    @functools.cached_property
    def offsets(self) -> np.ndarray[Any, Any]:
        """uint64 [documents + 1], a memory map."""
        return _map(self.folder / OFFSETS, np.dtype("<u8"), self.about.documents + 1)

    def sequences(self, sequence_bytes: int) -> np.ndarray[Any, Any]:
        """uint8 [n, sequence_bytes]: the text in sequences, without the rest at its end."""
        count = self.about.bytes // sequence_bytes
        return self.text[: count * sequence_bytes].reshape(count, sequence_bytes)

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __reduce__(self) -> tuple[type[Index], tuple[Path]]:
        return Index, (self.folder,)


def check(folder: Path) -> About:
    """Whether the folder is a whole index: what it says of itself, or Unusable."""
    try:
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
    except FileNotFoundError:
        raise Unusable(f"{folder / ABOUT} is not there") from None
    except OSError as error:
        raise Unusable(f"{folder / ABOUT} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Unusable(f"{folder / ABOUT} is damaged") from None
    if about.format != FORMAT:
        raise Unusable(f"{folder / ABOUT} is of another version ({about.format})")
    for name, wanted in ((TEXT, about.text), (OFFSETS, about.offsets)):
        try:
            found = looks(folder / name)
        except OSError as error:
            raise Unusable(f"{folder / name} cannot be read: {error.strerror}") from None
        if found.size != wanted.size:
            raise Unusable(
                f"{folder / name} is damaged: it has {found.size:,} bytes, not {wanted.size:,}"
            )
        if found.mtime_ns != wanted.mtime_ns:
            raise Unusable(f"{folder / name} is damaged: it was changed after it was written")
    return about


def looks(path: Path) -> File:
    """What a file looks like. Raises OSError."""
    stat = path.stat()
    return File(size=stat.st_size, mtime_ns=stat.st_mtime_ns)


def _map(path: Path, kind: Any, count: int) -> np.ndarray[Any, Any]:
    """A file in memory as a plain array: numpy's own class costs at every slice."""
    return np.asarray(np.memmap(path, kind, mode="r", shape=(count,)))


def lock_file(folder: Path) -> Path:
    """The lock beside an index. It names its last writer; its time of change is that of the
    index's last use."""
    return folder.with_name(f"{folder.name}.lock")


def _hold(folder: Path, patience_s: float) -> int | None:
    """The lock, shared with other readers; None where there is none to be had (a cache that
    nobody may write to)."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            held = locks.try_to_read(lock_file(folder))
        except OSError:
            return None
        if held is not None:
            try:
                os.utime(held)
            except OSError:
                pass
            return held
        if time.monotonic() > deadline:
            raise Unusable(f"{folder} is being written")
        time.sleep(0.02)
