"""Signals that a person sends to processes from a screen: to exactly those that were seen.

Every signal goes through a pidfd that is checked against the start time. Who may not be
signalled, or is not there any more, is named in the answer.
"""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Collection, Sequence

from bitwatch.attach import gone
from bitwatch.record import events, rundir
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.sense import processes
from bitwatch.sense.facts import NOBODY, Facts
from bitwatch.sense.processes import Key, Stat
from bitwatch.sense.stat import read_raw
from bitwatch.supervise import control
from bitwatch.supervise.evidence import ancestors
from bitwatch.supervise.ownership import OURSELVES

SIGNALS: tuple[tuple[str, str], ...] = (
    ("TERM", "asks it to end; what it has not saved is lost"),
    ("KILL", "ends it at once; it can save nothing"),
    ("INT", "interrupts it, as ctrl+c in its terminal"),
    ("HUP", "as if its terminal had been closed; most programs end"),
    ("STOP", "holds it where it is; its training waits for it"),
    ("CONT", "lets it go on after STOP"),
    ("QUIT", "ends it, with a core file where the system writes them"),
    ("USR1", "whatever its program makes of it; else refused"),
    ("USR2", "whatever its program makes of it; else refused"),
)
UNHANDLED_ENDS = ("USR1", "USR2")  # sent for another reason than to end it
OUTSIDE = "outside this PID namespace"
ENDED = "has ended already"
NAMED = 6  # pids in one sentence
ANSWER_S = 2.0  # of a supervisor that may be stopped, or be the one that was signalled
STATUS_BYTES = 1 << 20


def send(run: RunDir, targets: Sequence[Key], name: str) -> str:
    """Sends the signal `name` (of SIGNALS) to each (pid, starttime), and writes it into the
    record of `run`. What it says is for a person. Raises RunDirError where the run is not of
    this machine: its pids mean other processes here."""
    elsewhere = _elsewhere(run)
    if elsewhere and elsewhere != rundir.REBOOTED:
        raise RunDirError(f"{run.id}: {elsewhere}; nothing of it can be signalled from here")
    if name not in dict(SIGNALS):
        return f"SIG{name} is not among the signals that are sent from here"
    facts, spared = Facts(), ancestors()
    refused: dict[str, list[int]] = {}
    sent: list[int] = []
    for pid, starttime in dict.fromkeys(targets):
        if why := _send_one(pid, starttime, name, facts, spared):
            refused.setdefault(why, []).append(pid)
        else:
            sent.append(pid)
    parts = [f"SIG{name} sent to {_pids(sent)}"] if sent else []
    parts += [f"{_pids(pids)} {why}" for why, pids in refused.items()]
    said = "; ".join(parts) or "nothing was chosen"
    if sent and (trouble := note(run, _pids(sent), said, f"the screen (pid {os.getpid()})")):
        said += f"; not written into the record: {trouble}"
    return said


def barred(stat: Stat, facts: Facts, spared: Collection[int]) -> str:
    """Why this process cannot be signalled from here; empty when it can. `spared`: pids of
    ourselves and our ancestors."""
    if stat.pid in spared:
        return OURSELVES
    user = facts.user(stat)
    if user not in (NOBODY, os.getuid()):
        return f"of another user ({user_name(user)})"
    return OUTSIDE if facts.in_our_namespace(stat) is False else ""


def user_name(uid: int) -> str:
    """Its number where it has none, as users of a container have."""
    if uid == NOBODY:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _send_one(pid: int, starttime: int, name: str, facts: Facts, spared: Collection[int]) -> str:
    """Why it was not sent; empty when it was."""
    if not starttime:
        return f"is {OUTSIDE}"
    stat = processes.read_stat(pid)
    if stat is None or stat.starttime != starttime or processes.is_dead(stat):
        return ENDED
    if why := barred(stat, facts, spared):
        return f"is {why}"
    number = signal.Signals[f"SIG{name}"]
    if name in UNHANDLED_ENDS and not _handles(pid, number):
        return f"does nothing of its own with SIG{name}, which would end it"
    if processes.send_signal(pid, starttime, number):
        return ""
    now = processes.read_stat(pid)
    gone = now is None or now.starttime != starttime or processes.is_dead(now)
    return ENDED if gone else "may not be signalled"


def _handles(pid: int, number: signal.Signals) -> bool:
    """Whether it catches or ignores this signal; where that cannot be known, it does not."""
    for line in (read_raw(f"/proc/{pid}/status", limit=STATUS_BYTES) or b"").splitlines():
        field, _, mask = line.partition(b":")
        if field in (b"SigCgt", b"SigIgn") and int(mask, 16) >> (number - 1) & 1:
            return True
    return False


def _pids(pids: Sequence[int]) -> str:
    shown = [f"pid {pid}" for pid in pids[:NAMED]]
    more = [f"{len(pids) - NAMED} more"] if len(pids) > NAMED else []
    return ", ".join(shown + more)


def _elsewhere(run: RunDir) -> str:
    try:
        return rundir.is_here(run.identity())
    except RunDirError:  # the folder of a leftover's run may be gone
        return ""


# ---------------------------------------------------------------------------------------
# The record


def note(run: RunDir, on: str, result: str, by: str) -> str:
    """Has the one writer of the record write down what was done, or does it where there is
    none. Why that could not be, or nothing."""
    if gone.is_gone(run):  # what is written there would look like a run, and be none
        return gone.GONE
    try:
        lock = rundir.Lock(run)
    except rundir.LockHeld:
        return _tell_the_supervisor(run, on, result, by)
    except RunDirError as error:
        return str(error)
    try:
        journal = JournalWriter(run.journal)
        whole = journal.write(events.Action(name="signal", by=by, on=on, result=result))
        journal.close()
        return "" if whole else f"{run.journal}: the disk is full"
    except OSError as error:
        return f"{run.journal}: {error.strerror}"
    finally:
        lock.release()


def _tell_the_supervisor(run: RunDir, on: str, result: str, by: str) -> str:
    request = control.Request("signalled", by, on=on, result=result)
    try:
        # Without waking it: it may be the very one that a person has just stopped.
        answer = control.ask(control.socket_path(run.path), request, ANSWER_S, wake=False)
    except control.ControlError:
        return "its supervisor does not answer"
    return "" if answer.ok else answer.text
