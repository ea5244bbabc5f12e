"""How an attempt ended, by the best evidence there is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from bitwatch.record import events
from bitwatch.record.state import RunState, Source, fold
from bitwatch.supervise import ending
from bitwatch.supervise.reaper import Exit

REPORT = """
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_00:00:00
  host      : node
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 77)
"""
LEFT = "[0]:\n  rank      : 0 (local_rank: 0)\n  exitcode  : 143 (pid: 76)\n"
TERMED = REPORT.replace("-9", "-15")
ECHO = "RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer"
KILLED = Exit(5, 5, None, signal.SIGKILL)
ONE = Exit(5, 5, 1, None)
ZERO = Exit(5, 5, 0, None)


def words(*said: tuple[int, events.EndState, str, float]) -> RunState:
    state = RunState()
    for rank, word, cause, t in said:
        record = events.RankEnded(rank=rank, state=word, cause=cause, t=t)
        fold(state, Source("rank", 1, rank), [record])
    return state


@pytest.mark.parametrize(
    ("state", "agent", "log", "forced", "expected"),
    [
        (words((0, "done", "", 1), (1, "done", "", 2)), ZERO, "", "", ("done", "")),
        (words((0, "stopped", "", 1), (1, "stopped", "", 2)), ZERO, "", "", ("stopped", "")),
        (words((0, "stopped", "", 1), (1, "stopped", "", 2)), ZERO, "", "x", ("stopped", "")),
        (words((0, "failed", "late", 3), (1, "failed", "early", 2)), ONE, "", "", ("failed", "early")),
        (words((0, "failed", "echo", 3)), ONE, "", "stopped by me", ("stopped", "stopped by me")),
        (words((0, "failed", "no data", 3)), ONE, REPORT, "", ("failed", "no data")),
        (words((0, "failed", ECHO, 3)), ONE, REPORT, "", ("failed", "rank 1 was killed by SIGKILL")),
        (words((0, "failed", ECHO, 3)), ONE, TERMED, "", ("failed", ECHO)),
        (words((0, "failed", ECHO, 1), (1, "failed", "no data", 2)), ONE, "", "", ("failed", "no data")),
        (words(), ONE, LEFT + REPORT, "", ("failed", "rank 1 was killed by SIGKILL")),
        (words((0, "done", "", 3)), ONE, REPORT, "", ("failed", "rank 1 was killed by SIGKILL")),
        (words((0, "done", "", 3)), KILLED, "", "", ("failed", "torchrun was killed by SIGKILL; rank 1")),
        (words(), ONE, "no such file\n", "", ("failed", "torchrun ended before any rank began")),
        (words((0, "done", "", 3)), None, "", "", ("lost", "torchrun ended (exit status unknown)")),
    ],
)  # fmt: skip
def test_the_first_cause_is_what_is_said(
    tmp_path: Path,
    state: RunState,
    agent: Exit | None,
    log: str,
    forced: str,
    expected: tuple[str, str],
) -> None:
    (tmp_path / "agent.log").write_text(log)
    word, cause = ending.judge(state, 1, 2, agent, tmp_path, forced)
    assert word == expected[0]
    assert cause.startswith(expected[1])
    assert bool(cause) == bool(expected[1])


def test_only_the_end_of_a_huge_log_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "agent.log"
    log.write_bytes(b"\xff\x00 garbage\n" * 100_000 + REPORT.encode())
    assert ending.rank_exits(log) == {1: -9}
    assert ending.rank_exits(tmp_path / "none.log") == {}
    assert ending.last_line(tmp_path / "none.log") == "its log is empty"
