"""How the screen was left, for the next time: one small file beside the runs.

It is nobody's record: a broken one is none, one that cannot be written is not missed, and the
last of several viewers wins, field by field.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import msgspec

from bitwatch import small
from bitwatch.record.rundir import write_whole

NAME = "screen.json"
PATIENCE_S = 2.0  # with a disk that does not answer, when somebody wants to leave

Value = bool | int | float | str


class Kept(msgspec.Struct):
    """`theme` is empty until one is chosen on the screen. `panels` holds what each panel wants
    kept, by its id: a panel judges itself what comes back."""

    theme: str = ""
    maximised: str = ""
    panels: dict[str, dict[str, Value]] = {}


def read(file: Path) -> Kept:
    """Leniently: what cannot be used is the default."""
    try:
        return msgspec.json.decode(small.read(file, small.USERS_MIB), type=Kept)
    except (OSError, ValueError, RecursionError):
        return Kept()


class Keeping:
    """`before` is how it was left last. `note` is told how it stands, as often as one likes; what
    has changed is written in a thread, since a disk may take its time."""

    def __init__(self, home: Path) -> None:
        self._file = home / NAME
        self.before = read(self._file)
        self._written = _fields(self.before)
        self._wanted = self._written
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, now: Kept) -> None:
        """How it stands without a change: nothing of that is written."""
        with self._lock:
            self._written = self._wanted = _fields(now)

    def note(self, now: Kept) -> None:
        wanted = _fields(now)
        with self._lock:
            if wanted == self._wanted:
                return
            self._wanted = wanted
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="keeping", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Waits for what is on its way."""
        thread = self._thread
        if thread is not None:
            thread.join(PATIENCE_S)

    def _write(self) -> None:
        while True:
            with self._lock:
                wanted, written = self._wanted, self._written
                if wanted == written:
                    self._thread = None
                    return
            changed = {name: value for name, value in wanted.items() if written.get(name) != value}
            with contextlib.suppress(OSError, ValueError):  # a full disk, a folder that is gone
                whole = _whole({**_fields(read(self._file)), **changed})
                write_whole(self._file, msgspec.json.encode(whole))
            with self._lock:
                self._written = wanted


def _fields(kept: Kept) -> dict[tuple[str, ...], Value]:
    """One by one, so that two viewers can change different ones."""
    found: dict[tuple[str, ...], Value] = {
        ("theme",): kept.theme,
        ("maximised",): kept.maximised,
    }
    for panel, values in kept.panels.items():
        found |= {("panels", panel, name): value for name, value in values.items()}
    return found


def _whole(fields: dict[tuple[str, ...], Value]) -> Kept:
    table: dict[str, Any] = {"panels": {}}
    for path, value in fields.items():
        if len(path) == 1:
            table[path[0]] = value
        else:
            table["panels"].setdefault(path[1], {})[path[2]] = value
    return msgspec.convert(table, Kept)
