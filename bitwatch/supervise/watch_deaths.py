"""Alerts about ranks and workers that died: who was the first, how it ended, and what its log
said last."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

from bitwatch.record import events, readers
from bitwatch.record.view import END_STATES, View, is_echo
from bitwatch.supervise import ending
from bitwatch.supervise.watch_rows import of_attempt
from bitwatch.text import clock

NAMED = 6
LINES = 5  # of a log, in the evidence
# As a rank says it of its worker (trainer.data.lost), by itself or after other words.
LOST = re.compile(r"(?:worker \d+|a worker) of rank (?P<rank>\d+) \(pid \d+\).*? at \d\d:\d\d:\d\d")


class Logs:
    """What the logs of an attempt say; without a folder nothing. They are read when asked."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def last_lines(self, rank: int) -> list[str]:
        return [] if self._folder is None else _tail(self._folder / f"rank{rank}.log", rank)

    def exit_codes(self) -> dict[int, int]:
        """Of ranks, in torchrun's own report, which it writes at its end."""
        return {} if self._folder is None else ending.rank_exits(self._folder / "agent.log")


def about_deaths(view: View, logs: Logs) -> Iterator[events.Alert]:
    """Until torchrun has ended the others: seconds, in which this is what is known."""
    if view.state in (*END_STATES, "stopping"):
        return  # the cause of the end says it, or they were asked to leave
    lost = lost_workers(view)
    if lost:
        yield from _worker_lost(view, lost, logs)
        return
    yield from rank_died(view, logs)
    yield from workers_gone(view, logs)


def lost_workers(view: View) -> dict[str, int]:
    """The sentences in which ranks say that they lost a worker, each with its rank."""
    causes = [word.cause for _, word in sorted(view.last_words.items()) if word.state == "failed"]
    return {found[0]: int(found["rank"]) for cause in causes for found in LOST.finditer(cause)}


def _worker_lost(view: View, lost: dict[str, int], logs: Logs) -> Iterator[events.Alert]:
    told = list(lost)
    yield _worker_died(view, told, "could not go on without it", logs.last_lines(lost[told[0]]))


def workers_gone(view: View, logs: Logs) -> Iterator[events.Alert]:
    """Workers that are gone while their rank lives: they took what they were to read along."""
    if (view.steps and view.step >= view.steps) or not view.workers:
        return  # a rank ends its workers at the end; without any, the reader is the rank itself
    now = view.sampled or 0.0
    alive = {row.rank for row in of_attempt(view) if row.role == "rank" and row.state not in "ZX"}
    gone = [
        (rank, judged.reader)
        for (rank, _), judged in readers.judged(view, now).items()
        if judged.state == "dead" and judged.reader is not None and rank in alive
    ]
    told = []
    for _, reader in gone:
        doing = readers.doing(reader)
        told.append(
            f"rank {reader.rank} worker {reader.worker} (pid {reader.pid}) is gone"
            f"{f', {doing}' if doing else ''}, last heard of at {clock(reader.t)}"
        )
    if told:
        lines = logs.last_lines(gone[0][0])
        yield _worker_died(view, told, "cannot go on without it, and ends", lines)


def _worker_died(view: View, told: list[str], so: str, lines: list[str]) -> events.Alert:
    more = f" and {len(told) - 1} more" if told[1:] else ""
    return events.Alert(
        id="worker-died",
        severity="error",
        text=f"{told[0]}{more}; its rank {so}",
        evidence=[*told[:NAMED], *lines],
        next="look into the kernel's log (dmesg) for the out-of-memory killer; once it has ended: "
        f"key R, or bitwatch run --resume {view.run or 'RUN'}, {_goes_on(view)}",
    )


def _goes_on(view: View) -> str:
    if view.checkpoints:
        return "goes on from the newest checkpoint"
    return "starts it anew: there is no checkpoint yet"


def rank_died(view: View, logs: Logs) -> Iterator[events.Alert]:
    """Only the agent, whose children they are, learns how ranks ended: it says so at its end."""
    words, codes = view.last_words, logs.exit_codes()

    def comes_after(exit: events.ProcessExit) -> tuple[bool, float]:
        """Who lost another rank, or was ended for it, is not the first."""
        if exit.rank in words:
            return is_echo(words[exit.rank].cause), words[exit.rank].t
        ended = codes.get(exit.rank or 0, exit.status)
        return _signal(exit, codes) == signal.SIGTERM or ended in ending.TERMINATED, exit.t

    died = [
        exit
        for exit in (*view.exits, *_unseen(view, codes))
        if exit.rank is not None and (exit.rank not in words or words[exit.rank].state == "failed")
    ]
    died.sort(key=comes_after)
    if not died or died[0].rank is None:
        return
    first = died[0]
    told = [
        f"{f'pid {exit.pid}: ' if exit.pid else ''}rank {exit.rank} {_how(exit, words, codes)}"
        for exit in died
    ]
    yield events.Alert(
        id="rank-died",
        severity="error",
        text=f"rank {first.rank} {_how(first, words, codes)}"
        + ("; the others are ended with it" if view.ranks > 1 else ""),
        evidence=[*told[:NAMED], *logs.last_lines(died[0].rank)],
        next=f"once it has ended, key R {_goes_on(view)}; bitwatch logs {view.run} --rank {first.rank} "
        "shows its last lines",
    )


def _unseen(view: View, codes: dict[int, int]) -> list[events.ProcessExit]:
    """Ranks that came and went between two looks: only the agent knows of them."""
    seen = {exit.rank for exit in view.exits}
    return [
        events.ProcessExit(rank=r, t=0.0) for r, code in codes.items() if code and r not in seen
    ]


def _signal(exit: events.ProcessExit, codes: dict[int, int]) -> int | None:
    code = codes.get(-1 if exit.rank is None else exit.rank, 0)
    return -code if exit.signal is None and code < 0 else exit.signal


def _how(
    exit: events.ProcessExit, words: dict[int, events.RankEnded], codes: dict[int, int]
) -> str:
    if exit.rank in words:
        return f"failed: {words[exit.rank].cause}"
    number = _signal(exit, codes)
    status = (
        codes.get(-1 if exit.rank is None else exit.rank) if exit.status is None else exit.status
    )
    if number is not None:
        try:
            return f"was killed by {signal.Signals(number).name}"
        except ValueError:
            return f"was killed by signal {number}"
    return "is gone without a last word" if status is None else f"ended with exit code {status}"


def _tail(log: Path, rank: int) -> list[str]:
    return [f"rank {rank}'s log: {line}" for line in ending.last_lines(log, LINES)]
