"""A terminal in front of `bitwatch attach`, and what stands on it."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pyte

from bitwatch.record.rundir import RunDir

BITWATCH = str(Path(sys.executable).parent / "bitwatch")
SIZE = (120, 40)
LIMIT_S = 30.0


class Screen:
    """`bitwatch attach` in a pseudo-terminal, and what stands on it."""

    def __init__(self, run: RunDir, size: tuple[int, int] = SIZE) -> None:
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        for name in ("COLUMNS", "LINES"):  # of the terminal that the bench runs in
            environment.pop(name, None)
        environment["BITWATCH_HOME"] = str(run.path.parent)
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._chunks: queue.Queue[tuple[float, bytes]] = queue.Queue()
        self.began = time.perf_counter()
        self._child = pexpect.spawn(
            BITWATCH, ["attach", run.id], env=environment, dimensions=(size[1], size[0])
        )
        self._child.delaybeforesend = None  # pexpect would wait 50 ms before every key
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close(force=True)

    def text(self) -> str:
        return "\n".join(self._screen.display)

    def until(self, condition: Callable[[str], bool], since: float | None = None) -> float:
        """Seconds until the bytes arrived that make the terminal show it. What pyte takes to
        understand them is not the screen's fault."""
        arrived = time.perf_counter()
        since = arrived if since is None else since
        while time.perf_counter() - since < LIMIT_S:
            if condition(self.text()):
                return arrived - since
            try:
                arrived, data = self._chunks.get(timeout=0.5)
            except queue.Empty:
                continue
            self._stream.feed(data)
        raise SystemExit(f"the screen never came to show it:\n{self.text()}")

    def press(self, key: str, sign: Callable[[str], object] | None = None) -> float:
        """Seconds from the key to the word that it writes or takes away: of `y`, or what `sign`
        makes of the text."""
        self.catch_up()
        sign = sign or (lambda _: self._log())
        was = sign(self.text())
        began = time.perf_counter()
        self._child.send(key)
        return self.until(lambda text: sign(text) != was, began)

    def catch_up(self) -> None:
        while not self._chunks.empty():
            self._stream.feed(self._chunks.get()[1])

    def done_reading(self) -> bool:
        self.catch_up()
        return "earlier steps" not in self.text()

    def leave(self) -> None:
        self._child.send("q")
        self._child.wait()

    def memory_mib(self) -> float:
        pages = int(Path(f"/proc/{self._child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def cpu_percent(self, seconds: float) -> float:
        def ticks() -> int:
            fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        time.sleep(seconds)
        used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
        return round(100 * used / seconds, 1)

    def _log(self) -> bool:
        return any(" log ─" in line or " log ·" in line for line in self._screen.display)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._child.child_fd, 1 << 16)
            except OSError:
                return
            self._chunks.put((time.perf_counter(), data))
