"""One record of a run in words, as an entry of a timeline. What says nothing to a person there
(a sample, a minute's aggregate, a worker that came and left) has none."""

from __future__ import annotations

import signal

from bitwatch.lines import data_words, model_words
from bitwatch.record import codec, events
from bitwatch.text import counted, duration, number, percent, size

LONGEST = 1000  # characters of one sentence of a record
WORTH = ("start", "prepare", "compile", "stop")  # phases that make a person wait


def words(record: codec.Any_) -> str:
    """Empty for what is no entry. A number in it may be none."""
    try:
        return cut(_words(record))
    except (ValueError, OverflowError):  # of a not-finite time
        return f"{type(record).__name__}, with a value that is not finite"


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _words(record: codec.Any_) -> str:
    match record:
        case events.RunStarted():
            if record.foreign:
                return f"bitwatch began to watch {record.name}, which it did not start"
            return f"run {record.name} was made"
        case events.AttemptStarted():
            return _attempt(record)
        case events.DataPlanned():
            return _planned(record)
        case events.ModelBuilt():
            built = model_words(record.asked, record.built, record.held)
            return f"rank 0 built the model: {built}"
        case events.Phase():
            if record.name not in WORTH:
                return ""
            return f"rank {record.rank}: {record.name}{_after(record.text)}"
        case events.Step():
            return step(record)
        case events.Evaluation():
            return (
                f"evaluation at step {record.step:,}: loss {number(record.loss, 4)}, "
                f"{number(record.bits_per_byte, 3)} bits per byte"
            )
        case events.Checkpoint():
            took = f"{size(record.bytes)} in {duration(record.seconds)}"
            return f"checkpoint of step {record.step:,}, {took}: {record.path}"
        case events.Epoch():
            return f"end of epoch {record.epoch} at step {record.step:,}{_after(record.text)}"
        case events.Note():
            return f"rank {record.rank} notes: {record.text}"
        case events.Alert():
            if record.cleared:
                return f"cleared: {record.id}"
            return f"{record.severity}: {record.id}: {record.text}"
        case events.Stuck():
            return f"stuck: {record.text}"
        case events.Action():
            of = f" on {record.on}" if record.on else ""
            return f"{record.name}{of}, by {record.by or 'somebody unnamed'}{_after(record.result)}"
        case events.ProcessExit():
            return _exit(record)
        case events.RankEnded():
            at = f" at step {record.step:,}" if record.step else ""
            return f"rank {record.rank}'s last word: {record.state}{at}{_after(record.cause)}"
        case events.AttemptEnded():
            at = f" at step {record.step:,}" if record.step is not None else ""
            return f"attempt {record.attempt} ended: {record.state}{at}{_after(record.cause)}"
        case events.RunEnded():
            return f"the run ended: {record.state}{_after(record.cause)}"
    return ""


def _attempt(record: events.AttemptStarted) -> str:
    text = f"attempt {record.attempt} began"
    if record.cause:
        text += f": {record.cause}"
    if record.by:
        text += f", asked by {record.by}"
    if record.relaunch_of:
        change = f", changed by the correction {record.correction}" if record.correction else ""
        text += f"; it has the settings of attempt {record.relaunch_of}{change}"
    of = counted(record.ranks, "rank")
    return f"{text}; {of} x {counted(record.workers, 'worker')}"


def _planned(record: events.DataPlanned) -> str:
    """The plan is text of a file: what it lacks is left out."""
    data, problems = record.plan.get("data"), record.plan.get("problems")
    try:
        said = data_words(data) if isinstance(data, dict) else ""
    except (KeyError, TypeError, ValueError):
        said = ""
    listed = problems if isinstance(problems, list) else []
    ids = [str(one["id"]) for one in listed if isinstance(one, dict) and "id" in one]
    known = f"; known before the launch: {', '.join(ids)}" if ids else ""
    return f"plan of attempt {record.attempt}: {said or 'shards not known'}{known}"


def step(record: events.Step) -> str:
    text = f"step {record.step:,}: loss {number(record.loss, 4)}"
    if record.bits_per_byte is not None:
        text += f", {number(record.bits_per_byte, 3)} bits per byte"
    if record.step_s:
        took = duration(record.step_s) if record.step_s >= 1 else f"{1000 * record.step_s:.0f} ms"
        text += f", {took} a step"
        if record.data_s is not None:
            text += f", {percent(record.data_s / record.step_s)} of it waiting for data"
    return text


def _exit(record: events.ProcessExit) -> str:
    return f"{name(record)} {how(record)}"


def name(record: events.ProcessExit | events.ProcessStart) -> str:
    """rank 1 (pid 4242)"""
    of = "" if record.rank is None else f" {record.rank}"
    if record.role != "rank":
        of = f" of rank {record.rank}" if record.rank is not None else ""
    return f"{record.role or 'process'}{of} (pid {record.pid})"


def how(record: events.ProcessExit) -> str:
    if record.signal is not None:
        return f"was killed by {signal_name(record.signal)}"
    if record.status is None:
        return "is gone; with which exit status is not known"
    return f"ended with exit code {record.status}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _after(text: str) -> str:
    return f": {text}" if text else ""
