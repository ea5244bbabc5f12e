"""Samples of processes, read one after the other.

Each names hundreds of processes, of which most are as they were a second ago. Those are the same
objects again, which costs less than to make them anew, and their likeness is seen at once.
"""

from __future__ import annotations

import msgspec

from bitwatch.record import codec, events

BEGIN = codec.encode(events.Processes(t=0.0, m=0.0)).partition(b",")[0]


class _Sample(events.Record, tag="processes"):
    attempt: int = 0
    processes: list[msgspec.Raw] = msgspec.field(default_factory=list)


_sample = msgspec.json.Decoder(_Sample)
_process = msgspec.json.Decoder(events.Process)


class Decoder:
    """Of the lines of one file: as `codec.decode` has them."""

    def __init__(self) -> None:
        self._known: dict[bytes, events.Process] = {}

    def decode(self, line: bytes) -> codec.Any_ | None:
        if not line.startswith(BEGIN):
            return codec.decode(line)
        try:
            sample = _sample.decode(line)
            texts = [bytes(raw) for raw in sample.processes]
            known = self._known
            found = [known.get(text) or _process.decode(text) for text in texts]
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return codec.decode(line)  # which says whether it is a record nevertheless
        if sample.nonfinite:
            return codec.decode(line)
        self._known = dict(zip(texts, found, strict=True))
        attempt = sample.attempt
        return events.Processes(t=sample.t, m=sample.m, attempt=attempt, processes=found)
