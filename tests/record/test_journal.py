"""A file of records: one writer, torn lines, readers that only take whole lines."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitwatch.record import codec, events, stretch
from bitwatch.record.journal import JournalReader, JournalWriter, read_all


def steps(path: Path) -> list[int]:
    return [r.step for r in read_all(path)[0] if isinstance(r, events.Step)]


def test_records_are_read_while_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.jsonl"
    reader = JournalReader(path)
    assert reader.read() == []
    writer = JournalWriter(path)
    for step in range(5):
        writer.write(events.Step(step=step))
        (record,) = reader.read()
        assert isinstance(record, events.Step)
        assert record.step == step
    assert reader.read() == []
    assert path.stat().st_mode & 0o777 == 0o600


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 10_000), more=st.integers(1, 3))
def test_a_torn_last_line_costs_only_itself(
    tmp_path_factory, cut: int, more: int  # type: ignore[no-untyped-def]
) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("torn") / "journal.jsonl"
    writer = JournalWriter(path)
    for step in range(6):
        writer.write(events.Step(step=step, loss=0.5))
    writer.close()
    data = path.read_bytes()
    cut = cut % (len(data) + 1)
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n")
    reader = JournalReader(path)
    assert len(reader.read()) == whole
    again = JournalWriter(path)
    for step in range(more):
        assert again.write(events.Step(step=100 + step))
    again.close()
    kept = steps(path)
    assert kept[-more:] == [100 + step for step in range(more)]
    # A cut behind the closing brace leaves a whole record without its newline: it counts.
    assert kept[:-more] in (list(range(whole)), list(range(whole + 1)))
    assert [r.step for r in reader.read() if isinstance(r, events.Step)] == kept[whole:]


def test_foreign_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    good = codec.encode(events.Step(step=1))
    foreign = b'{"kind":"from-the-future"}\n\x00\xff\n\n' + b"x" * (9 << 20) + b"\n"
    path.write_bytes(good + foreign + good)
    records, skipped = read_all(path)
    assert len(records) == 2
    assert skipped == 3


def test_only_the_ends_of_a_long_file_are_read_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "rank0.jsonl"
    path.write_bytes(b"".join(codec.encode(events.Step(step=i)) for i in range(5000)))
    reader = JournalReader(path, ends_bytes=1000)
    seen = [r.step for r in reader.read() if isinstance(r, events.Step)]
    assert seen[0] == 0
    assert seen[-1] == 4999
    assert len(seen) < 50
    assert reader.skipped == 0
    with open(path, "ab") as file:
        file.write(codec.encode(events.Step(step=5000)))
    assert [r.step for r in reader.read() if isinstance(r, events.Step)] == [5000]


def test_a_file_that_is_replaced_by_a_shorter_one_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(codec.encode(events.Step(step=i)) for i in range(9)))
    reader = JournalReader(path)
    assert len(reader.read()) == 9
    path.write_bytes(codec.encode(events.Step(step=7)))
    assert len(reader.read()) == 1


def test_a_full_disk_loses_new_records_and_no_old_ones(tmp_path: Path) -> None:
    """The kernel's own limit on a file's size stands in for the disk: a write is cut short,
    then refused; when there is room again the next record is whole."""
    path = tmp_path / "journal.jsonl"
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        writer = JournalWriter(path)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        written = [writer.write(events.Step(step=step)) for step in range(30)]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        written.append(writer.write(events.Step(step=30)))
        expected = [step for step, whole in enumerate(written) if whole]
        fine = steps(path) == expected and 0 < len(expected) < 30 and expected[-1] == 30
        os._exit(0 if fine and writer.lost == 31 - len(expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_pipe_in_the_place_of_a_record_holds_nobody_and_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "rank0.jsonl"
    os.mkfifo(path)
    reader = JournalReader(path)
    assert reader.read() == []
    with pytest.raises(OSError, match="not a regular file"):
        stretch.read(path, 1, 0, 10)
    path.unlink()
    writer = JournalWriter(path)
    writer.write(events.Step(step=3))
    writer.close()
    assert [record.step for record in reader.read() if isinstance(record, events.Step)] == [3]
