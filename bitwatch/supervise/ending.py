"""How an attempt ended: the ranks' own last words first, then what the kernel and torchrun
say. What nobody can tell is said to be unknown, never guessed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path

import msgspec

from bitwatch import utf8
from bitwatch.record import events, rundir
from bitwatch.record.follow import Follower
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.state import RunState
from bitwatch.record.view import is_echo, verdict, view
from bitwatch.supervise import escalation, reaper, saved, stopping
from bitwatch.supervise.reaper import Exit
from bitwatch.text import literal

LOG_TAIL_BYTES = 64 << 10
TERMINATED = (-signal.SIGTERM, 128 + signal.SIGTERM)  # by the signal, or by itself at it
LINE_CHARACTERS = 300  # of a line of a log


def judge(
    state: RunState,
    attempt: int,
    ranks: int,
    agent: Exit | None,
    logs: Path,
    forced: str,
) -> tuple[events.EndState, str]:
    """State and cause. `forced` says who ended it by signal, and is empty when nobody did."""
    words = state.ranks_of(attempt)
    said = verdict(state, attempt, ranks)
    if said and said[0] != "failed":
        return said
    if forced:
        return "stopped", forced
    silent = _silent(state, attempt, ranks)
    if said and not is_echo(said[1]):
        return said
    if first := _first_reported(silent, logs):
        return "failed", first
    if said:
        return said
    if len(silent) == ranks and not words:
        last = last_line(logs / "agent.log")
        prepare = state.prepares.get(attempt)
        if prepare and not prepare.ended:
            how = reaper.describe(agent)
            return "failed", f"preparing the text ended without a last word ({how}): {last}"
        return "failed", f"torchrun ended before any rank began ({reaper.describe(agent)}): {last}"
    who = "no rank" if len(silent) == ranks else f"rank {', '.join(map(str, silent))}"
    missing = "left a last word" if len(silent) == ranks else "left no last word"
    if agent and (agent.signal is not None or agent.status):
        return "failed", f"torchrun {_agent(agent)}; {who} {missing}"
    lost: events.EndState = "lost"
    cause = f"torchrun ended ({reaper.describe(agent)}); {who} {missing}"
    return saved.end(state, attempt, agent) or (lost, cause)


def is_over(state: RunState, attempt: int) -> bool:
    """Whether the record says so, of this attempt or by a later one."""
    known = state.journal.attempts.get(attempt)
    return (known is not None and known.ended is not None) or state.newest_attempt() > attempt


def close_dead(
    run: RunDir, follower: Follower, attempt: int, by: str
) -> tuple[events.EndState, str]:
    """Closes the record of an attempt of which nothing lives; how it ended. The caller holds
    the lock. Raises RunDirError when the disk is too full for that."""
    state = follower.state
    ended = of_the_dead(run, follower, attempt)
    journal = JournalWriter(run.journal, run.reserve)
    journal.write(
        events.Action(name="close", by=by, on=f"attempt {attempt}", result="exit status unknown")
    )
    whole = write(run, journal, state, attempt, ended, "exit status unknown")
    journal.close()
    if not whole:
        raise RunDirError(f"not written into the record: {run.journal}: the disk is full")
    with contextlib.suppress(OSError):  # a folder that is read-only keeps it
        run.reserve.unlink(missing_ok=True)
    return ended


def of_the_dead(run: RunDir, follower: Follower, attempt: int) -> tuple[events.EndState, str]:
    """State and cause of an attempt whose supervisor died before it could say how it ended."""
    state = follower.state
    # The lock is held, but by us: that is no supervisor.
    alive = msgspec.structs.replace(follower.liveness(), supervisor=False, young=False)
    seen = view(state, time.time(), alive)
    if seen.state in ("done", "stopped"):
        return seen.state, seen.cause
    if by_force := escalation.forced(state, attempt):
        return "stopped", by_force
    if seen.state == "failed" and not is_echo(seen.cause):
        return "failed", seen.cause
    known = state.journal.attempts.get(attempt)
    ranks = known.started.ranks if known and known.started else 0
    if first := _first_reported(_silent(state, attempt, ranks), run.logs(attempt)):
        return "failed", first
    if seen.state == "failed":
        return "failed", seen.cause
    began = [p for p in state.journal.processes.values() if p.attempt == attempt]
    nobody = all(process.role == "supervisor" for process in began) and not state.ranks_of(attempt)
    if nobody and not alive.elsewhere:
        return "lost", "its supervisor died before it could start torchrun"
    asked = stopping.read(run, attempt)
    return saved.end(state, attempt, None, asked) or ("lost", seen.cause)


def _silent(state: RunState, attempt: int, ranks: int) -> list[int]:
    """Ranks without a last word."""
    words = state.ranks_of(attempt)
    return [rank for rank in range(ranks) if rank not in words or not words[rank].ended]


def _first_reported(silent: list[int], logs: Path) -> str:
    """Which of the ranks that had no last word ended first, and how, by torchrun's report."""
    reported = rank_exits(logs / "agent.log")
    # torchrun ends the others with SIGTERM: whoever died of it was not the first.
    first = [rank for rank in silent if reported.get(rank, -signal.SIGTERM) not in TERMINATED]
    return f"rank {first[0]} {_status(reported[first[0]])}, without a last word" if first else ""


def write(
    run: RunDir,
    journal: JournalWriter,
    state: RunState,
    attempt: int,
    ended: tuple[events.EndState, str],
    agent: str,
) -> bool:
    """attempt-ended, run-ended and exit.json. Whether the journal has the end of the attempt."""
    steps = [rank.step.step for rank in state.ranks_of(attempt).values() if rank.step]
    if kept := saved.newest(state, attempt):
        steps.append(kept.step)
    step = max(steps, default=None)
    word, cause = ended
    end = events.AttemptEnded(attempt=attempt, state=word, cause=cause, step=step)
    whole = journal.write(end, last_word=True)
    journal.write(events.RunEnded(state=word, cause=cause), last_word=True)
    said = {"attempt": attempt, "state": word, "cause": cause, "step": step}
    with contextlib.suppress(OSError):  # a full disk: the journal has it, or nobody can
        data = utf8.to_json({**said, "agent": agent, "ended": time.time()})
        rundir.write_whole(run.exit(attempt), data)
    return whole


def rank_exits(agent_log: Path) -> dict[int, int]:
    """Exit codes of ranks by torchrun's own failure report; negative for a signal."""
    text = tail(agent_log)
    found = {}
    for match in re.finditer(
        r"rank\s*:\s*(\d+) \(local_rank: \d+\)\s+exitcode\s*:\s*(-?\d+)", text
    ):
        found[int(match[1])] = int(match[2])
    return found


def tail(path: Path) -> str:
    """The end of a file; empty when there is none, or a pipe that would be waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LOG_TAIL_BYTES))
            return file.read(LOG_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines that say something, without what a terminal would obey."""
    lines = [line.strip() for line in tail(path).splitlines() if line.strip()]
    return [literal(line[:LINE_CHARACTERS]) for line in lines[-count:]]


def last_line(path: Path) -> str:
    return "".join(last_lines(path, 1)) or "its log is empty"


def _status(code: int) -> str:
    return f"was killed by {reaper.name(-code)}" if code < 0 else f"ended with exit code {code}"


def _agent(agent: Exit) -> str:
    if agent.signal is not None:
        return f"was killed by {reaper.name(agent.signal)}"
    return f"ended with exit code {agent.status}"
