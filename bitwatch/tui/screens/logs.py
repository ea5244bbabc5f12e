"""The newest lines of all logs of an attempt, shown literally, going on as they come."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Log

from bitwatch.logs import Tail
from bitwatch.record.rundir import RunDir
from bitwatch.tui import keys

POLL_S = 0.3
LINES = 5000  # kept on the screen; the files have them all


class Logs(ModalScreen[None]):
    BINDINGS = [*keys.bindings("logs", "page"), keys.closing("logs")]

    class Printed(Message):
        def __init__(self, lines: list[str], nothing_yet: bool) -> None:
            super().__init__()
            self.lines = lines
            self.nothing_yet = nothing_yet

    def __init__(self, run: RunDir, attempt: int) -> None:
        super().__init__(classes="page")
        self._folder = run.logs(attempt)
        self._attempt = attempt
        self._left = threading.Event()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog full") as dialog:
            dialog.border_title = Content(f"Logs of attempt {self._attempt}")
            dialog.border_subtitle = Content("escape closes · end follows · all: bitwatch logs")
            yield Log(max_lines=LINES, id="lines")

    def on_mount(self) -> None:
        threading.Thread(target=self._read, name="logs", daemon=True).start()

    def on_unmount(self) -> None:
        self._left.set()

    def _read(self) -> None:
        for lines, nothing_yet in self._batches():
            self.post_message(self.Printed(lines, nothing_yet))

    def _batches(self) -> Iterator[tuple[list[str], bool]]:
        tail = Tail(self._folder)
        yielded = False
        while not self._left.is_set():
            lines = tail.new()
            if lines or not yielded:
                yield lines[-LINES:], not lines
                yielded = True
            self._left.wait(POLL_S)

    def on_logs_printed(self, message: Printed) -> None:
        log = self.query_one(Log)
        if message.nothing_yet:
            log.border_subtitle = ""
            log.write_line("nothing has been printed yet")
            return
        follows = log.is_vertical_scroll_end
        log.write_lines(message.lines, scroll_end=follows)

    def action_follow(self) -> None:
        self.query_one(Log).scroll_end(animate=False)

    def action_close(self) -> None:
        self.dismiss()
