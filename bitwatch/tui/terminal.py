"""What a terminal sends: keys, the mouse, and bytes that nobody can read.

Textual looks ten times a second whether something has come, and ends with a traceback over a byte
that is no UTF-8 (of a noisy line, of something pasted in another encoding) or over half a report of
a key. Here the kernel says when something comes, and after garbage the reading of keys begins anew;
what came together with it is lost.

And it is lent: a suspended screen gives the terminal back to the shell as it was, and takes it
again when it is continued.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver

from bitwatch.sense import processes

AT_ONCE_BYTES = 4096
# Whether a key is escape alone, or the begin of another, only the time after it says.
UNSURE_S = 1.0 + ESCAPE_DELAY  # so long after the last byte the clock is looked at
LOOK_S = 0.1


class Exit(threading.Event):
    """The end of the reading, for somebody who waits for a file: `readable` is then."""

    def __init__(self) -> None:
        super().__init__()
        self.readable, self._end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def set(self) -> None:
        super().set()
        os.write(self._end, b".")

    def clear(self) -> None:
        super().clear()
        os.read(self.readable, AT_ONCE_BYTES)


class Terminal(LinuxDriver):
    exit_event: Exit

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.exit_event = Exit()

    # -- suspending -----------------------------------------------------------------------

    def start_application_mode(self) -> None:
        """Signals mean something to us from here to `close`, while the terminal is ours."""
        self._must_signal_resume = self._key_thread is not None
        self._as_usual()
        self._wait_for_the_terminal()
        signal.signal(signal.SIGTSTP, self._soon(self._suspend))
        signal.signal(signal.SIGCONT, self._soon(self._continue))
        super().start_application_mode()

    def close(self) -> None:
        self._as_usual()
        super().close()

    def _as_usual(self) -> None:
        for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGTTOU):
            signal.signal(number, signal.SIG_DFL)

    def _wait_for_the_terminal(self) -> None:
        """In the background (`&`, or `bg` after a stop) until the shell gives it to us."""
        with contextlib.suppress(OSError):  # no terminal, or none of ours
            while os.tcgetpgrp(self.fileno) != os.getpgrp() and _shell_waits():
                os.kill(os.getpid(), signal.SIGTTOU)

    def _soon(self, done: Callable[[], None]) -> Callable[..., None]:
        """By the loop, between two things: a signal may come in the midst of a write, which holds
        what the last words to the terminal need too."""

        def told(*_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and with it the screen
                self._loop.call_soon_threadsafe(done)

        return told

    def _suspend(self) -> None:
        """Until it is continued. A signal that can be refused, unlike Textual's SIGSTOP: where no
        shell could continue it, the kernel drops it, and the screen goes on at once."""
        if self._has_terminal():
            self.suspend_application_mode()
            os.kill(os.getpid(), signal.SIGTSTP)
            self.start_application_mode()

    def _continue(self) -> None:
        """After a stop that nobody was told of, the shell has had the terminal meanwhile."""
        if self._has_terminal():
            self.suspend_application_mode()
        self.start_application_mode()

    def _has_terminal(self) -> bool:
        return self._key_thread is not None and self._key_thread.is_alive()

    # -- reading --------------------------------------------------------------------------

    def run_input_thread(self) -> None:
        while not self.exit_event.is_set():
            try:
                self._read()
            except (ValueError, OverflowError, ParseError):  # the first is UnicodeDecodeError, too
                continue

    def _read(self) -> None:
        """Until the exit."""
        parser, decoder = XTermParser(self._debug), codecs.getincrementaldecoder("utf-8")()
        files = [self.fileno, self.exit_event.readable]
        heard = time.monotonic()
        while not self.exit_event.is_set():
            unsure = time.monotonic() - heard < UNSURE_S
            readable, _, _ = select.select(files, [], [], LOOK_S if unsure else None)
            if self.fileno in readable:
                heard = time.monotonic()
                data = os.read(self.fileno, AT_ONCE_BYTES)
                if not data:  # nobody is at the other end
                    files.remove(self.fileno)
                    continue
                for message in parser.feed(decoder.decode(data)):
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)


def suspend() -> bool:
    """Stops this program with all that the shell has started for it, as the kernel does for a
    program that leaves ctrl+z to it. False, and nothing done, where no shell waits below."""
    waits = _shell_waits()
    if waits:
        os.killpg(0, signal.SIGTSTP)
    return waits


def _shell_waits() -> bool:
    """Whether the nearest process outside our group is of our session: else the kernel takes the
    group for an orphan, and nobody could continue it."""
    parent = os.getppid()
    with contextlib.suppress(OSError):
        while parent and os.getpgid(parent) == os.getpgrp():
            stat = processes.read_stat(parent)
            parent = stat.ppid if stat else 0
        return parent != 0 and os.getsid(parent) == os.getsid(0)
    return False


def use(app: App[Any]) -> None:
    """Before it runs; a driver that somebody asked for (TEXTUAL_DRIVER) stays."""
    if app.driver_class is LinuxDriver:
        app.driver_class = Terminal
