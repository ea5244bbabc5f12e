"""What a terminal sends: keys, the mouse, and bytes that nobody can read.

Textual looks ten times a second whether something has come, and ends with a traceback over a byte
that is no UTF-8 (of a noisy line, of something pasted in another encoding) or over half a report of
a key. Here the kernel says when something comes, and after garbage the reading of keys begins anew;
what came together with it is lost.
"""

from __future__ import annotations

import codecs
import os
import select
import threading
import time
from typing import Any

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver

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


def use(app: App[Any]) -> None:
    """Before it runs; a driver that somebody asked for (TEXTUAL_DRIVER) stays."""
    if app.driver_class is LinuxDriver:
        app.driver_class = Terminal
