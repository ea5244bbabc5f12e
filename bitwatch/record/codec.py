"""Records as lines of JSON, and back.

Readers must survive records of newer versions and torn or foreign lines, so decoding never
raises: unknown fields are ignored, a line that is no record of ours decodes to None. NaN and
infinities come back as the floats they were.
"""

from __future__ import annotations

import math

import msgspec

from bitwatch import utf8
from bitwatch.record import events

Any_ = (
    events.RunStarted
    | events.AttemptStarted
    | events.DataPlanned
    | events.Action
    | events.Alert
    | events.Stuck
    | events.AttemptEnded
    | events.RunEnded
    | events.ProcessStart
    | events.ProcessExit
    | events.SharedMemory
    | events.Gpus
    | events.Processes
    | events.Minute
    | events.ModelBuilt
    | events.Phase
    | events.Step
    | events.Evaluation
    | events.Checkpoint
    | events.Epoch
    | events.Note
    | events.RankEnded
    | events.Unwritten
    | events.Reader
)

_decoder: msgspec.json.Decoder[Any_] = msgspec.json.Decoder(Any_)


def encode(record: events.Record) -> bytes:
    """One line, with its newline."""
    odd: dict[str, str] = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, float) and not math.isfinite(value):
            odd[name] = str(value)
    if odd:
        record = msgspec.structs.replace(record, nonfinite=odd, **dict.fromkeys(odd))
    return utf8.to_json(record) + b"\n"


def decode(line: bytes) -> Any_ | None:
    """The record in a line, or None when it is not one of ours. Never raises."""
    try:
        record = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    for name, text in (record.nonfinite or {}).items():
        try:
            value = float(text)
        except ValueError:
            return None
        if name in record.__struct_fields__ and getattr(record, name) is None:
            setattr(record, name, value)
    record.nonfinite = None
    return record
