"""Findings about how attempts ended: the first cause and its echoes, or that nothing says it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from bitwatch.attach.said import Line, Said
from bitwatch.report import matching
from bitwatch.report.facts import Attempt, Story, of_line
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.words import called, listed, moment, quoted, sentence, wanted
from bitwatch.text import counted, duration

EVIDENCE_LINES = 5
YOUNG_S = 120.0  # since the last change of a log, in which its training may well go on
ECHOES = (  # what other ranks and launchers say because the first one has failed
    "ChildFailedError", "SignalException", "DistBackendError", "DistNetworkError",
    "BrokenPipeError", "ConnectionResetError", "KeyboardInterrupt", "SystemExit",
)  # fmt: skip
CAUSES = ("out-of-memory", "exception", "timeout", "failure", "signal")


def find(story: Story, modified: float | None) -> Iterator[Finding]:
    yield from restarts(story)
    for attempt in story.attempts:
        yield from _not_finite(story, attempt)
        yield from _causes(story, attempt)
        yield from _silent(story, attempt, modified)


def restarts(story: Story) -> Iterator[Finding]:
    if len(story.attempts) < 2:
        return
    by_torchrun = [attempt for attempt in story.attempts if attempt.restart is not None]
    each = [
        f"{called(attempt)} at {moment(attempt.begins.t)} ({wanted(attempt)}; {attempt.why})"
        for attempt in story.attempts[:EVIDENCE_LINES]
    ]
    if len(story.attempts) > EVIDENCE_LINES:
        each.append(f"{len(story.attempts) - EVIDENCE_LINES} more")
    why = sentence(listed(each))
    if by_torchrun:
        why += f" {counted(len(by_torchrun), 'restart')} came from the launcher itself."
    yield Finding(
        id="attempts",
        severity="warning" if by_torchrun else "info",
        title=f"{counted(len(story.attempts), 'attempt')}, not one",
        evidence=[of_line(attempt.begins) for attempt in story.attempts[:EVIDENCE_LINES]],
        why=why,
        next="Judge each attempt by itself: a loss or a count of one says nothing of another.",
    )


def has_cause(attempt: Attempt) -> bool:
    return any(said.what in CAUSES for said in attempt.problems)


def first_cause(attempt: Attempt) -> Said | None:
    """The first thing that went wrong, before what others say because of it."""
    problems = [said for said in attempt.problems if said.what in CAUSES]
    if not problems:
        return None
    own = [said for said in problems if not _is_echo(said)]
    of_report = [said for said in problems if said.what == "failure"]
    return (own or of_report or problems)[0]


def _is_echo(said: Said) -> bool:
    if said.what in ("failure", "signal"):
        return True
    kind = str(said.values.get("type", "")).rpartition(".")[2]
    return said.what == "exception" and kind in ECHOES


def _causes(story: Story, attempt: Attempt) -> Iterator[Finding]:
    cause = first_cause(attempt)
    if cause is None:
        return
    others = [said for said in attempt.problems if said is not cause]
    evidence = [of_line(cause.line), *(of_line(said.line) for said in others[:EVIDENCE_LINES])]
    echoes = [said for said in others if said.what in CAUSES]
    name = called(attempt, len(story.attempts))
    match cause.what:
        case "out-of-memory":
            yield _no_memory(cause, name, evidence)
        case "timeout":
            yield _timed_out(cause, name, evidence)
        case "exception":
            yield _exception(cause, name, echoes, evidence)
        case _:
            yield _failed(cause, name, evidence)
    timeouts = [said for said in echoes if said.what == "timeout"]
    if cause.what != "timeout" and timeouts:
        first = timeouts[0]
        yield Finding(
            id="timeout",
            severity="info",
            title=f"The time-out of {_who(first)} in {name} is an echo",
            evidence=[of_line(cause.line), of_line(first.line)],
            why="Other ranks waited in a collective for one that had failed before: "
            f'"{quoted(cause.line.text, 120)}".',
            next="Look at the first cause; a longer time-out would only make the wait longer.",
        )


def _no_memory(cause: Said, name: str, evidence: list[Evidence]) -> Finding:
    host = cause.values.get("where") == "host"
    gpu, wanted_mib = cause.values.get("gpu"), cause.values.get("wanted_mib")
    where = "The machine" if host else f"GPU {gpu}" if gpu is not None else "A GPU"
    more = f" when {wanted_mib:,.0f} MiB more were wanted" if _is_number(wanted_mib) else ""
    return Finding(
        id="out-of-memory",
        severity="error",
        title=f"{where} ran out of memory in {name}{more}",
        evidence=evidence,
        why="The training wants more memory than there is, or others held some of it: that is a "
        "matter of its configuration and of the machine, and no defect of the hardware.",
        next="`bitwatch plan` says what each rank needs; "
        + (
            "fewer workers or a smaller buffer need less memory of the host."
            if host
            else "a smaller micro_batch or activation checkpointing needs less."
        ),
    )


def _timed_out(cause: Said, name: str, evidence: list[Evidence]) -> Finding:
    operation = cause.values.get("operation")
    during = f" in {quoted(str(operation), 40)}" if operation else ""
    return Finding(
        id="timeout",
        severity="error",
        title=f"{_who(cause)} waited{during} until the time-out in {name}",
        evidence=evidence,
        why="A collective waits for all ranks, and one did not come. No earlier error is in the "
        "evidence, so which one and why cannot be told: a rank without data, one at another "
        "step, one that was stopped, or the network.",
        next="Look at the logs of the other ranks from before this time; stacks of a rank that "
        "still waits say where (key s in bitwatch).",
    )


def _exception(cause: Said, name: str, echoes: Sequence[Said], evidence: list[Evidence]) -> Finding:
    kind = quoted(str(cause.values.get("type", "an exception")), 80)
    where = cause.values.get("where")
    why = f"The innermost place is {quoted(str(where), 120)}." if where else ""
    if echoes:
        why += f" {counted(len(echoes), 'later line')} about failures may be echoes of it."
    rank = cause.values.get("rank")
    return Finding(
        id="exception",
        severity="error",
        title=f"{f'Rank {rank}' if rank is not None else 'A process'} failed in {name} with "
        f"{kind}: {quoted(str(cause.values.get('message', '')) or cause.line.text, 160)}",
        evidence=evidence,
        why=why.strip(),
        next="It is the first error; mend this one, and look at the others only if they stay.",
    )


def _failed(cause: Said, name: str, evidence: list[Evidence]) -> Finding:
    values = cause.values
    signal = values.get("signal")
    how = f"by {quoted(str(signal), 20)}" if signal else f"with exit code {values.get('exit_code')}"
    if not signal and values.get("exit_code") is None:
        how = "without saying how"
    pid = f" (pid {values['pid']})" if values.get("pid") is not None else ""
    why = "The launcher's report names it as the first; no traceback of it is in the evidence."
    if "KILL" in str(signal) or values.get("exit_code") == -9:
        why += (
            " SIGKILL comes from outside: the kernel for lack of memory, or somebody. The log "
            "does not say which; the kernel's own log does."
        )
    return Finding(
        id="rank-died",
        severity="error",
        title=f"{_who(cause)}{pid} ended in {name} {how}",
        evidence=evidence,
        why=why,
        next="Look at that rank's own log, and at `dmesg` for a kill by the kernel.",
    )


def _not_finite(story: Story, attempt: Attempt) -> Iterator[Finding]:
    bad = next((run.nonfinite for run in attempt.steps if run.nonfinite is not None), None)
    if bad is None:
        return
    step = bad.values.get("step")
    at = f"at step {step:,}" if isinstance(step, int) else "early"
    yield Finding(
        id="loss-not-finite",
        severity="error",
        title=f"The loss of {called(attempt, len(story.attempts))} is no number {at}",
        evidence=[of_line(bad.line)],
        why="From then on the parameters are worth nothing, whatever is printed after it.",
        next="Go on from a checkpoint before it, with a lower learning rate or without the batch.",
    )


def is_silent(attempt: Attempt) -> bool:
    return attempt.done is None and not has_cause(attempt)


def _silent(story: Story, attempt: Attempt, modified: float | None) -> Iterator[Finding]:
    """An attempt without an end: the next one begins, or the log stops."""
    if not is_silent(attempt):
        return
    name = called(attempt, len(story.attempts))
    last = attempt.last
    steps = _steps_said(attempt)
    evidence = [of_line(attempt.loop.line)] if attempt.loop is not None else []
    evidence += [of_line(run.line) for run in [attempt.last_step] if run is not None]
    if last not in [
        attempt.loop and attempt.loop.line,
        attempt.last_step and attempt.last_step.line,
    ]:
        evidence.append(of_line(last))
    if attempt is not story.attempts[-1]:
        following = story.attempts[attempt.number]
        ended = matching.ended_at(story, attempt)
        after = (
            f" {duration(ended - last.t)} later" if ended is not None and last.t is not None else ""
        )
        yield Finding(
            id="silent-end",
            severity="info",
            title=f"Nothing says how {name} ended: {called(following)} begins{after}; {steps}",
            evidence=[*evidence, of_line(following.begins)],
            why="Neither an error nor an exit is in the log.",
            next="Ask who started the next one, and whether this one was stopped first.",
        )
        return
    age_s = _age_s(last, modified)
    young = age_s is not None and age_s < YOUNG_S
    yield Finding(
        id="silent-end",
        severity="info" if young else "warning",
        title=f"The log ends at {moment(last.t)} ({_place(last)}) without a word of an end; {steps}",
        evidence=evidence,
        why=(
            f"It was written {duration(max(0.0, age_s or 0.0))} ago: it may well go on."
            if young
            else "No error, no time-out, no exit is in it: that it ended, that it was stopped and "
            "that it waited are all possible, and nothing in the evidence tells them apart."
        ),
        next="Look whether its processes live: `bitwatch attach` shows them, and where they wait.",
    )


def _age_s(last: Line, modified: float | None) -> float | None:
    """Since the log was written: by its last line, because a copy of a file is young."""
    written = last.t if last.t is not None else modified
    return None if written is None else time.time() - written


def _steps_said(attempt: Attempt) -> str:
    last = attempt.last_step
    if last is None:
        return "no step was ever printed"
    step = last.values.get("step")
    said = f"{step:,}" if isinstance(step, int) else f"of epoch {last.values.get('epoch')}"
    return f"its last step is {said}"


def _place(line: Line) -> str:
    return f"line {line.number}" if line.number else "its last line"


def _who(said: Said) -> str:
    rank = said.values.get("rank")
    return f"Rank {rank}" if rank is not None else "A rank"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
