"""The logs of an attempt: all as one or one alone, from their end back to their beginning.

A thread reads and searches; keys only tell it what is wanted, and paint what it hands over.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from textual import events as textual_events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from bitwatch.attach.log_folder import ALL
from bitwatch.attach.log_search import Troubles, Word
from bitwatch.record.rundir import RunDir
from bitwatch.tui import keys
from bitwatch.tui.log_book import Book, Picture
from bitwatch.tui.remap import DIGITS
from bitwatch.tui.screens.over import Over
from bitwatch.tui.widgets.log_view import OWN_LINES, LogView

POLL_S = 0.3
SLICE_S = 0.005  # of a search, before a key is looked for
SEARCH_PAINT_S = 0.2  # how often a search says how far it is

Command = Callable[[Book], object]


class Logs(Over[None]):
    BINDINGS = [*keys.bindings("logs"), keys.closing("logs")]

    class Read(Message):
        """A new picture. Only the newest waits."""

        def __init__(self, picture: Picture) -> None:
            super().__init__()
            self.picture = picture

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Logs.Read)

    class Failed(Message):
        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    def __init__(self, run: RunDir, attempt: int) -> None:
        super().__init__(classes="page")
        self._run = run
        self._attempt = attempt
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._left = threading.Event()
        self._reader: threading.Thread | None = None
        self._troubles = Troubles()
        self._key = ""  # that was pressed last
        self._searches = False
        self.view = LogView()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog logs") as dialog:
            dialog.border_title = Content(f"Logs of attempt {self._attempt}")
            dialog.border_subtitle = Content("")
            yield self.view

    def on_unmount(self) -> None:
        self._left.set()
        self._commands.put(lambda _book: None)  # it may wait for one

    def on_resize(self) -> None:
        self.call_after_refresh(self._tell_size)

    def _tell_size(self) -> None:
        width, height = self.view.size
        if self._reader is None:
            size = (width, height - OWN_LINES)
            self._reader = threading.Thread(target=self._read, args=size, name="logs", daemon=True)
            self._reader.start()
        else:
            self._commands.put(lambda book: book.resize(width, height - OWN_LINES))

    # -- the thread that reads ------------------------------------------------------------

    def _read(self, width: int, height: int) -> None:
        try:
            book = Book(self._run, self._attempt, width, height)
            looked = painted = time.monotonic()
            changed, busy = True, False
            while not self._left.is_set():
                while command := self._next(0 if busy or changed else POLL_S):
                    command(book)
                    changed = True
                now = time.monotonic()
                if now - looked >= POLL_S:
                    looked = now
                    changed |= book.look()
                if changed or (busy and now - painted >= SEARCH_PAINT_S):
                    self.post_message(self.Read(book.picture()))
                    painted, changed = time.monotonic(), False
                before, found = book.searching.is_busy, _work(book)
                busy = book.searching.is_busy
                changed = found or (before and not busy)
        except Exception as error:  # whatever it is: a sentence on the screen
            self.post_message(self.Failed(error))

    def _next(self, timeout_s: float) -> Command | None:
        try:
            return self._commands.get(timeout=timeout_s) if timeout_s else self._commands.get(False)
        except queue.Empty:
            return None

    def on_logs_read(self, message: Read) -> None:
        picture = message.picture
        dialog = self.query_one(".dialog")
        dialog.border_title = Content(picture.title)
        dialog.border_subtitle = Content(picture.subtitle)
        self._searches = picture.searches
        self.view.paint(picture)

    def on_logs_failed(self, message: Failed) -> None:
        self.notify(f"the logs cannot be shown: {message.error}", severity="error", markup=False)
        self.dismiss()

    def _tell(self, command: Command) -> None:
        def asked(book: Book) -> None:
            book.searching.said = ""
            command(book)

        self._commands.put(asked)

    # -- keys -----------------------------------------------------------------------------

    def on_key(self, event: textual_events.Key) -> None:
        self._key = event.key
        entry = self.view.entry
        if entry.editing and entry.take(event):
            event.stop()
            event.prevent_default()
            if not entry.editing and entry.text:
                word = Word(entry.text)
                self._tell(lambda book: book.find_word(word))
            self.view.repaint()

    def on_paste(self, event: textual_events.Paste) -> None:
        if self.view.entry.editing:
            self.view.entry.add(event.text)
            self.view.repaint()

    def on_log_view_scrolled(self, message: LogView.Scrolled) -> None:
        self.action_scroll(message.lines)

    def on_log_view_chosen(self, message: LogView.Chosen) -> None:
        self._tell(lambda book: book.choose_at(message.number))

    def has(self, key: keys.Key) -> bool:
        """The palette has no digit to say which rank is meant."""
        return key.id != DIGITS

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self.view.entry.editing

    def action_close(self) -> None:
        if self._key == "escape" and self._searches:
            self._tell(lambda book: book.searching.cancel())
        else:
            self.dismiss()

    def action_follow(self) -> None:
        self._tell(lambda book: book.follow())

    def action_first(self) -> None:
        self._tell(lambda book: book.first())

    def action_scroll(self, lines: int) -> None:
        self._tell(lambda book: book.scroll(lines))

    def action_page(self, by: int) -> None:
        self._tell(lambda book: book.page(by))

    def action_source(self, by: int) -> None:
        self._tell(lambda book: book.next_source(by))

    def action_rank(self) -> None:
        if self._key.isdecimal():
            number = int(self._key)
            self._tell(lambda book: book.choose_number(number))

    def action_all(self) -> None:
        self._tell(lambda book: book.choose(ALL))

    def action_sideways(self, by: int) -> None:
        self._tell(lambda book: book.sideways(by))

    def action_wrap(self) -> None:
        self._tell(lambda book: book.wrap())

    def action_raw(self) -> None:
        self._tell(lambda book: book.show_raw())

    def action_search(self) -> None:
        self.view.entry.text = ""
        self.view.entry.editing = True
        self.view.repaint()

    def action_again(self, direction: int) -> None:
        self._tell(lambda book: book.find_again(1 if direction > 0 else -1))

    def action_trouble(self, direction: int) -> None:
        troubles = self._troubles
        self._tell(lambda book: book.find(troubles, 1 if direction > 0 else -1))

    def action_attempt(self, by: int) -> None:
        self._tell(lambda book: book.next_attempt(by))


def _work(book: Book) -> bool:
    """A slice of a search; whether that has found something."""
    until, found = time.monotonic() + SLICE_S, False
    while book.searching.is_busy and not found:
        found = book.work()
        if time.monotonic() >= until:
            break
    return found
