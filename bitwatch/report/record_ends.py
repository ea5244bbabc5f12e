"""Findings about how the attempts of a recorded run ended: the first cause with its class, its
echoes, signals and who sent them, and ends of which nobody has left a word."""

from __future__ import annotations

from collections.abc import Iterator

from bitwatch.record import rundir
from bitwatch.record.view import is_echo
from bitwatch.report import causes
from bitwatch.report.model import Evidence, Finding, Verdict
from bitwatch.report.record_end import Ended
from bitwatch.report.record_signals import signals
from bitwatch.report.record_words import cut
from bitwatch.report.words import moment
from bitwatch.text import counted

NAMED = 6  # in a sentence


def findings(ended: Ended, verdict_: Verdict) -> Iterator[Finding]:
    """Adds to the verdict what they show, what they make likely, and what stays unknown."""
    if ended.state == "failed":
        yield _failed(ended, verdict_)
    elif ended.state == "lost" and not ended.elsewhere:
        yield _lost(ended, verdict_)
    elif ended.state == "stopped" and ended.words:
        yield _failed_before(ended, verdict_)
    text = " ".join((ended.cause, *(word.cause for word in ended.words)))
    if ended.state in ("failed", "lost"):
        yield from _causes_of_their_own(ended, text)
    yield from signals(ended, verdict_)


def _failed(ended: Ended, verdict_: Verdict) -> Finding:
    echoes = [word for word in ended.words if is_echo(word.cause)]
    class_ = causes.class_of(ended.cause)
    why = ""
    if class_:
        why = f"Class of the cause: {class_.class_} ({class_.why})."
        verdict_.shown.append(f"{ended.name} failed: {ended.cause}")
        verdict_.likely.append(
            f"the class of the cause of {ended.name} is {class_.class_}: {class_.why}"
        )
    else:
        why = "Of which class the cause is cannot be told from these words."
        verdict_.shown.append(f"{ended.name} failed: {ended.cause or 'no rank left a word'}")
        verdict_.unknown.append(f"whether {ended.name} failed by its configuration, model, "
                                "hardware, data or code")  # fmt: skip
    if echoes:
        ranks = ", ".join(str(word.rank) for word in echoes[:NAMED])
        many = f"{counted(len(echoes), 'rank')} ({ranks})"
        why += f" What {many} said is an echo: they lost another rank, or waited for it in vain."
    rank = f" --rank {ended.words[0].rank}" if ended.words and ended.words[0].rank >= 0 else ""
    return Finding(
        id="failed",
        severity="error",
        title=f"attempt {ended.number} failed{_at(ended)}: {ended.cause or 'no word says why'}",
        evidence=ended.evidence(),
        why=why,
        next=f"bitwatch logs {ended.run}{rank} shows its last lines"
        + _resume(ended, "; once the cause is mended, "),
    )


def _failed_before(ended: Ended, verdict_: Verdict) -> Finding:
    """Whoever stopped it may have done so because of that."""
    cause = cut(ended.words[0].cause)
    verdict_.shown.append(f"a rank of {ended.name} had failed before it was stopped: {cause}")
    class_ = causes.class_of(cause)
    return Finding(
        id="failed",
        severity="warning",
        title=f"attempt {ended.number} was stopped, and a rank had failed{_at(ended)}: {cause}",
        evidence=ended.evidence(),
        why=f"Class of the cause: {class_.class_} ({class_.why})." if class_ else "",
        next=_resume(ended, "once the cause is mended, ") or "mend the cause",
    )


def _lost(ended: Ended, verdict_: Verdict) -> Finding:
    """Nobody has written how it ended: what is known is when it last gave a sign of life."""
    step = f"its last step is {ended.step:,}" if ended.step else "it took no step"
    last = f"its last sign of life is of {moment(ended.updated)}, and {step}"
    when = f" around {moment(ended.updated)}" if ended.updated else ""
    if not ended.updated:
        last = "no rank of it ever wrote a line"
    verdict_.shown.append(f"{ended.name} ended without a word: {last}")
    why = (
        "Of an end that was asked for, of a failure and of a signal to one rank there would be a "
        "record. A machine that stops, or a kill of everything at once, leaves none"
    )
    if ended.foreign:
        why = "Of a training that bitwatch did not start nothing is on record but what was seen"
    if ended.cause == rundir.REBOOTED:
        why = "The machine was started anew since: what was not over before ended with that"
        verdict_.unknown.append(f"whether {ended.name} had ended before the machine went down")
    else:
        verdict_.unknown.append(f"how {ended.name} ended, and who or what ended it")
    return Finding(
        id="silent-end",
        severity="error",
        title=f"attempt {ended.number} ended without a word{_at(ended)}: {ended.cause}",
        evidence=[*ended.evidence(), *_last_signs(ended)],
        why=f"{why}: {last}.",
        next=f"look into the kernel's log (dmesg, journalctl -k){when}" + _resume(ended, "; "),
    )


def _resume(ended: Ended, lead: str) -> str:
    """Only what bitwatch has launched can be resumed by it."""
    return "" if ended.foreign else f"{lead}bitwatch run --resume {ended.run} goes on"


def _last_signs(ended: Ended) -> list[Evidence]:
    places = ended.record.story.places
    keys = (("attempt", ended.number), ("step", ended.number))
    return [places[key] for key in keys if key in places]


def _causes_of_their_own(ended: Ended, text: str) -> Iterator[Finding]:
    """Causes for which there is a remedy that does not depend on the run."""
    if causes.NO_MEMORY.search(text):
        yield Finding(
            id="out-of-memory",
            severity="error",
            title=f"attempt {ended.number} ran out of memory",
            evidence=ended.evidence(),
            why="The words of the rank say so itself. Whether it was memory of the GPU or of the "
            "machine, its words say; others may have held some of it.",
            next="bitwatch plan shows what it needs on each GPU; lower train.micro_batch, or set "
            "parallel.activation_checkpointing to full: neither changes the model",
        )
    if causes.DISK_FULL.search(text):
        yield Finding(
            id="disk-full",
            severity="error",
            title=f"a disk was full when attempt {ended.number} ended",
            evidence=ended.evidence(),
            why="What was written last may be missing: also a checkpoint.",
            next="make room, or set checkpoint.folder to a larger disk; then resume",
        )


def _at(ended: Ended) -> str:
    return f" at step {ended.step:,}" if ended.step else " before its first step"
