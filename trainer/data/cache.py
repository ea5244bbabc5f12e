"""Where the flat texts lie, and who may touch them.

    <folder>/<key>/        an index that is whole
    <folder>/<key>.part/   one that is being written; renamed when it is whole
    <folder>/<key>.lock    held alone by whoever writes or deletes, shared by whoever reads
    <folder>/hashes.json   see `identity`
    <folder>/rates.json    see `pace`

A process may die at any instant: what it was writing is a folder that nobody takes for an
index, and is removed by whoever has the lock next. Nothing else in the folder is touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trainer.data import index, locks, pace
from trainer.data.identity import KEY_DIGITS, MEMORY
from trainer.data.index import Index, Unusable
from trainer.failures import Failed

GIB = 1 << 30
LOOK_S = 0.1  # between two looks at a lock that another run has
MEASURE_S = 0.5  # between two measurements of the whole cache while a text is written


class Cache:
    """limit_gib: what all texts in the folder may take together, None for no limit."""

    def __init__(self, folder: Path, limit_gib: float | None = None) -> None:
        self.folder = folder
        self.limit_gib = limit_gib
        self._measured_m = 0.0

    def entry(self, key: str) -> Path:
        return self.folder / key

    def part(self, key: str) -> Path:
        return self.folder / f"{key}.part"

    def obtain(
        self,
        key: str,
        build: Callable[[Path], None],
        look: Callable[[], None],
        say: Callable[[str], None],
    ) -> Index:
        """The index of this key, open for reading; when there is none, `build` fills a folder
        with it. One process builds: the others wait for it. `look` may raise at any time.
        Raises Failed."""
        with self._in_words():
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            while True:
                look()
                damage = ""
                try:
                    return Index(self.entry(key), patience_s=0)
                except Unusable as unusable:
                    if (self.entry(key) / index.ABOUT).exists():
                        damage = str(unusable)
                lock = locks.try_to_write(index.lock_file(self.entry(key)))
                if lock is None:
                    say(self._waiting(key, damage))
                    time.sleep(LOOK_S)
                    continue
                try:
                    self._write(key, build, say)
                finally:
                    os.close(lock)

    def _write(self, key: str, build: Callable[[Path], None], say: Callable[[str], None]) -> None:
        """Writes the index, unless another process has done so in the meantime. With the
        lock held."""
        try:
            index.check(self.entry(key))
            return
        except Unusable as unusable:
            if self.entry(key).exists():
                say(f"{unusable}: it is written again")
        self.sweep()
        part = self.part(key)
        _remove(self.entry(key))
        _remove(part)
        self.make_room(key)
        try:
            build(part)
            self.make_room(key)  # of a short text nothing was measured yet
            _sync_folder(part)
            os.rename(part, self.entry(key))
            _sync_folder(self.folder)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise

    def make_room(self, key: str, seldom: bool = False) -> None:
        """Deletes the texts that were not used for longest, until what there is and what is
        being written for `key` keep the limit. Raises Failed when they cannot."""
        if self.limit_gib is None:
            return
        if seldom and time.monotonic() - self._measured_m < MEASURE_S:
            return
        self._measured_m = time.monotonic()
        limit_bytes = int(self.limit_gib * GIB)
        mine = _size(self.part(key))
        others = [entry for entry in self.entries() if entry.name != key]
        sizes = {entry: _size(entry) + _size(self.part(entry.name)) for entry in others}
        for entry in sorted(others, key=_last_used_ns):
            if mine + sum(sizes.values()) <= limit_bytes:
                return
            if self._evict(entry):
                sizes[entry] = 0
        held = sum(sizes.values())
        if mine + held > limit_bytes:
            beside = f", beside {gib(held)} that other runs are using" if held else ""
            raise Failed(
                f"data.cache_limit_gib: the text is {gib(mine)} so far{beside}, and the limit is "
                f"{self.limit_gib:g} GiB; raise the limit, or remove the key"
            )

    def entries(self) -> list[Path]:
        """The folders of all keys that anything is there of."""
        names = {path.name.removesuffix(".part") for path in _folders(self.folder)}
        return [self.folder / name for name in sorted(names)]

    def sweep(self) -> None:
        """Removes what processes that died have left behind."""
        for name in (MEMORY, pace.RATES):
            for path in self.folder.glob(f".{name}.*"):
                path.unlink(missing_ok=True)  # whoever writes it now only loses time
        for path in _folders(self.folder):
            if not path.name.endswith(".part"):
                continue
            with self._alone(path.name.removesuffix(".part")) as alone:
                if alone:
                    shutil.rmtree(path, ignore_errors=True)

    def _evict(self, entry: Path) -> bool:
        """Deletes an index that nobody reads or writes."""
        with self._alone(entry.name) as alone:
            if alone:
                _remove(entry)
                _remove(self.part(entry.name))
        return alone

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[bool]:
        """Whether the lock could be had, without waiting; it is held inside the `with`."""
        lock = None
        with contextlib.suppress(OSError):
            lock = locks.try_to_write(index.lock_file(self.entry(key)))
        try:
            yield lock is not None
        finally:
            if lock is not None:
                os.close(lock)

    def _waiting(self, key: str, damage: str) -> str:
        if damage:
            return f"waiting for the runs that still read it: {damage}"
        holder = locks.holder(index.lock_file(self.entry(key)))
        who = f" (pid {holder.pid})" if holder else ""
        return f"waiting for another run{who} that is writing the same text"

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turns what a disk refuses into a sentence that names the place and the remedy."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Failed(
                    f"data.cache: the disk of {self.folder} is full ({error.strerror}); make "
                    "room on it, or name a folder on another disk"
                ) from None
            if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
                raise  # not the disk's fault
            where = error.filename or self.folder
            raise Failed(
                f"data.cache: {where} cannot be written: {error.strerror or error}; name a "
                "folder that you may write to"
            ) from None


def gib(size: int) -> str:
    return f"{size / GIB:.3g} GiB"


def _folders(folder: Path) -> list[Path]:
    """The folders that this module made, and no others."""
    ours = re.compile(rf"[0-9a-f]{{{KEY_DIGITS}}}(\.part)?")
    with os.scandir(folder) as entries:
        return [
            Path(entry.path)
            for entry in entries
            if ours.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]


def _last_used_ns(entry: Path) -> int:
    try:
        return index.lock_file(entry).stat().st_mtime_ns
    except OSError:
        return 0


def _size(folder: Path) -> int:
    """Bytes of the files in a folder, 0 when there is none. Files may go while it looks."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                total += entry.stat(follow_symlinks=False).st_size
    return total


def _remove(folder: Path) -> None:
    """Deletes an index so that it is none from the first instant."""
    with contextlib.suppress(FileNotFoundError):
        (folder / index.ABOUT).unlink(missing_ok=True)
        shutil.rmtree(folder)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
