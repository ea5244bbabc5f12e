"""What every reader is doing, judged from its own account and the newest sample. Pure.

An account says what the reader knew when it last wrote. That it is dead, stopped or stuck it
cannot say itself: the sample of processes and the time since its last movement do.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from bitwatch.record.events import Reader
from bitwatch.record.view import END_STATES, View

STUCK_S = 5.0  # in one read: no shorter one is stuck
STUCK_READS = 2  # or as many times the longest read that it has finished
# A reader that tries again pauses up to a minute between two tries, and gives up after two
# (trainer.data.retry): one that has not moved for longer is stuck in a try.
RETRYING_S = 130.0
# Between the word of an epoch's end and the end of its workers: they read on meanwhile.
SEAM_S = 10.0
GONE_S = 2.0  # a sample so much newer than the account has seen whether its process is there

NEVER = "never"  # no account of this reader, and none to come
AT_WORK = ("starting", "reading", "waiting")  # of an account: it will go on by itself
SHOWN_SHARDS = 4  # of one reader, in a sentence
HALTED = ("T", "t")  # by a signal, or under a debugger: the letter of /proc/PID/stat

Key = tuple[int, int]  # rank, worker


class Judged(NamedTuple):
    """`state`: starting, reading, waiting, done, idle (given no data) and failed, as the account
    says; retrying (cannot reach the text just now), stuck, dead, stopped (with its attempt) and
    never, as is judged here. `since`: wall-clock time of the reader's last movement."""

    state: str
    reader: Reader | None
    since: float | None


def judged(view: View, now: float) -> dict[Key, Judged]:
    """Every reader of the training text that there is or should be, by rank and worker."""
    accounts = {(r.rank, r.worker): r for r in view.readers if r.loader == "train"}
    if not accounts and not view.attempt:
        return {}
    ranks = max([view.ranks, *(rank + 1 for rank, _ in accounts)])
    workers = max([view.workers, 1, *(worker + 1 for _, worker in accounts)])
    pids = {reader.pid for reader in accounts.values()}
    letters = {(p.pid, p.starttime): p.state for p in view.processes if p.pid in pids}
    sampled = any(p.state for p in view.processes)
    found: dict[Key, Judged] = {}
    for key in itertools.product(range(ranks), range(workers)):
        reader = accounts.get(key)
        letter = letters.get((reader.pid, reader.starttime), "") if reader else ""
        found[key] = _judge(view, reader, letter, now, sampled=sampled)
    return found


def _judge(view: View, reader: Reader | None, letter: str, now: float, *, sampled: bool) -> Judged:
    """`letter`: of the reader's process in the newest sample, empty where that does not show it;
    `sampled`: whether that shows any."""
    over = view.state in END_STATES
    if reader is None:
        return Judged(NEVER if over else "starting", None, None)
    since = reader.moved or reader.t
    if reader.state not in AT_WORK:
        return Judged(reader.state, reader, since)
    if over:
        return Judged("stopped", reader, since)
    if _is_gone(view, reader, letter, sampled=sampled):
        return Judged("starting" if _at_the_seam(view, reader) else "dead", reader, since)
    if letter in HALTED:
        return Judged("stuck", reader, since)
    # An account of an older version has no `moved`: nobody knows.
    still_s = now - reader.moved if reader.moved and (letter or not sampled) else 0.0
    if reader.state == "reading" and reader.error:
        return Judged("retrying" if still_s < RETRYING_S else "stuck", reader, since)
    if reader.state == "reading" and still_s >= patience_s(reader):
        return Judged("stuck", reader, since)
    return Judged(reader.state, reader, since)


def _at_the_seam(view: View, reader: Reader) -> bool:
    """Whether the end of an epoch took it along. New workers are on their way then, but a whole
    checkpoint may be written first; from the first step on, they are there."""
    ended, step = view.rank_epochs.get(reader.rank), view.rank_steps.get(reader.rank)
    if ended is None:
        return False
    goes_on = step is not None and step.t > ended.t
    return reader.t <= ended.t + (0.0 if goes_on else SEAM_S)


def patience_s(reader: Reader) -> float:
    """How long one read of it may take: where every read takes 10 s, none of them is stuck."""
    return max(STUCK_S, STUCK_READS * (reader.longest_read_s or 0.0))


def _is_gone(view: View, reader: Reader, letter: str, *, sampled: bool) -> bool:
    """Whether a sample that would show its process does not, or shows what a dead one leaves."""
    if letter:
        return letter in ("Z", "X")
    seen = sampled and view.sampled is not None
    return seen and (view.sampled or 0.0) > reader.t + GONE_S


def shard_of(reader: Reader) -> str:
    """What it is in, or was given, in words: "shard 1"; empty for nothing."""
    shards = [reader.shard] if reader.shard is not None else reader.shards
    if not shards:
        return ""
    if shards == ["index"]:
        return "the index"
    shown = ", ".join(str(shard) for shard in shards[:SHOWN_SHARDS])
    more = f" and {len(shards) - SHOWN_SHARDS} more" if len(shards) > SHOWN_SHARDS else ""
    return f"shard{'s' if len(shards) > 1 else ''} {shown}{more}"


def doing(reader: Reader) -> str:
    """What it did when it last wrote: "reading shard 1"; empty where its account says nothing."""
    what = shard_of(reader)
    if reader.state == "reading" and what:
        return f"reading {what}"
    if reader.state == "waiting" and what:
        return f"with {what} open"
    return {"idle": "given nothing to read", "done": "done with its text"}.get(reader.state, "")
