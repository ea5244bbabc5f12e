"""Ranks and workers that died: the first is named, with how it ended and what its log said last."""

from __future__ import annotations

import os
from pathlib import Path

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.supervise.watch_deaths import Logs, about_deaths

LOST = "worker 1 of rank 0 (pid 123), reading shard 1, was killed by SIGKILL at 03:12:44"
ECHO = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer"
REPORT = "rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 7)\n"


def alerts(view: View, logs: Logs) -> dict[str, events.Alert]:
    return {alert.id: alert for alert in about_deaths(view, logs)}


def exit(rank: int, t: float, signal: int | None = None) -> events.ProcessExit:
    return events.ProcessExit(pid=rank, starttime=1, role="rank", rank=rank, signal=signal, t=t)


def failed(rank: int, cause: str, t: float = 0.0) -> events.RankEnded:
    return events.RankEnded(rank=rank, state="failed", cause=cause, t=t)


def test_a_rank_that_is_gone_is_said_with_what_is_known_and_the_first_one_first() -> None:
    view = View(run="r", state="running", ranks=2)
    view.exits = [
        events.ProcessExit(pid=7, starttime=1, role="rank", rank=1, t=10.0),
        events.ProcessExit(pid=6, starttime=1, role="rank", rank=0, signal=9, t=9.0),
    ]
    alert = alerts(view, Logs())["rank-died"]
    assert alert.text == "rank 0 was killed by SIGKILL; the others are ended with it"
    assert alert.evidence[1] == "pid 7: rank 1 is gone without a last word"
    view.last_words = {
        0: events.RankEnded(rank=0, state="stopped"),
        1: events.RankEnded(rank=1, state="failed", cause="no room"),
    }
    assert "rank 1 failed: no room" in alerts(view, Logs())["rank-died"].text
    view.ranks = 1
    assert alerts(view, Logs())["rank-died"].text == "rank 1 failed: no room"
    view.state = "failed"  # the cause of the end says it
    assert alerts(view, Logs()) == {}


def test_what_goes_on_and_from_where_is_said_as_it_is() -> None:
    view = View(run="r", state="running", ranks=2, exits=[exit(0, 2.0, signal=9)])
    said = alerts(view, Logs())["rank-died"].next
    assert said.startswith("once it has ended, key R starts it anew: there is no checkpoint yet; ")
    view.checkpoints = [events.Checkpoint(step=20, path="/x")]
    said = alerts(view, Logs())["rank-died"].next
    assert said.startswith("once it has ended, key R goes on from the newest checkpoint; ")


def test_who_lost_another_or_was_ended_for_it_is_not_the_first(tmp_path: Path) -> None:
    view = View(run="r", state="running", ranks=3)
    view.exits = [exit(0, 1.0), exit(1, 2.0), exit(2, 0.5, signal=15)]
    view.last_words = {0: failed(0, ECHO, 0.1)}
    assert alerts(view, Logs())["rank-died"].text.startswith("rank 1 is gone without a last word")
    (tmp_path / "agent.log").write_text(REPORT)
    alert = alerts(view, Logs(tmp_path))["rank-died"]
    assert alert.text.startswith("rank 1 was killed by SIGKILL; ")
    assert len(alert.evidence) == 3
    view.exits, view.last_words = [], {}  # it came and went between two looks
    alert = alerts(view, Logs(tmp_path))["rank-died"]
    assert alert.evidence == ["rank 1 was killed by SIGKILL"]


def test_the_last_lines_of_its_log_are_evidence_and_nothing_that_a_terminal_obeys(
    tmp_path: Path,
) -> None:
    view = View(run="r", state="running", ranks=2)
    view.exits = [exit(1, 2.0, signal=9)]
    lines = [f"line {number}" for number in range(9)] + [
        "",
        "\x1b[31mred\x07 \u202eback",
        "x" * 900,
    ]
    (tmp_path / "rank1.log").write_bytes(b"\xff\x00" * 10**6 + "\n".join(lines).encode() + b"\n\n")
    evidence = alerts(view, Logs(tmp_path))["rank-died"].evidence
    assert evidence[0] == "pid 1: rank 1 was killed by SIGKILL"
    assert evidence[1:4] == [f"rank 1's log: line {number}" for number in (6, 7, 8)]
    assert evidence[4] == r"rank 1's log: \x1b[31mred\x07 \u202eback"
    assert len(evidence) == 6 and len(evidence[5]) < 400
    (tmp_path / "rank1.log").unlink()
    os.mkfifo(tmp_path / "rank1.log")  # nobody waits for one who writes
    assert len(alerts(view, Logs(tmp_path))["rank-died"].evidence) == 1


def test_a_rank_that_lost_its_worker_names_it_and_the_signal(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("a bus error\n")
    view = View(run="r", state="running", ranks=2, workers=2)
    view.exits = [exit(0, 2.0, signal=9)]
    view.last_words = {0: failed(0, LOST), 1: failed(1, f"rank 0: data: {LOST}")}
    found = alerts(view, Logs(tmp_path))
    assert list(found) == ["worker-died"]
    assert found["worker-died"].text == f"{LOST}; its rank could not go on without it"
    assert found["worker-died"].evidence == [LOST, "rank 0's log: a bus error"]
    assert (
        "once it has ended: key R, or bitwatch run --resume r, starts it"
        in found["worker-died"].next
    )
    view.state = "stopping"
    assert alerts(view, Logs(tmp_path)) == {}
