"""The view as lines that read well in a terminal or a log. Knows nothing of files or signals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitwatch.record import events, unwritten
from bitwatch.record.afterwards import SUPERVISOR_GONE
from bitwatch.record.view import END_STATES, View
from bitwatch.text import counted, duration, literal, number, percent, short, size

WIDTHS = (
    ("step", 13), ("loss", 7), ("bits/byte", 9), ("rate", 8), ("gradient", 8),
    ("bits/s", 7), ("wait", 5), ("use", 5), ("memory", 9), ("left", 10),
)  # fmt: skip
WIDE_ONLY = {"rate", "gradient"}
WIDE = sum(width + 2 for _, width in WIDTHS) - 2


WORDS = {"start": "starting", "stop": "stopping", "prepare": "preparing", "compile": "compiling"}


class Lines:
    """Turns successive views of a run into the lines that are new. `width` is that of
    the terminal they are for, None for a log of any width."""

    def __init__(self, path: Path, width: int | None = None) -> None:
        self._path = path
        self._width = width
        self._wide = width is None or width >= WIDE
        self._begin(0)

    def _begin(self, attempt: int) -> None:
        """With nothing said yet."""
        self._attempt = attempt
        self._header = False
        self._columns = False
        self._phase: tuple[str, str] = ("", "")
        self._alerts: dict[str, str] = {}
        self._step = -1
        self._note = ""
        self._seen: set[tuple[str, int]] = set()

    def new(self, seen: View) -> Iterator[str]:
        if seen.attempt != self._attempt:
            if self._attempt:
                yield ""
            self._begin(seen.attempt)
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
                rows.append((step.t, step_line(step, seen, self._wide)))
        for evaluation in seen.evaluations:
            if self._is_news("evaluation", evaluation.step, evaluation.t, seen):
                rows.append((evaluation.t, evaluation_line(evaluation)))
        for checkpoint in seen.checkpoints:
            if self._is_news("checkpoint", checkpoint.step, checkpoint.t, seen):
                rows.append((checkpoint.t, checkpoint_line(checkpoint)))
        if seen.epoch and self._is_news("epoch", seen.epoch.step, seen.epoch.t, seen):
            rows.append((seen.epoch.t, f"{'':>13}  {literal(seen.epoch.text)}"))
        for at, note in enumerate(seen.notes):
            if self._is_news("note", at, note.t, seen):
                rows.append((note.t, f"{'':>13}  {literal(note.text)}"))
        if rows and not self._columns:
            self._columns = True
            yield ""
            yield columns(seen.device, self._wide)
        yield from (line for _, line in sorted(rows, key=lambda row: row[0]))
        said = any(alert.id == SUPERVISOR_GONE for alert in seen.alerts)
        if seen.note and seen.note != self._note and not said:
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
        # A phase that counts up is told at every tenth, or once where nobody knows how far it is.
        tenth = seen.phase_progress and int(10 * seen.phase_progress)
        now = (seen.phase, f"{seen.phase_text.partition(':')[0]} {tenth}")
        if now != self._phase and seen.phase in ("start", "prepare", "compile", "stop"):
            words = WORDS.get(seen.phase, seen.phase)
            text = f": {literal(seen.phase_text)}" if seen.phase_text else ""
            yield f"{'':>13}  {words}{text}"
        self._phase = now

    def _changes_of_alerts(self, seen: View) -> Iterator[str]:
        current = {alert.id: alert for alert in seen.alerts}
        for alert in current.values():
            if self._alerts.get(alert.id) != alert.text:
                yield from alert_lines(alert, self._width)
        for gone in self._alerts.keys() - current.keys():
            if seen.state not in END_STATES:
                yield f"  cleared  {gone}"
        self._alerts = {key: alert.text for key, alert in current.items()}


# ---------------------------------------------------------------------------------------
# Lines


def header(seen: View, path: Path) -> Iterator[str]:
    resumed = f" · attempt {seen.attempt}" if seen.attempt > 1 else ""
    yield f"bitwatch  {seen.name}{resumed} · {seen.run}"
    if seen.relaunch_of:
        yield f"launched  {literal(seen.launched)}"
    model = seen.plan.get("model") or {}
    yield f"model     {model_words(model.get('asked'), model.get('built'), model.get('held'))}"
    where = "on GPUs" if seen.device == "cuda" else "on this machine's CPU"
    yield f"runs on   {counted(seen.ranks, 'rank')}, fully sharded (FSDP), {where}"
    yield f"data      {data_words(seen.plan.get('data') or {})}"
    if seen.device != "cuda":
        yield "memory    no GPU: the ranks' own CPU time and resident memory stand in"
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
    busy = data.get("readers_busy")
    # Row groups that nobody could look at are not counted: then the shards are the files.
    parts = "row group" if data["mode"] == "reshard" and busy is not None else "shard"
    words = [
        counted(data["num_shards"], parts),
        f"{counted(data['ranks'], 'rank')} x {counted(data['workers_per_rank'], 'worker')}"
        f" = {counted(data['readers'], 'reader')}",
        *([f"{busy} busy, {data['readers_idle']} idle"] if busy is not None else []),
        data["mode"],
    ]
    if data.get("rows") is not None:
        words.insert(1, counted(data["rows"], "row"))
    if (data.get("read_amplification") or 1) > 1:
        words.append(f"every rank reads everything ({data['read_amplification']}x)")
    return " · ".join(words)


def alert_lines(alert: events.Alert, width: int | None = None) -> Iterator[str]:
    yield from wrapped(f"! {alert.severity:<7} ", alert.text, width)
    if alert.next:
        yield from wrapped("  next    ", alert.next, width)


def wrapped(lead: str, text: str, width: int | None) -> list[str]:
    """Untrusted text behind a lead, its further lines indented alike. One line without a
    width; a lead of its own line where a terminal is too narrow for anything."""
    shown = literal(text)
    if width is None or width < 2 * len(lead):
        return [lead + shown]
    return textwrap.wrap(shown, width, initial_indent=lead, subsequent_indent=" " * len(lead)) or [
        lead.rstrip()
    ]


def columns(device: str, wide: bool = True) -> str:
    """The headings over `step_line`. Not `wide`: only what fits 80 columns."""
    names = {"use": "MFU" if device == "cuda" else "cpu"}
    return "  ".join(names.get(name, name).rjust(width) for name, width in _shown(wide))


def step_line(step: events.Step, seen: View, wide: bool = True) -> str:
    share = step.data_s / step.step_s if step.data_s is not None and step.step_s else None
    left = (seen.steps - step.step) * step.step_s if step.step_s is not None else None
    values = {
        "step": f"{step.step:>6,}/{seen.steps:<6,}",
        "loss": number(step.loss, 4),
        "bits/byte": number(step.bits_per_byte, 3),
        "rate": _small(step.learning_rate),
        "gradient": number(step.grad_norm, 3),
        "bits/s": short(step.tokens_per_s),
        "wait": percent(share),
        "use": _use(step, seen),
        "memory": _memory(seen),
        "left": duration(left),
    }
    skipped = f"  {step.skipped} skipped" if step.skipped else ""
    return "  ".join(values[name].rjust(width) for name, width in _shown(wide)) + skipped


def _shown(wide: bool) -> list[tuple[str, int]]:
    return [(name, width) for name, width in WIDTHS if wide or name not in WIDE_ONLY]


def _use(step: events.Step, seen: View) -> str:
    """MFU, or on a CPU the cores that all ranks use together."""
    if seen.device == "cuda":
        return percent(step.mfu)
    cpu = [p.cpu_percent for p in seen.processes if p.role == "rank" and p.cpu_percent is not None]
    return f"{sum(cpu):.0f} %" if cpu else "n/a"


def _memory(seen: View) -> str:
    """Of the fullest GPU, or on a CPU of the largest rank."""
    if seen.device == "cuda":
        held = [gpu.memory_used_mib for gpu in seen.gpus.gpus] if seen.gpus else []
    else:
        held = [process.rss_mib for process in seen.processes if process.role == "rank"]
    known = [mib for mib in held if mib is not None]
    return size(max(known) * 2**20) if known else "n/a"


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
        f" in {duration(record.seconds)} (training paused {duration(record.paused_s)}):"
        f" {literal(record.path)}"
    )


def summary(seen: View) -> Iterator[str]:
    """How it ended, what came out, and the next command to type."""
    took = ""
    if seen.ended and seen.attempt_started:
        took = f" in {duration(seen.ended - seen.attempt_started)}"
    yield ""
    yield f"{seen.state}  step {seen.step:,} of {seen.steps:,}{took}"
    if seen.cause:
        yield f"  cause        {literal(seen.cause)}"
    if seen.last:
        yield (
            f"  training     loss {number(seen.last.loss, 4)},"
            f" {number(seen.last.bits_per_byte, 3)} bits per byte"
        )
    if seen.evaluations:
        last = seen.evaluations[-1]
        yield (
            f"  validation   loss {number(last.loss, 4)},"
            f" {number(last.bits_per_byte, 3)} bits per byte at step {last.step:,}"
        )
    if seen.checkpoints:
        yield f"  checkpoint   {literal(seen.checkpoints[-1].path)}"
    if lacking := unwritten.sentence(seen.unwritten, seen.ranks, seen.state):
        yield f"  record       {literal(lacking)}"
    if not seen.gone:  # no command knows of it then
        yield f"  next         {next_command(seen)}"


def next_command(seen: View) -> str:
    if seen.state == "failed":
        return f"bitwatch logs {seen.run}"
    if seen.state == "done":
        return f"bitwatch run --resume {seen.run} --set train.steps={seen.steps * 2}"
    return f"bitwatch run --resume {seen.run}"


def _small(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1e}"
