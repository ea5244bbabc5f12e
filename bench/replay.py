"""What a replay costs: from the shell to its first picture, its share of a core while it plays,
and how long a jump takes, on a run with a million step records in a pseudo-terminal.

    python bench/replay.py [--json FILE] [--steps N]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import pexpect
import pyte

from bench.screen import BITWATCH, LIMIT_S, SIZE, write_run
from bitwatch.record.rundir import RunDir

SPEEDS = (60, 3600)
WATCHED_S = 10.0
SHARE = re.compile(r"REPLAY.* (\d+) %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=1_000_000)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder), arguments.steps)
        for speed in SPEEDS:
            figures |= played(run, speed)
    for name, value in figures.items():
        print(f"{name:<58} {value:>10}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def played(run: RunDir, speed: int) -> dict[str, Any]:
    began = time.perf_counter()
    terminal = Terminal(run, speed)
    terminal.until(lambda text: "REPLAY" in text and "3 Loss" in text)
    found: dict[str, Any] = {f"{speed}x: first picture, s": _since(began)}
    terminal.until(lambda text: "RUNNING" in text)
    before = terminal.cpu_s()
    terminal.watch(WATCHED_S)
    found[f"{speed}x: CPU while it plays, % of a core"] = round(
        100 * (terminal.cpu_s() - before) / WATCHED_S, 1
    )
    for name, key, low, high in (
        ("to the end, the first time", "\x1b[F", 100, 100),
        ("a tenth back", "[", 89, 99),
        ("to the beginning", "\x1b[H", 0, 5),
        ("to the end again", "\x1b[F", 100, 100),
    ):
        began = time.perf_counter()
        terminal.child.send(key)
        terminal.until(lambda text, low=low, high=high: low <= _share(text) <= high)
        found[f"{speed}x: {name}, s"] = _since(began)
    found[f"{speed}x: memory, MiB"] = terminal.memory_mib()
    terminal.child.send("q")
    terminal.watch(0.5)
    terminal.child.close(force=True)
    return found


def _share(text: str) -> int:
    """What the timeline says; -1 while it still reads."""
    found = SHARE.search(text)
    return int(found[1]) if found and "reading …" not in text else -1


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 2)


class Terminal:
    """`bitwatch attach --replay` in a pseudo-terminal, and what stands on it."""

    def __init__(self, run: RunDir, speed: int) -> None:
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environment["BITWATCH_HOME"] = str(run.path.parent)
        words = ["attach", "--replay", run.id, "--speed", str(speed)]
        self._screen = pyte.Screen(*SIZE)
        self._stream = pyte.ByteStream(self._screen)
        self.child = pexpect.spawn(BITWATCH, words, env=environment, dimensions=(SIZE[1], SIZE[0]))
        self.child.delaybeforesend = None

    def until(self, condition: Any) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not condition("\n".join(self._screen.display)):
            if time.monotonic() > deadline:
                raise SystemExit("\n".join(self._screen.display))
            self._take(0.1)

    def watch(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._take(0.1)

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> int:
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    def _take(self, limit_s: float) -> None:
        try:
            self._stream.feed(self.child.read_nonblocking(1 << 16, timeout=limit_s))
        except (pexpect.TIMEOUT, pexpect.EOF):
            return


if __name__ == "__main__":
    main()
