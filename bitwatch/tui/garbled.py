"""What a terminal sends that nobody can read: it is dropped, and the screen stays.

Textual ends with a traceback over a byte that is no UTF-8 (of a noisy line, of something pasted in
another encoding) and over half a report of a key. The reading of keys begins anew instead; what
came together with the garbage is lost.
"""

from __future__ import annotations

from typing import Any

from textual._parser import ParseError
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver


class Terminal(LinuxDriver):
    def run_input_thread(self) -> None:
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except (ValueError, OverflowError, ParseError):  # the first is UnicodeDecodeError, too
                continue


def use(app: App[Any]) -> None:
    """Before it runs; a driver that somebody asked for (TEXTUAL_DRIVER) stays."""
    if app.driver_class is LinuxDriver:
        app.driver_class = Terminal
