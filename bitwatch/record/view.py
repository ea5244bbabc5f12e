"""What a run looks like at a moment: `view(state, now, liveness)`, a pure function.

Every face (headless lines, `ls`, the screen, a report) shows this and nothing else. State is
what the records say; `now` and `liveness` say what no record can: that a supervisor is gone,
that nothing has moved for too long, that the machine has been rebooted since.
"""

from __future__ import annotations

import math
import re
from typing import Any

from bitwatch.record import afterwards, events, joined, stops, watched
from bitwatch.record.follow import Liveness
from bitwatch.record.recent import data_share, median_step_s, own_time
from bitwatch.record.seen import END_STATES, ProcessRow, View
from bitwatch.record.series import Series
from bitwatch.record.stalls import lasted, moving
from bitwatch.record.state import AttemptState, PrepareState, RankState, RunState

ECHO = re.compile(
    r"gloo|NCCL|TCPStore|ProcessGroup|Dist(Backend|Network|Store)Error|[Cc]onnection (reset|closed)"
    r"|Timed out waiting"
)


def view(state: RunState, now: float, liveness: Liveness) -> View:
    number = state.newest_attempt()
    attempt = state.journal.attempts.get(number, AttemptState())
    ranks = state.ranks_of(number)
    first = ranks.get(0, RankState())
    started = attempt.started or events.AttemptStarted(t=first.started or now, m=0.0)
    run_state, cause, note = _judge(state, number, now, liveness)
    run = state.journal.run
    told = [step for rank in ranks.values() if (step := _step_of(rank)) is not None]
    if attempt.ended and attempt.ended.step is not None:
        told.append(attempt.ended.step)  # which may have found a checkpoint that no rank told of
    step = max(told) if told else _kept_step(state)
    moved = [r.updated for r in ranks.values() if r.updated]
    if number in state.prepares:
        moved.append(state.prepares[number].updated)
    over = run_state in END_STATES
    phase = first.phase or state.prepares.get(number, PrepareState()).phase
    after = afterwards.alerts(state, number, (run_state, cause), liveness, now)
    raised = [a for (n, _), a in state.journal.alerts.items() if n == number and not over]
    return View(
        run=run.run if run else "",
        name=run.name if run else "",
        foreign=run.foreign if run else False,
        state=run_state,
        attempt=number,
        launched=started.cause,
        before=state.journal.attempts.get(number - 1, AttemptState()).ended,
        cause=cause,
        note=note,
        supervisor="alive" if liveness.supervisor else ("ended" if over else "gone"),
        started=run.t if run else None,
        attempt_started=attempt.started.t if attempt.started else None,
        updated=max([*moved, state.journal.updated], default=None) or None,
        ended=_ended(state, attempt, moved) if over else None,
        device=started.device,
        ranks=started.ranks,
        workers=started.workers,
        phase="" if over or not phase else phase.name,
        phase_text="" if over or not phase else phase.text,
        phase_progress=None if over or not phase else phase.progress,
        asked=first.model.asked if first.model else None,
        built=first.model.built if first.model else None,
        held=first.model.held if first.model else [],
        step=step,
        steps=started.steps,
        last=first.step,
        recent=first.recent,
        epoch=first.epoch,
        rank_epochs={n: rank.epoch for n, rank in ranks.items() if rank.epoch},
        data_shares={n: s for n, rank in ranks.items() if (s := data_share(rank)) is not None},
        own_times={n: own for n, rank in ranks.items() if (own := own_time(rank)) is not None},
        relaunch_of=started.relaunch_of,
        correction=started.correction,
        models=[
            (n, rank.model) for (n, r), rank in sorted(state.ranks.items()) if r == 0 and rank.model
        ],
        notes=first.notes,
        eta_s=None if over or run_state in ("stalled", "stopping") else _eta(first, started, now),
        evaluations=_all(state, "evaluations"),
        checkpoints=_all(state, "checkpoints"),
        loss=[(n, rank.loss) for (n, r), rank in sorted(state.ranks.items()) if r == 0],
        curves=_curves(state),
        visible_devices=started.visible_devices,
        grace_s=started.grace_s,
        stuck=attempt.stuck if run_state == "stalled" and _is_of_now(attempt, first) else None,
        plan=attempt.planned.plan if attempt.planned else {},
        readers=state.readers_of(number),
        last_words={n: rank.ended for n, rank in ranks.items() if rank.ended},
        unwritten=state.unwritten_of(number),
        exits=_exits(state, number),
        rank_steps={n: rank.step for n, rank in ranks.items() if rank.step},
        rank_firsts={n: rank.first_step for n, rank in ranks.items() if rank.first_step},
        log_every=started.log_every,
        processes=[] if over and not liveness.supervisor else _processes(state),
        sampled=state.samples.processes.t if state.samples.processes else None,
        gpus=state.samples.gpus,
        gpu_history=state.gpu_history,
        alerts=[*(a for a in raised if a.id not in {late.id for late in after}), *after],
        leftovers=list(liveness.leftovers),
        past_alerts=list(state.journal.alert_history),
        attempt_ends={n: a.ended.t for n, a in state.journal.attempts.items() if a.ended},
    )


