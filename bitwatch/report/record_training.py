"""Findings about what a recorded run trained and on what: the model of each attempt, its
readers, its losses, where it was stuck, and from where a resume would go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from bitwatch.lines import model_words
from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.report import meanings
from bitwatch.report.model import Evidence, Finding, Verdict
from bitwatch.report.record_read import Record
from bitwatch.report.record_words import cut
from bitwatch.text import counted

SHOWN = 8  # places in the evidence of one finding
STEP_FOLDER = re.compile(r"step-(\d{1,18})")


def models(record: Record, seen: View, verdict: Verdict) -> Iterator[Finding]:
    """Which model each attempt built, against what was asked for, and against those before."""
    places = record.story.places
    built = [(number, model) for number, model in seen.models if model.built]
    for number, model in built:
        said = model_words(model.asked, model.built, model.held)
        verdict.shown.append(f"attempt {number} of {record.run.id}: {said}")
        if model.asked is not None and model.asked != model.built:
            yield Finding(
                id="parameters-differ",
                severity="error",
                title=f"attempt {number} built {model.built:,} parameters, and {model.asked:,} "
                "were asked for",
                evidence=_known(places.get(("model", number))),
                why=meanings.why("parameters-differ"),
                next=meanings.NEXT["parameters-differ"],
            )
    for (before, larger), (number, model) in pairwise(built):
        if model.built < larger.built:
            yield _lowered(record, (before, larger), (number, model))


def _lowered(
    record: Record, before: tuple[int, events.ModelBuilt], after: tuple[int, events.ModelBuilt]
) -> Finding:
    places = record.story.places
    keys: list[tuple[object, ...]] = [
        ("model", before[0]),
        ("attempt", after[0]),
        ("model", after[0]),
    ]
    known = record.state.journal.attempts.get(after[0])
    by = known.started.by if known and known.started else ""
    return Finding(
        id="target-lowered",
        severity="warning",
        title=f"attempt {after[0]} built {after[1].built:,} parameters, attempt {before[0]} had "
        f"built {before[1].built:,}",
        evidence=[place for key in keys for place in _known(places.get(key))],
        why="Both are counts of the whole model before it was sharded, so this is another model "
        f"and not one rank's part. It was launched {f'by {by}' if by else 'by nobody on record'}; "
        "nothing of bitwatch lowers a target by itself.",
        next="compare attempts/N/config.toml of the two; start the larger one as a run of its own "
        "if it is the one you want",
    )


def readers(record: Record, seen: View, verdict: Verdict) -> Iterator[Finding]:
    """Readers that say themselves that they were given nothing, in each attempt. Of an index the
    plan must say so too: what an epoch has left after a resume may be too few for all."""
    for number in sorted({key[0] for key in record.state.readers}):
        accounts = [r for r in record.state.readers_of(number) if r.loader == "train"]
        idle = [r for r in accounts if r.state == "idle"]
        attempt = record.state.journal.attempts.get(number)
        planned = attempt.planned.plan.get("data") if attempt and attempt.planned else None
        data = planned if isinstance(planned, dict) else {}
        if not idle or (data.get("mode") == "indexed" and not data.get("readers_idle")):
            continue
        names = [f"rank {r.rank} worker {r.worker}" for r in idle]
        verdict.shown.append(
            f"in attempt {number} of {record.run.id}, {len(idle)} of {len(accounts)} readers said "
            "that they were given nothing to read"
        )
        yield Finding(
            id="idle-reader",
            severity="warning",
            title=f"attempt {number}: {len(idle)} of {len(accounts)} readers had nothing to read: "
            f"{', '.join(names[:SHOWN])}{' and more' if len(names) > SHOWN else ''}",
            evidence=[
                Evidence(
                    source=place.source,
                    line=place.line,
                    t=place.t,
                    text=f"{name} (pid {reader.pid}): given no shard",
                )
                for name, reader in zip(names[:SHOWN], idle, strict=False)
                for place in _known(
                    record.story.places.get(("reader", number, "train", reader.rank, reader.worker))
                )
            ],
            why=meanings.why("idle-reader"),
            next="bitwatch plan shows corrections: data.sharding reshard or indexed gives every "
            "reader work",
        )


def losses(record: Record, verdict: Verdict) -> Iterator[Finding]:
    for number, told in sorted(record.story.losses.items()):
        if not told.count:
            continue
        many = counted(told.count, "step record")
        verdict.shown.append(f"attempt {number} of {record.run.id}: {told.first.text}")
        yield Finding(
            id="loss-not-finite",
            severity="error",
            title=f"attempt {number}: {told.first.text}, the first of {many} like that",
            evidence=[told.first],
            why="Class of the cause: configuration (learning rate, precision) or architecture; "
            f"the record alone cannot tell which. {meanings.why('loss-not-finite')}",
            next="resume from a checkpoint before that step with a lower train.learning_rate, or "
            "with train.on_not_finite set to what you want",
        )


def stalls(record: Record, verdict: Verdict) -> Iterator[Finding]:
    """Where ranks waited when somebody looked, and for whom."""
    for number, attempt in sorted(record.state.journal.attempts.items()):
        stuck = attempt.stuck
        if stuck is None or not stuck.text:
            continue
        place = record.story.places.get(("stuck", number))
        verdict.shown.append(f"attempt {number} of {record.run.id} was stuck: {cut(stuck.text)}")
        yield Finding(
            id="stalled",
            severity="warning",
            title=f"attempt {number} took no step: {cut(stuck.text)}",
            evidence=[
                *_known(place),
                *(
                    Evidence(
                        source=f"rank {wait.rank}",
                        t=stuck.t or None,
                        text=cut(
                            f"{wait.kind}: {wait.where or 'place not known'}"
                            f"{f' ({wait.evidence[0]})' if wait.evidence else ''}"
                        ),
                    )
                    for wait in stuck.waits[:SHOWN]
                ),
            ],
            why="The ranks were asked where they are. Who only waits for the others is not to blame.",
            next=_next_of_stuck(stuck),
        )


def _next_of_stuck(stuck: events.Stuck) -> str:
    kinds = {wait.kind for wait in stuck.waits}
    if "stopped" in kinds:
        return "a process that a signal has stopped goes on with kill -CONT PID"
    if "data" in kinds:
        return "look at the source that the named reader was in: a disk, a network, a damaged file"
    if "kernel" in kinds:
        return "state D is a disk, a network file system or a driver that does not answer"
    return "the frames say where; bitwatch logs shows what the ranks printed"


def checkpoints(record: Record, seen: View, verdict: Verdict) -> Iterator[Finding]:
    """What a resume would go on from: what is whole on the disk now, not what was once written."""
    run = record.run
    if seen.foreign:
        return  # of its checkpoints no more is known than what its log says
    folders = {run.checkpoints()}
    for attempt in record.state.journal.attempts.values():
        if attempt.started and attempt.started.checkpoints:
            folders.add(Path(attempt.started.checkpoints))
    whole = sorted({step: path for folder in folders for step, path in _whole(folder)}.items())
    saved = seen.checkpoints[-1] if seen.checkpoints else None
    if whole:
        step, path = whole[-1]
        kept = ", ".join(f"{step:,}" for step, _ in whole[-SHOWN:])
        verdict.shown.append(
            f"a resume of {run.id} would go on from the checkpoint of step {step:,}"
        )
        place = record.story.places.get(("checkpoint", step))
        lost = max(0, seen.step - step)
        yield Finding(
            id="checkpoints",
            severity="info",
            title=f"a resume would go on from step {step:,}"
            + (f"; {counted(lost, 'step')} after it would be done again" if lost else ""),
            evidence=[
                *_known(place),
                Evidence(source=str(path / "manifest.json"), text="it is there"),
            ],
            why=f"Whole checkpoints, with their manifest: of step {kept}. Their bytes were not "
            "compared with their sums here; a resume does that.",
            next=f"bitwatch run --resume {run.id}",
        )
    elif saved is not None:
        verdict.shown.append(f"no whole checkpoint of {run.id} is where its record says")
        yield Finding(
            id="resume-lost",
            severity="warning",
            title=f"the checkpoint of step {saved.step:,} was written and is not there now",
            evidence=_known(record.story.places.get(("checkpoint", saved.step))),
            why="It was moved or deleted, or the disk that it is on is not mounted here.",
            next=f"bring back {saved.path}, or start a new run",
        )
    elif seen.step:
        verdict.shown.append(f"{run.id} has no checkpoint: a resume would start anew")


def _whole(folder: Path) -> Iterator[tuple[int, Path]]:
    try:
        for path in folder.iterdir():
            match = STEP_FOLDER.fullmatch(path.name)
            if match and (path / "manifest.json").is_file():
                yield int(match[1]), path
    except (OSError, ValueError):
        return


def _known(place: Evidence | None) -> list[Evidence]:
    return [] if place is None else [place]
