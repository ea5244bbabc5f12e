"""A real pseudo-terminal and what stands on it: pexpect runs, pyte understands."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pexpect
import pyte

from tests.conftest import Shell, until

KEYBOARD = re.compile(rb"\x1b\[[<>=][0-9;]*u")  # a keyboard protocol that pyte would print
OWN = ("COLUMNS", "LINES", "NO_COLOR")  # what whoever runs the tests may say of its own terminal
LEFT = b"\x1b[?1049l"


class Terminal:
    """A command in a terminal of its own, which is closed at the end."""

    def __init__(
        self,
        shell: Shell,
        *arguments: str,
        size: tuple[int, int] = (120, 40),
        before: Callable[[], None] | None = None,
        **environment: str,
    ) -> None:
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        surroundings = {k: v for k, v in shell.environment.items() if k not in OWN}
        names = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}
        self.raw = b""
        self.last = ""  # the picture that stood when the screen was left, whole
        self.child = pexpect.spawn(
            shell.command[0],
            [*shell.command[1:], *arguments],
            env={**surroundings, **names},
            cwd=str(shell.folder),
            dimensions=(size[1], size[0]),
            preexec_fn=before,
        )
        self.child.delaybeforesend = None

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.text())
        self.child.close(force=True)

    @property
    def pid(self) -> int:
        return self.child.pid

    def text(self) -> str:
        return "\n".join(self._screen.display)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.child.send(key)

    def hear(self) -> bytes:
        """Everything that was written so far, as it was."""
        self._read()
        return self.raw

    def resize(self, columns: int, rows: int) -> None:
        self.child.setwinsize(rows, columns)
        self._screen.resize(rows, columns)

    def see(self, *words: str) -> str:
        """Waits until all of them stand on the screen; what else stands there."""
        return self.until(lambda text: all(word in text for word in words), f"{words}")

    def until(self, condition: Callable[[str], object], what: str) -> str:
        def met() -> bool:
            self._read()
            return bool(condition(self.text()))

        until(met, f"{what} on the screen")
        return self.text()

    def leave(self) -> tuple[int, list[str]]:
        """Waits for the end of the command: its exit code, and what it left on the shell."""
        self.gone()
        lines = [line.rstrip() for line in self._screen.display]
        code = self.child.exitstatus
        assert code is not None, f"ended by signal {self.child.signalstatus}"
        return code, [line for line in lines if line]

    def gone(self) -> None:
        """Waits for the end of the command, whatever ends it, and takes what it writes."""

        def at_its_end() -> bool:
            try:
                self._read()
            except pexpect.EOF:
                return True
            return False

        until(at_its_end, "the end of the command")
        self.child.close()

    def hang_up(self) -> None:
        """Closes the terminal, and waits for the command to leave because of it alone."""
        self.child.ptyproc.fileobj.close()
        until(lambda: not self.child.isalive(), "the command to go with its terminal")

    def _read(self, limit_s: float = 0.05) -> None:
        with contextlib.suppress(pexpect.TIMEOUT):
            data = self.child.read_nonblocking(1 << 16, timeout=limit_s)
            self.raw += data
            before, left, after = KEYBOARD.sub(b"", data).partition(LEFT)
            self._stream.feed(before)
            if left:  # the shell's own screen comes back; pyte has only one
                self.last = self.text()
                self._screen.reset()
                self._stream.feed(after)


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def is_there(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")
