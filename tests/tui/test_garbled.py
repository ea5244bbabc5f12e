"""Bytes from a terminal that are no keys."""

from __future__ import annotations

import os
import threading
from functools import partial

import pytest
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

from bitwatch.tui import garbled
from tests.conftest import until

GARBAGE = {b"a": b"\xff\xfe", b"b": b"\x1b[:7u", b"c": b"\x1b[9999999999999u", b"d": b"\xc3("}


class Hearing(garbled.Terminal):
    heard = ""

    def process_message(self, message: Message) -> None:
        if isinstance(message, Key):
            self.heard += message.character or ""


async def test_what_cannot_be_read_is_dropped_and_keys_go_on() -> None:
    app = App[None]()
    read, write = os.pipe()
    terminal = Hearing(app)
    terminal.fileno = read

    def pressed(key: bytes) -> bool:
        os.write(write, key)
        return key.decode() in terminal.heard

    listening = threading.Thread(target=terminal._run_input_thread)
    listening.start()
    try:
        for key, garbage in GARBAGE.items():
            os.write(write, garbage)
            # One that is lost with the garbage is pressed again, as somebody would do.
            until(partial(pressed, key), f"a key after {garbage!r}")
    finally:
        terminal.exit_event.set()
        listening.join()
        os.close(read)
        os.close(write)
    assert set(terminal.heard) <= set("abcd(")


def test_only_the_usual_terminal_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App[None]()
    app.driver_class = LinuxDriver
    garbled.use(app)
    assert app.driver_class is garbled.Terminal
    app.driver_class = other = type("Other", (LinuxDriver,), {})
    garbled.use(app)
    assert app.driver_class is other
