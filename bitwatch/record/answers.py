"""What a program of the trainer answers to the command that waits for it: one JSON line each.

`trainer.generate` and `trainer.export` write them to stdout. Nothing in them is trusted: who
shows them makes them harmless first.
"""

from __future__ import annotations

import msgspec

from bitwatch import utf8


class Said(msgspec.Struct, tag_field="kind", tag="said"):
    """A diagnostic for the person at the keyboard, while the work goes on."""

    text: str


class Wrote(msgspec.Struct, tag_field="kind", tag="wrote"):
    """The next bytes of the model's text; a character may be cut."""

    data: bytes


class Ended(msgspec.Struct, tag_field="kind", tag="ended"):
    """The last answer: what was done, or why not, and the exit code."""

    text: str
    code: int = 0


Answer = Said | Wrote | Ended
_decoder = msgspec.json.Decoder(Answer)


def encode(answer: Answer) -> bytes:
    return utf8.to_json(answer) + b"\n"


def decode(line: bytes) -> Answer:
    """Raises msgspec.MsgspecError."""
    return _decoder.decode(line)
