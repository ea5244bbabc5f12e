"""What a terminal sends, key by key and as garbage."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

from bitwatch.tui import terminal
from tests.conftest import until

GARBAGE = {b"a": b"\xff\xfe", b"b": b"\x1b[:7u", b"c": b"\x1b[9999999999999u", b"d": b"\xc3("}


class Hearing(terminal.Terminal):
    heard = ""

    def process_message(self, message: Message) -> None:
        if isinstance(message, Key):
            self.heard += message.character or ""


@contextmanager
def listening() -> Iterator[tuple[Hearing, int]]:
    """To what is written into the pipe; at the end it stops by itself."""
    hearing = Hearing(App[None]())
    read, write = os.pipe()
    hearing.fileno = read
    thread = threading.Thread(target=hearing._run_input_thread)
    thread.start()
    try:
        yield hearing, write
    finally:
        hearing.exit_event.set()
        thread.join()
        os.close(read)
        os.close(write)


async def test_what_cannot_be_read_is_dropped_and_keys_go_on() -> None:
    def pressed(key: bytes) -> bool:
        os.write(write, key)
        return key.decode() in hearing.heard

    with listening() as (hearing, write):
        for key, garbage in GARBAGE.items():
            os.write(write, garbage)
            # One that is lost with the garbage is pressed again, as somebody would do.
            until(partial(pressed, key), f"a key after {garbage!r}")
        assert set(hearing.heard) <= set("abcd(")


async def test_escape_alone_is_told_and_a_long_silence_is_ended_by_a_key_and_by_the_exit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with listening() as (hearing, write):
        os.write(write, b"\x1b")
        until(lambda: hearing.heard == "\x1b", "escape, which only the time after it tells")
        monkeypatch.setattr(terminal, "UNSURE_S", 0.0)  # as if that were long ago
        os.write(write, b"x")
        until(lambda: "x" in hearing.heard, "a key in the silence")
        assert hearing.heard == "\x1bx"


def test_only_the_usual_terminal_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App[None]()
    app.driver_class = LinuxDriver
    terminal.use(app)
    assert app.driver_class is terminal.Terminal
    app.driver_class = other = type("Other", (LinuxDriver,), {})
    terminal.use(app)
    assert app.driver_class is other