def _ended(state: RunState, attempt: AttemptState, moved: list[float]) -> float | None:
    """When there was the last sign of life. The record may have been closed long after, and what
    is cleaned up later is written into it too."""
    sample = state.samples.processes
    latest = max([*moved, *([sample.t] if sample else [])], default=math.inf)
    written = attempt.ended.t if attempt.ended else math.inf
    ended = min(latest, written)
    return None if ended == math.inf else ended


def _curves(state: RunState) -> dict[str, list[tuple[int, Series]]]:
    found: dict[str, list[tuple[int, Series]]] = {}
    for (attempt, rank), told in sorted(state.ranks.items()):
        if rank == 0:
            for name, series in told.curves.items():
                found.setdefault(name, []).append((attempt, series))
    return found


def _exits(state: RunState, number: int) -> list[events.ProcessExit]:
    """Of the ranks of an attempt, as far as the supervisor has seen them."""
    journal = state.journal
    return [
        exit
        for key, exit in journal.exits.items()
        if exit.role == "rank"
        and key in journal.processes
        and journal.processes[key].attempt == number
    ]


def _processes(state: RunState) -> list[ProcessRow]:
    """Rows of the newest sample, with the command line and the start that the journal has."""
    sample, journal, samples = state.samples.processes, state.journal, state.samples
    if sample is None:
        return []
    same = samples.joined_at == journal.starts
    found = joined.renew(sample, samples.joined) if same else None
    if found is None:
        found = joined.join(sample, journal.processes, samples.joined)
    samples.joined, samples.joined_at = found, journal.starts
    return [one.row for one in found]


def _judge(
    state: RunState, number: int, now: float, liveness: Liveness
) -> tuple[events.State, str, str]:
    """State, cause and note. What the record says ended, ended; the ranks' own last words
    come next; then what lives decides."""
    attempt = state.journal.attempts.get(number, AttemptState())
    ranks = state.ranks_of(number)
    if attempt.ended:
        return attempt.ended.state, attempt.ended.cause, liveness.elsewhere
    if state.journal.ended and not ranks:
        return state.journal.ended.state, state.journal.ended.cause, liveness.elsewhere
    if not number:
        if liveness.supervisor or liveness.young:
            return "preparing", "", ""
        return "lost", "never started", liveness.elsewhere
    if state.journal.run and state.journal.run.foreign:
        began = attempt.started.t if attempt.started else now
        moves = moving(ranks, attempt, began, {}, now)
        return watched.judge(state, number, moves, now, liveness)
    here = not liveness.elsewhere
    alive = here and (liveness.supervisor or liveness.agent or bool(liveness.ranks))
    if not alive:
        said = verdict(state, number, attempt.started.ranks if attempt.started else None)
        if said:
            return said[0], said[1], liveness.elsewhere or "record not closed"
        cause = liveness.elsewhere or "everything of it died at once; no last word in the record"
        return "lost", cause, liveness.elsewhere
    note = "" if liveness.supervisor else "supervisor gone; the ranks go on"
    if _stop_asked(state, attempt) or any(
        r.phase and r.phase.name == "stop" for r in ranks.values()
    ):
        return "stopping", "", note
    prepare = state.prepares.get(number)
    if prepare and not prepare.ended and not ranks:
        silent = now - prepare.updated > (attempt.started or events.AttemptStarted()).stall_s
        return "stalled" if silent else "preparing", "", note
    began = max(attempt.started.t if attempt.started else 0.0, prepare.updated if prepare else 0.0)
    return moving(ranks, attempt, began, _lasted(state), now), "", note


