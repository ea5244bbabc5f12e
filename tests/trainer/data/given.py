"""What readers gave of rows of text, and what they say of it themselves."""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import read_all
from trainer.data.feed import Feed
from trainer.data.stream import PackedRows


def read_rows(stream: PackedRows, data: configuration.Data) -> list[str]:
    """All rows that a rank's feed gives, one sequence at a time."""
    feed = Feed(stream, data, 1, pin_memory=False)
    rows = []
    while (sequence := feed.take()) is not None:
        rows.append(bytes(sequence[0].tolist()).decode().rstrip("\n"))
    assert feed.trouble == ""
    feed.close()
    return rows


def accounts(run: rundir.RunDir) -> dict[tuple[int, int], events.Reader]:
    """The last account of each (rank, worker)."""
    found = {}
    for path in (run.attempt(1) / "readers").glob("*.jsonl"):
        record = read_all(path)[0][-1]
        assert isinstance(record, events.Reader)
        found[record.rank, record.worker] = record
    return found
