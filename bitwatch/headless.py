"""The face without a screen: the same view, as lines that read well in a terminal or a log.

What the run does goes to stdout, what bitwatch itself has to say to stderr. The first SIGINT
or SIGTERM asks for a stop with a checkpoint, the second stops at once, SIGHUP leaves the run
going. A reader that closes its pipe leaves the run going too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES, View, view
from bitwatch.supervise import stopping
from bitwatch.text import counted, duration, literal, number, percent, short, size

POLL_S = 0.2
INTERRUPTED = 130
COLUMNS = (
    f"{'step':>13}  {'loss':>7}  {'bits/byte':>9}  {'rate':>8}  {'gradient':>8}"
    f"  {'bits/s':>7}  {'wait':>5}  {'MFU':>5}  {'left':>10}"
)


class Lines:
    """Turns successive views of one attempt into the lines that are new."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._header = False
        self._columns = False
        self._phase: tuple[str, str] = ("", "")
        self._alerts: dict[str, str] = {}
        self._step = -1
        self._note = ""
        self._seen: set[tuple[str, int]] = set()

    def new(self, seen: View) -> Iterator[str]:
        if not self._header:
            if not seen.plan:
                return
            self._header = True
            yield from header(seen, self._path)
        yield from self._phases(seen)
        yield from self._changes_of_alerts(seen)
        rows: list[tuple[float, str]] = []
        for step in seen.recent:
            if step.step > self._step and step.step >= 0:
                self._step = step.step
                rows.append((step.t, step_line(step, seen)))
        for evaluation in seen.evaluations:
            if self._is_news("evaluation", evaluation.step, evaluation.t, seen):
                rows.append((evaluation.t, evaluation_line(evaluation)))
        for checkpoint in seen.checkpoints:
            if self._is_news("checkpoint", checkpoint.step, checkpoint.t, seen):
                rows.append((checkpoint.t, checkpoint_line(checkpoint)))
        if seen.epoch and self._is_news("epoch", seen.epoch.step, seen.epoch.t, seen):
            rows.append((seen.epoch.t, f"{'':>13}  {literal(seen.epoch.text)}"))
        if rows and not self._columns:
            self._columns = True
            yield ""
            yield COLUMNS
        yield from (line for _, line in sorted(rows, key=lambda row: row[0]))
        if seen.note and seen.note != self._note:
            yield f"! {seen.note}"
        self._note = seen.note

    def _is_news(self, kind: str, step: int, t: float, seen: View) -> bool:
        """Once each; records of earlier attempts are history, not news."""
        if (kind, step) in self._seen or t < (seen.attempt_started or 0.0):
            return False
        self._seen.add((kind, step))
        return True

    def _phases(self, seen: View) -> Iterator[str]:
        """Only what makes a person wait: the steps themselves speak for training."""
        now = (seen.phase, seen.phase_text)
        if now != self._phase and seen.phase in ("start", "prepare", "compile", "stop"):
            words = {"start": "starting", "stop": "stopping"}.get(seen.phase, seen.phase)
            text = f": {literal(seen.phase_text)}" if seen.phase_text else ""
            yield f"{'':>13}  {words}{text}"
        self._phase = now

    def _changes_of_alerts(self, seen: View) -> Iterator[str]:
        current = {alert.id: alert for alert in seen.alerts}
        for alert in current.values():
            if self._alerts.get(alert.id) != alert.text:
                yield from alert_lines(alert)
        for gone in self._alerts.keys() - current.keys():
            if seen.state not in END_STATES:
                yield f"  cleared  {gone}"
        self._alerts = {key: alert.text for key, alert in current.items()}


# ---------------------------------------------------------------------------------------
# Lines


def header(seen: View, path: Path) -> Iterator[str]:
    resumed = f" · attempt {seen.attempt}" if seen.attempt > 1 else ""
    yield f"bitwatch  {seen.name}{resumed} · {seen.run}"
    model = seen.plan.get("model") or {}
    yield f"model     {model_words(model.get('asked'), model.get('built'), model.get('held'))}"
    where = (
        "GPUs" if seen.device == "cuda" else "CPU (no GPU memory to show; the ranks' own stands in)"
    )
    yield f"runs on   {counted(seen.ranks, 'rank')}, fully sharded (FSDP), {where}"
    yield f"data      {data_words(seen.plan.get('data') or {})}"
    yield f"record    {path}"
    yield ""


def model_words(asked: int | None, built: int | None, held: list[int] | None) -> str:
    """Every count with the word that says which one it is."""
    parts = [f"{built:,} parameters built" if built is not None else "parameters not known"]
    if asked is not None:
        parts.append("as asked" if asked == built else f"{asked:,} asked")
    if held:
        least, most = min(held), max(held)
        parts.append(
            f"{most:,} held by each rank"
            if least == most
            else f"{least:,} to {most:,} held by a rank"
        )
    return ", ".join(parts)


def data_words(data: dict[str, Any]) -> str:
    if data.get("num_shards") is None:
        return "shards not known"
    words = [
        counted(data["num_shards"], "shard"),
        f"{data['ranks']} ranks x {data['workers_per_rank']} workers = {counted(data['readers'], 'reader')}",
        f"{data['readers_busy']} busy, {data['readers_idle']} idle",
        data["mode"],
    ]
    if data.get("rows") is not None:
        words.insert(1, counted(data["rows"], "row"))
    if (data.get("read_amplification") or 1) > 1:
        words.append(f"every rank reads everything ({data['read_amplification']}x)")
    return " · ".join(words)


