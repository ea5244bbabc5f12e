"""Samples of processes that are read with those before them, and the rows that are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from bitwatch.record import codec, events, joined
from bitwatch.record.sampled import Decoder


def process(pid: int, **fields: Any) -> events.Process:
    return events.Process(pid=pid, starttime=pid * 10, ppid=1, role="worker", state="S", **fields)


def sample(*processes: events.Process, t: float = 5.0) -> events.Processes:
    return events.Processes(t=t, m=t, attempt=1, processes=list(processes))


SAMPLES = [
    sample(process(1), process(2, cpu_percent=1.0)),
    sample(process(1), process(2, cpu_percent=2.0), t=6.0),
    sample(process(2, cpu_percent=2.0), process(3), t=7.0),
    sample(process(3), process(3, rss_mib=4.0), t=8.0),
    sample(t=9.0),
    sample(process(1, command='},{"pid":'), process(2), t=10.0),
]


def test_what_is_decoded_is_what_stands_there() -> None:
    decoder = Decoder()
    for one in SAMPLES:
        assert decoder.decode(codec.encode(one)) == one


def test_a_process_that_is_as_it_was_is_the_same_object() -> None:
    decoder = Decoder()
    first, second = (decoder.decode(codec.encode(one)) for one in SAMPLES[:2])
    assert isinstance(first, events.Processes) and isinstance(second, events.Processes)
    assert first.processes[0] is second.processes[0]
    assert first.processes[1].cpu_percent == 1.0 and second.processes[1].cpu_percent == 2.0


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"processes","processes":[{"pid":1}],"t":1.0,"m":1.0}',
        b'{"kind":"processes","processes":[1,2],"t":1.0,"m":1.0}',
        b'{"kind":"processes","processes":"none","t":1.0,"m":1.0}',
        b'{"kind":"processes","t":1.0,"m":1.0}',
        b'{"kind":"processes","processes":[],"nonfinite":{"x":"nan"},"t":1.0,"m":1.0}',
        b'{"kind":"processes-of-tomorrow","processes":[],"t":1.0,"m":1.0}',
        b'{"kind":"processes","processes":[{"pid":1,"starttime":2,"ppid":0,"role":"\xff"',
        b'{"kind":"gpus","gpus":[],"t":1.0,"m":1.0}',
        b"",
        b"garbage",
    ],
)
def test_any_other_line_is_what_it_is_by_itself(line: bytes) -> None:
    decoder = Decoder()
    decoder.decode(codec.encode(SAMPLES[0]))
    assert decoder.decode(line) == codec.decode(line)


def rows_of(found: Sequence[joined.Joined]) -> list[joined.ProcessRow]:
    return [one.row for one in found]


def test_rows_are_renewed_as_if_all_were_joined_anew() -> None:
    started = {(1, 10): events.ProcessStart(pid=1, starttime=10, role="rank", t=2.0, command="x")}
    before: list[joined.Joined] = []
    decoder = Decoder()
    for one in SAMPLES:
        read = decoder.decode(codec.encode(one))
        assert isinstance(read, events.Processes)
        found = joined.renew(read, before)
        if found is None:
            found = joined.join(read, started, before)
        # A start that is told by the clock of the first sample stays.
        anew = rows_of(joined.join(read, started, []))
        assert [msgspec.structs.replace(row, started=None) for row in rows_of(found)] == [
            msgspec.structs.replace(row, started=None) for row in anew
        ]
        before = found


def test_rows_are_joined_anew_when_somebody_has_taken_anothers_place() -> None:
    before = joined.join(sample(process(1), process(2)), {}, [])
    assert joined.renew(sample(process(1), process(3)), before) is None
    assert joined.renew(sample(process(1)), before) is None
    busier = sample(before[0].process, process(2, cpu_percent=9.0))
    renewed = joined.renew(busier, before)
    assert renewed is not None and renewed[0] is before[0]
    assert renewed[1].row.cpu_percent == 9.0 and before[1].row.cpu_percent is None