def verdict(
    state: RunState, number: int, expected: int | None
) -> tuple[events.EndState, str] | None:
    """How an attempt ended by the last words of those who worked on it; None when they do not
    say. `expected`: ranks that it was to have.

    The first cause is the earliest failure that is no echo: a rank that lost its peer says so
    within milliseconds, often before the one that failed has found its words.
    """
    ranks = state.ranks_of(number)
    prepare = state.prepares.get(number)
    if not ranks and prepare and prepare.ended and prepare.ended.state != "done":
        return prepare.ended.state, prepare.ended.cause
    words = [rank.ended for rank in ranks.values() if rank.ended]
    failed = [word for word in words if word.state == "failed"]
    failures = sorted(failed, key=lambda word: (is_echo(word.cause), word.t))
    if failures:
        return "failed", failures[0].cause or f"rank {failures[0].rank} failed"
    if words and len(words) == (expected or len(ranks)):
        stopped = any(word.state == "stopped" for word in words)
        return ("stopped", stops.cause(words)) if stopped else ("done", "")
    return None


def is_echo(cause: str) -> bool:
    """Whether a cause is only that a collective lost another rank, or waited for it in vain."""
    return ECHO.search(cause) is not None


def _stop_asked(state: RunState, attempt: AttemptState) -> bool:
    began = attempt.started.t if attempt.started else 0.0
    return any(action.name == "stop" and action.t >= began for action in state.journal.actions)


def _is_of_now(attempt: AttemptState, first: RankState) -> bool:
    """Whether the ranks were asked where they wait since the last movement."""
    return attempt.stuck is not None and attempt.stuck.t >= first.updated


def _lasted(state: RunState) -> dict[str, float]:
    return lasted(state, _all(state, "checkpoints"), _all(state, "evaluations"))


def _eta(first: RankState, started: events.AttemptStarted, now: float) -> float | None:
    usual = median_step_s(first)
    if not first.step or usual is None or not started.steps:
        return None
    left = started.steps - first.step.step
    return max(0.0, left * usual - max(0.0, now - first.step.t))


def _kept_step(state: RunState) -> int:
    """The step that the newest attempt has to go on from, by what those before it have saved; it
    says itself which one it is, once it knows."""
    saved = [
        (n, rank.checkpoints[-1].step) for (n, _), rank in state.told().items() if rank.checkpoints
    ]
    return max(saved)[1] if saved else 0


def _step_of(rank: RankState) -> int | None:
    """The newest step that a rank has told of: between two step records it may have saved
    or ended, and before the first one it says where it goes on. None before all that."""
    steps = [note.step for note in rank.notes if note.step is not None]
    steps += [record.step for record in (rank.step, *rank.checkpoints[-1:], rank.ended) if record]
    return max(steps, default=None)


def _all(state: RunState, field: str) -> list[Any]:
    """Rank 0's list over all attempts, in order of attempt; a step that repeats counts once,
    as the later attempt has it."""
    by_step: dict[int, Any] = {}
    for (_, rank), rank_state in sorted(state.told().items()):
        if rank == 0:
            for record in getattr(rank_state, field):
                by_step.pop(record.step, None)
                by_step[record.step] = record
    return list(by_step.values())
