"""Alerts: raised once, with what to do, and cleared when their cause is gone."""

from __future__ import annotations

from pathlib import Path

from bitwatch.record import events
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.view import ProcessRow, View
from bitwatch.supervise.watch import Watch, alerts
from bitwatch.supervise.watch_processes import Around

NOW = 1000.0


def readers(*states: events.ReaderState) -> list[events.Reader]:
    return [
        events.Reader(rank=i // 2, worker=i % 2, pid=100 + i, state=state)
        for i, state in enumerate(states)
    ]


def test_a_validation_reader_is_no_idle_reader() -> None:
    view = View(ranks=1, workers=1, readers=[events.Reader(loader="validation", state="idle")])
    assert alerts(view, NOW) == []


def test_an_alert_is_written_when_it_begins_changes_and_ends(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    two = View(attempt=1, ranks=2, workers=2, readers=readers("reading", "idle"))
    three = View(attempt=1, ranks=2, workers=2, readers=readers("idle", "idle"))
    for view in (two, two, two, three, three, View(attempt=1), View(attempt=1)):
        watch.look(view, NOW)
    records = [r for r in read_all(tmp_path / "journal.jsonl")[0] if isinstance(r, events.Alert)]
    assert [(r.id, r.cleared) for r in records] == [
        ("idle-reader", False),
        ("idle-reader", False),
        ("idle-reader", True),
    ]
    assert all(record.attempt == 1 for record in records)


def test_a_reader_that_looks_stuck_for_a_moment_raises_nothing(tmp_path: Path) -> None:
    """As after a sleep of the machine, or when its clock is set."""
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    view = View(attempt=1, ranks=2, workers=1, readers=readers("reading"), state="running")
    view.readers[0].moved, view.readers[0].rows = NOW, 1

    def raised() -> int:
        return len(read_all(tmp_path / "journal.jsonl")[0])

    for now in (NOW, NOW + 60, NOW + 60, NOW, NOW + 60, NOW + 60):
        watch.look(view, now)
    assert raised() == 0
    watch.look(view, NOW + 60)
    assert raised() == 1
    for _ in range(3):
        watch.look(view, NOW + 60)
    assert raised() == 1


def test_waiting_for_data_that_hovers_at_a_level_is_written_once(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    view = View(attempt=1, ranks=1, workers=1, state="running")
    for share in (0.31, 0.31, 0.31, 0.29, 0.31, 0.28, 0.26, 0.3):
        view.data_shares = {0: share}
        watch.look(view, NOW)
    assert len(read_all(tmp_path / "journal.jsonl")[0]) == 1


def test_processes_that_are_many_for_a_moment_raise_nothing(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    calm, many = (
        View(attempt=1, ranks=1, processes=[process(pid) for pid in range(1, number)])
        for number in (4, 40)
    )
    for view in (calm, many, many, calm, many, many):
        watch.look(view, NOW)
    assert read_all(tmp_path / "journal.jsonl")[0] == []
    watch.look(many, NOW)
    (alert,) = read_all(tmp_path / "journal.jsonl")[0]
    assert isinstance(alert, events.Alert) and alert.id == "process-count"


def process(pid: int) -> ProcessRow:
    return ProcessRow(pid=pid, starttime=pid, ppid=0, role="other", state="S")


def test_what_earlier_attempts_have_left_stands_in_the_history(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    left = [events.ProcessStart(pid=7, starttime=7, role="worker", rank=1, attempt=1)]
    for found in (left, left, [], []):
        watch.look(View(attempt=2, leftovers=found), NOW)
    records = [r for r in read_all(tmp_path / "journal.jsonl")[0] if isinstance(r, events.Alert)]
    assert [(r.id, r.attempt, r.cleared) for r in records] == [
        ("leftovers", 2, False),
        ("leftovers", 2, True),
    ]
    assert records[0].text == "1 process of ended attempt 1 is still there"
    assert records[0].evidence == ["pid 7: worker of rank 1, of attempt 1 (proof: recorded)"]
    assert records[0].m > 0


def test_room_in_shared_memory_that_comes_and_goes_is_written_once(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    view = View(attempt=1, ranks=1, workers=1, state="running")
    for mib in (70.0, 63.0, 12.0, 40.0, 66.0, 90.0, 30.0, 97.0, 80.0):
        watch.look(view, NOW, Around(shm_free_mib=mib))
    records = [r for r in read_all(tmp_path / "journal.jsonl")[0] if isinstance(r, events.Alert)]
    assert [(r.id, r.cleared) for r in records] == [("shm-low", False), ("shm-low", True)]


def test_what_an_earlier_supervisor_raised_is_cleared_by_the_next_one(tmp_path: Path) -> None:
    first, second = (Watch(JournalWriter(tmp_path / "journal.jsonl")) for _ in range(2))
    for _ in range(3):
        first.look(View(attempt=1, state="stalled", step=7), NOW)
    (raised,) = (r for r in read_all(tmp_path / "journal.jsonl")[0] if isinstance(r, events.Alert))
    second.adopt([raised])
    second.look(View(attempt=1, state="stalled", step=7), NOW)
    second.look(View(attempt=1, state="running", step=8), NOW)
    records = [r for r in read_all(tmp_path / "journal.jsonl")[0] if isinstance(r, events.Alert)]
    assert [(record.id, record.cleared) for record in records] == [
        ("stalled", False),
        ("stalled", True),
    ]


def test_new_evidence_is_written_and_another_pid_is_not(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    problem = {"id": "workers-exceed-shards", "severity": "warning", "text": "t", "next": "n"}
    view = View(attempt=1, ranks=2, workers=2, plan={"problems": [problem]})
    watch.look(view, NOW)
    view.readers = readers("reading", "idle")
    watch.look(view, NOW)
    for reader in view.readers:
        reader.pid += 1000  # the next epoch's
    watch.look(view, NOW)
    records = [r for r in read_all(tmp_path / "journal.jsonl")[0] if isinstance(r, events.Alert)]
    assert [(record.id, len(record.evidence)) for record in records] == [
        ("workers-exceed-shards", 1),
        ("workers-exceed-shards", 3),
    ]


def test_a_warning_that_becomes_an_error_is_written_again(tmp_path: Path) -> None:
    watch = Watch(JournalWriter(tmp_path / "journal.jsonl"))
    for severity in ("warning", "error", "error", "warning"):
        problem = {"id": "gpu-memory", "severity": severity, "text": "t", "next": "n"}
        watch.look(View(attempt=1, plan={"problems": [problem]}), NOW)
    records = [r for r in read_all(tmp_path / "journal.jsonl")[0] if isinstance(r, events.Alert)]
    assert [record.severity for record in records] == ["warning", "error", "warning"]


def test_a_checkpoint_that_outlasts_the_grace_is_said_until_one_does_not() -> None:
    def saved(step: int, seconds: float, t: float) -> events.Checkpoint:
        return events.Checkpoint(step=step, seconds=seconds, bytes=3 << 20, path="/x", t=t)

    view = View(attempt=2, attempt_started=100.0, grace_s=40.0)
    view.checkpoints = [saved(10, 500.0, t=50.0)]  # of an earlier attempt
    assert alerts(view, NOW) == []
    view.checkpoints.append(saved(20, 75.2, t=150.0))
    (alert,) = alerts(view, NOW)
    assert alert.id == "grace-too-short"
    assert "161 s (a checkpoint took 75)" in alert.text and "40 s" in alert.text
    assert "step 20: 3 MiB in 75.2 s: /x" in alert.evidence
    assert "--set watch.grace_s=161" in alert.next
    view.checkpoints.append(saved(30, 12.0, t=160.0))
    assert alerts(view, NOW) == []
    view.checkpoints[-1] = saved(30, 75.2, t=160.0)
    view.grace_s = None  # recorded by an older version: nobody knows
    assert alerts(view, NOW) == []


def test_a_stall_is_said() -> None:
    view = View(state="stalled", step=7, phase="train")
    found = {alert.id: alert for alert in alerts(view, NOW)}
    assert "no step yet" in found["stalled"].text
    assert "last step 7" in found["stalled"].evidence[0]
