"""What a text is known by: a key made of its content, the same wherever and however often it
is prepared, and another as soon as the source changes.

Of local files every byte is hashed, once: what was found is kept in the cache, and holds as
long as a file is the same one with the same size and time of its last change. Of a source on
the hub the commit that its files come from says the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bitwatch.record.rundir import write_whole
from trainer.data import index
from trainer.data.pool import Pool
from trainer.data.source import Source, SourceError

MEMORY = "hashes.json"
REMEMBERED = 20_000  # files, the last ones
READ_BYTES = 4 << 20
# A file that changed so shortly ago may change again within one tick of its clock, unseen.
SETTLED_NS = 2_000_000_000
KEY_DIGITS = 32


class Seen(msgspec.Struct, frozen=True):
    """A file as it is when nobody has touched it since."""

    path: str
    inode: int
    size: int
    mtime_ns: int


class Identity(msgspec.Struct):
    """`seen` are the files as they were when they were hashed; none for the hub."""

    key: str
    about: str
    files: int
    seen: list[Seen]


def identify(
    source: Source, column: str, cache: Path, pool: Pool, tell: Callable[[int, int], None]
) -> Identity:
    """`tell` is given how many bytes of how many were hashed. Raises Failed, OSError."""
    if source.hub is not None:
        (answer,) = [told.value for told in pool.run(_ask_hub, [source]) if not told.done]
        seen, content, count = [], answer["revision"], answer["files"]
        about = f"{source.hub} {source.config or ''} {source.split}"
    else:
        seen = [_see(source, name) for name in source.files]
        content, count = _hashes(source, seen, cache / MEMORY, pool, tell), len(seen)
        about = os.path.commonpath(source.files)
    return Identity(_key(source, column, content), " ".join(about.split()), count, seen)


def remembered(source: Source, column: str, cache: Path) -> str | None:
    """The key of local files all of which were hashed before and have not changed since; None
    where a file would have to be read, or the hub asked."""
    if source.hub is not None or not (known := _remembered(cache / MEMORY)):
        return None
    try:
        return _key(source, column, [known[_see(source, name)] for name in source.files])
    except (KeyError, SourceError):
        return None


def _key(source: Source, column: str, content: list[Any]) -> str:
    parts = [index.FORMAT, source.kind, column, content]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:KEY_DIGITS]


def check_unchanged(source: Source, identity: Identity) -> None:
    """Raises SourceError when a file is not as it was when the key was made of it."""
    for then in identity.seen:
        if _see(source, then.path) != then:
            raise SourceError(
                f"{source.key}: {then.path} changed while it was being read",
                "Start again when nobody writes to it",
            )


def _see(source: Source, name: str) -> Seen:
    try:
        stat = os.stat(name)
    except OSError as error:
        raise SourceError(
            f"{source.key}: {name} cannot be read: {error.strerror}",
            "Correct the file or its permissions, or take it out",
        ) from None
    return Seen(name, stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _hashes(
    source: Source, seen: list[Seen], memory: Path, pool: Pool, tell: Callable[[int, int], None]
) -> list[str]:
    """The sha256 of each file, in order."""
    known = _remembered(memory)
    unknown = [file for file in seen if file not in known]
    if not unknown:
        return [known[file] for file in seen]
    so_far, total = [0] * len(unknown), sum(file.size for file in unknown)
    for told in pool.run(_hash, [(source, file) for file in unknown]):
        if isinstance(told.value, str):
            known[unknown[told.task]] = told.value
        elif not told.done:
            so_far[told.task] = told.value
            tell(sum(so_far), total)
    now_ns = time.time_ns()
    settled = {file: sha for file, sha in known.items() if file.mtime_ns < now_ns - SETTLED_NS}
    with contextlib.suppress(OSError):  # then they are hashed again the next time
        memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(memory, msgspec.json.encode(list(settled.items())[-REMEMBERED:]))
    return [known[file] for file in seen]


def _remembered(memory: Path) -> dict[Seen, str]:
    try:
        return dict(msgspec.json.decode(memory.read_bytes(), type=list[tuple[Seen, str]]))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _hash(task: tuple[Source, Seen]) -> Iterator[int | str]:
    """Work of the pool: bytes read now and then, at the end the sha256 in hexadecimal."""
    source, seen = task
    sha, size, told_m = hashlib.sha256(), 0, time.monotonic()
    try:
        with open(seen.path, "rb", buffering=0) as file:
            while block := file.read(READ_BYTES):
                sha.update(block)
                size += len(block)
                if time.monotonic() - told_m > 0.2:
                    told_m = time.monotonic()
                    yield size
    except OSError as error:
        raise SourceError(
            f"{source.key}: {seen.path} cannot be read: {error.strerror}",
            "Correct the file or its permissions, or take it out",
        ) from None
    yield size
    yield sha.hexdigest()


def _ask_hub(source: Source) -> Iterator[dict[str, Any]]:
    """Work of the pool: what the hub, or its cache here, says which files these are."""
    from trainer.data import hub

    hub.prepare()
    revision, files = hub.revision(source)
    yield {"revision": revision, "files": files}