def alert_lines(alert: events.Alert) -> Iterator[str]:
    yield f"! {alert.severity:<7} {literal(alert.text)}"
    if alert.next:
        yield f"  next    {literal(alert.next)}"


def step_line(step: events.Step, seen: View) -> str:
    share = step.data_s / step.step_s if step.data_s is not None and step.step_s else None
    left = (seen.steps - step.step) * step.step_s if step.step_s is not None else None
    skipped = f"  {step.skipped} skipped" if step.skipped else ""
    return (
        f"{step.step:>6,}/{seen.steps:<6,}  {number(step.loss, 4):>7}"
        f"  {number(step.bits_per_byte, 3):>9}  {_small(step.learning_rate):>8}"
        f"  {number(step.grad_norm, 3):>8}  {short(step.tokens_per_s):>7}"
        f"  {percent(share):>5}  {percent(step.mfu):>5}  {duration(left):>10}{skipped}"
    )


def evaluation_line(record: events.Evaluation) -> str:
    whole = f" of {size(record.of_bytes)}" if record.of_bytes else ""
    return (
        f"   validation  {number(record.loss, 4):>7}  {number(record.bits_per_byte, 3):>9}"
        f"  at step {record.step:,}, {size(record.scored_bytes)}{whole} scored"
        f" in {duration(record.seconds)}"
    )


def checkpoint_line(record: events.Checkpoint) -> str:
    return (
        f"   checkpoint  step {record.step:,}, {size(record.bytes)}"
        f" in {duration(record.seconds)}: {literal(record.path)}"
    )


def summary(seen: View, run: RunDir) -> Iterator[str]:
    """How it ended, what came out, and the next command to type."""
    took = ""
    if seen.updated and seen.attempt_started:
        took = f" in {duration(seen.updated - seen.attempt_started)}"
    yield ""
    yield f"{seen.state}  step {seen.step:,} of {seen.steps:,}{took}"
    if seen.cause:
        yield f"  cause        {literal(seen.cause)}"
    if seen.last:
        yield (
            f"  training     loss {number(seen.last.loss, 4)},"
            f" {number(seen.last.bits_per_byte, 3)} bits per byte,"
            f" {short(seen.last.tokens_per_s)} bits/s"
        )
    if seen.evaluations:
        last = seen.evaluations[-1]
        yield (
            f"  validation   loss {number(last.loss, 4)},"
            f" {number(last.bits_per_byte, 3)} bits per byte at step {last.step:,}"
        )
    if seen.checkpoints:
        yield f"  checkpoint   {literal(seen.checkpoints[-1].path)}"
    yield f"  next         {next_command(seen)}"


def next_command(seen: View) -> str:
    if seen.state == "failed":
        return f"bitwatch logs {seen.run}"
    if seen.state == "done":
        return f"bitwatch run --resume {seen.run} --set train.steps={seen.steps * 2}"
    return f"bitwatch run --resume {seen.run}"


def _small(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1e}"


# ---------------------------------------------------------------------------------------
# In the foreground


def follow(run: RunDir, attempt: int, signals: Signals) -> int:
    """Prints the attempt until it ends, passing signals on as stops; the exit code."""
    lines, follower = Lines(run.path), Follower(run)
    try:
        while True:
            signals.act(run, attempt)
            if signals.hung_up:
                return 0
            news = follower.poll()
            seen = view(follower.state, time.time(), follower.liveness())
            if seen.attempt == attempt:  # a resumed run shows its last one until this begins
                for line in lines.new(seen):
                    print(line, flush=True)
                if seen.state in END_STATES and not run.lock_is_held():
                    break
            if not news:
                signals.wait(POLL_S)
        for line in summary(seen, run):
            print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the exit does not complain
        say(f"nobody reads any more; {run.id} goes on, `bitwatch stop {run.id}` stops it")
        return 0
    return exit_code(seen, signals.asked_now)


def exit_code(seen: View, interrupted: bool = False) -> int:
    """0 done, or stopped with a whole checkpoint; 130 ended by a second SIGINT; 1 failed."""
    if seen.state == "done" or (seen.state == "stopped" and not seen.cause):
        return 0
    return INTERRUPTED if interrupted else 1


def say(text: str) -> None:
    """A diagnostic, on stderr; a closed stderr is no reason to fail."""
    with contextlib.suppress(OSError):
        print(f"bitwatch: {text}", file=sys.stderr, flush=True)


class Signals:
    """Takes signals from its creation on; `act` turns them into stops of a run."""

    def __init__(self) -> None:
        self._pending: list[int] = []
        self._asked = 0
        self.hung_up = False
        self.asked_now = False
        self._reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(which, lambda which, _: self._pending.append(which))

    def wait(self, limit_s: float) -> None:
        """Until a signal comes or the limit has passed."""
        if select.select([self._reading], [], [], limit_s)[0]:
            os.read(self._reading, 512)

    def act(self, run: RunDir, attempt: int) -> None:
        while self._pending:
            which = signal.Signals(self._pending.pop(0))
            if which == signal.SIGHUP:
                self.hung_up = True
                continue
            self._asked += 1
            now = self._asked > 1
            self.asked_now = self.asked_now or (now and which == signal.SIGINT)
            try:
                stopping.ask(run, attempt, f"{which.name} to bitwatch run", now=now)
            except OSError as error:
                say(f"{run.stop(attempt)}: {error.strerror}; cannot ask for a stop")
            say("stopping at once" if now else "stopping with a checkpoint; again stops at once")
