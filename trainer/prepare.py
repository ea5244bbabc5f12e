"""Writes the text to train on into its flat form, before there are ranks. Launched by path:

    python prepare.py

BITWATCH_DIR names the run directory and BITWATCH_ATTEMPT the attempt in it, whose
config.toml says which text. Tells how far it is in attempts/<n>/prepare.jsonl, and in
attempts/<n>/index.json where the text lies. Ends with 0 when it is there, 1 when it cannot
be, 3 when it was asked to stop: by SIGTERM, or by the attempt's stop file.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # this folder, whose inspect.py would hide Python's own

from trainer import lifeline

if __name__ == "__main__":
    lifeline.hold_prepare()
if __name__ == "__mp_main__":  # a process of the pool
    lifeline.hold_child()

import contextlib
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from bitwatch import config as configuration
from bitwatch.record import events
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir, write_whole
from trainer.data import build, identity, pace
from trainer.data import source as sources
from trainer.data.cache import Cache
from trainer.data.index import TEXT, Index, Where
from trainer.data.pool import Pool, processors
from trainer.failures import Failed, sentence

RANK = -1  # of its records: it comes before the ranks
TELL_S = 0.5  # between two records of the same work
REPEAT_S = 10.0  # after which the same line is told again: somebody is still there
FAILED, USAGE_ERROR, STOPPED = 1, 2, 3  # exit statuses

PLACE = ("source", "config", "split", "text_column")  # keys that say which text it is

Say = Callable[[str, float | None], None]


class Stopped(Exception):
    """Somebody asked for a stop."""


def prepare(
    config: configuration.Config, say: Say, look: Callable[[], None], processes: int | None = None
) -> Index:
    """The index of the training text, found or built; it cannot be deleted while it is open.

    `say` is given a line and how far it is, 0 to 1, or None. `look` is called several times a
    second, and stops the work by raising. Raises Failed.
    """
    data = config.data
    source = sources.training(data)
    folder = configuration.cache_folder(config, configuration.load_user())
    cache = Cache(folder, data.cache_limit_gib)
    with Pool(processes or processors(), look) as pool:

        def hashed(done: int, total: int) -> None:
            say(f"looking for the text: {_of(done, total)} compared", done / max(1, total))

        began_m = time.monotonic()
        known = identity.identify(source, data.text_column, cache.folder, pool, hashed)
        hashing_s = time.monotonic() - began_m

        def written(progress: build.Progress) -> None:
            cache.make_room(known.key, seldom=True)
            workers = f"{progress.processes} worker{'s' if progress.processes > 1 else ''}"
            so_far = _of(progress.bytes, progress.expected)
            say(f"writing the text once: {so_far}, {workers}", progress.fraction)

        def fill(folder: Path) -> None:
            began_m = time.monotonic()
            build.write(source, data.text_column, known, folder, pool, written)
            identity.check_unchanged(source, known)
            took_s = hashing_s + time.monotonic() - began_m
            pace.note(cache.folder, source.kind, (folder / TEXT).stat().st_size, took_s)

        return cache.obtain(known.key, fill, look, lambda text: say(text, None))


def earlier(run: RunDir, attempt: int, data: configuration.Data) -> Index | None:
    """The text that an attempt before has taken from the same dataset of the hub, if it is still
    whole: a run goes on with the text that it began with, whatever has changed there since."""
    if sources.training(data).hub is None:
        return None
    for number in range(attempt - 1, 0, -1):
        with contextlib.suppress(OSError, ValueError, Failed, configuration.ConfigError):
            then = configuration.load(run.config(number), lenient=True).data
            same = all(getattr(then, key) == getattr(data, key) for key in PLACE)
            if same and then.sharding == "indexed":
                where = msgspec.json.decode(run.index(number).read_bytes(), type=Where)
                return Index(Path(where.path))
    return None


class Voice:
    """Tells in the record, and of what is new also on stdout."""

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._said: tuple[str, float | None] = ("", None)
        self._said_m = 0.0

    def say(self, text: str, progress: float | None) -> None:
        """A line that only says how far it is may be left out."""
        now_m = time.monotonic()
        same_work = text.partition(":")[0] == self._said[0].partition(":")[0]
        wait_s = REPEAT_S if (text, progress) == self._said else TELL_S if same_work else 0.0
        if now_m - self._said_m < wait_s:
            return
        self._said, self._said_m = (text, progress), now_m
        self._journal.write(events.Phase(rank=RANK, name="prepare", text=text, progress=progress))
        if not same_work:
            print(text, flush=True)

    def ended(self, state: events.EndState, cause: str = "") -> None:
        word = events.RankEnded(rank=RANK, state=state, cause=cause)
        self._journal.write(word, last_word=True)
        self._journal.close()


def size(count: int) -> str:
    """Bytes as people say them: "312 MB", "1.2 GB"."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            number = count / scale
            return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"
    return f"{count} bytes"


def _of(done: int, total: int | None) -> str:
    """ "312 of 541 MB" """
    if total is None or total < done:
        return size(done)
    number, unit = size(done).split(" ")
    return f"{number if unit == size(total).split(' ')[1] else size(done)} of {size(total)}"


def main() -> int:
    folder = os.environ.get("BITWATCH_DIR")
    if not folder:
        print("prepare.py: BITWATCH_DIR is not set: bitwatch launches this file; try "
              "`bitwatch run`", file=sys.stderr)  # fmt: skip
        return USAGE_ERROR
    run, attempt = RunDir(Path(folder)), int(os.environ.get("BITWATCH_ATTEMPT", "1"))
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: asked.append(n))
    stop_file = run.stop(attempt)

    def look() -> None:
        if asked or os.path.exists(stop_file):
            raise Stopped

    try:
        voice = Voice(JournalWriter(run.prepare(attempt), run.reserve))
    except OSError as error:
        print(f"prepare.py: {run.prepare(attempt)}: {error.strerror}", file=sys.stderr)
        return FAILED
    try:
        config = configuration.load(run.config(attempt))
        voice.say("looking for the text", None)
        found = earlier(run, attempt, config.data) or prepare(config, voice.say, look)
        about = found.about
        where = Where(str(found.folder), about.key, about.documents, about.bytes)
        write_whole(run.index(attempt), msgspec.json.format(msgspec.json.encode(where)))
        voice.say(f"the text is there: {size(about.bytes)}, {about.documents:,} documents", 1.0)
    except Stopped:
        print("asked to stop", flush=True)
        voice.ended("stopped")
        return STOPPED
    except Exception as error:
        with contextlib.suppress(OSError):  # a full disk must not hide the cause
            if not isinstance(error, Failed | configuration.ConfigError):
                traceback.print_exc()
        cause = str(error) if isinstance(error, configuration.ConfigError) else sentence(error)
        print(cause, file=sys.stderr, flush=True)
        voice.ended("failed", cause)
        return FAILED
    voice.ended("done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
