"""What a text says when it is the whole of a log."""

from __future__ import annotations

from typing import Any

from bitwatch.attach.dialects import Listener
from bitwatch.attach.log_text import Splitter
from bitwatch.attach.said import Said


def heard(text: str, listener: Listener | None = None) -> list[Said]:
    splitter = Splitter("training.log")
    listener = listener or Listener()
    lines = splitter.feed(text.encode(errors="surrogateescape")) + splitter.end()
    return listener.hear(lines) + listener.end()


def one(text: str) -> tuple[str, dict[str, Any]]:
    (said,) = heard(text)
    return said.what, dict(said.values)
