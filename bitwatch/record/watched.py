"""How a training stands that bitwatch did not start: by what lives of it, and where only its log
is known, by whether that grows."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.follow import Liveness
from bitwatch.record.state import AttemptState, RankState, RunState

DAY_S = 86400.0
SILENT_S = 600.0  # a log alone without a line for so long: nobody writes it any more
UNWATCHED = "nobody watches it now"
NOBODY_SAW = "its processes have ended while nobody watched, and its record does not say how"


def has_processes(state: RunState) -> bool:
    """Whether more is known of it than its log."""
    return any(start.role in ("agent", "rank") for start in state.journal.processes.values())


def judge(
    state: RunState, number: int, moving: events.State, now: float, liveness: Liveness
) -> tuple[events.State, str, str]:
    """State, cause and note of an attempt whose end is not on record. `moving` is what its steps
    say of it, while it lives. Of a foreign run the lock says only that somebody watches."""
    watched = liveness.supervisor
    note = liveness.elsewhere or ("" if watched else UNWATCHED)
    if liveness.elsewhere:
        return "lost", liveness.elsewhere, note
    if not has_processes(state):
        if watched and not state.ranks_of(number):
            return "starting", "", note
        return _of_log(state, number, now, note)
    if watched:  # and will say so when it has ended
        return moving, "", note
    if liveness.agent or (liveness.ranks and not _has_launcher(state)):
        first = state.ranks_of(number).get(0, RankState())
        return ("running" if first.step else "starting"), "", note
    if liveness.ranks:
        return "lost", "its launcher is gone and its ranks live on", note
    return "lost", NOBODY_SAW, ""


def _has_launcher(state: RunState) -> bool:
    return any(start.role == "agent" for start in state.journal.processes.values())


def _of_log(state: RunState, number: int, now: float, note: str) -> tuple[events.State, str, str]:
    attempt = state.journal.attempts.get(number, AttemptState())
    started = attempt.started or events.AttemptStarted()
    first = state.ranks_of(number).get(0, RankState())
    silent_s = now - (first.updated or started.t)
    if silent_s >= SILENT_S:
        old = f"{silent_s / 60:.0f} minutes" if silent_s < DAY_S else f"{silent_s / DAY_S:.0f} days"
        return "lost", f"no process has it open; the last line is {old} old", note
    if silent_s > started.stall_s:
        return "stalled", "", note
    return ("running" if first.step else "starting"), "", note
