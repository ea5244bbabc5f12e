"""GPUs in their small form: a line each, as much of it as the width has room for. Pure."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.gpu_history import identity
from bitwatch.tui.draw import Line, clip, fit, plain, sparks
from bitwatch.tui.gpu_bar import memory_bar
from bitwatch.tui.gpu_facts import (
    GIB,
    Facts,
    held_down,
    in_a_word,
    is_gone,
    is_slow,
    name_of,
)

HOT_C, WARM_C = 87.0, 80.0  # where a GPU does not say from where on it slows down
WARM_BELOW_C = 5.0  # below that
LONGEST_NAME = 16
LONGEST_WHY = 18
NA = "n/a"
UNUSED = "not used"


class Columns:
    """Widths of the fields for all GPUs alike; what does not fit is left out, power first."""

    def __init__(self, width: int, index: int, name: int, why: int) -> None:
        self.index = index
        self.used, self.total = 5, 9 if width >= index + 16 else 5
        fixed = index + 1 + self.used + 1 + self.total
        left = width - fixed
        self.utilisation = left >= 7
        left -= 7 if self.utilisation else 0
        self.temperature = left >= 5 + 8
        left -= 5 if self.temperature else 0
        self.why = min(why, left - 9) if why and left - 9 >= 6 else 0
        left -= self.why
        self.name = min(name, max(0, left - 9 - 1)) if left - 9 >= 3 else 0
        left -= self.name + 1 if self.name else 0
        self.power = left >= 7 + 9
        left -= 7 if self.power else 0
        self.sparks = min(24, left // 3) if left >= 22 else 0
        left -= self.sparks + 1 if self.sparks else 0
        self.bar = left - 1 if left >= 6 else 0


def lines(facts: Facts, width: int, height: int) -> list[Line]:
    gpus = facts.gpus
    at = _columns(facts, width)
    rows = [_gpu(gpu, facts, at) for gpu in gpus[:height]]
    if len(gpus) <= height:
        return rows
    return [*rows[: height - 1], summary(facts, gpus[height - 1 :], width, "more ")]


def _columns(facts: Facts, width: int) -> Columns:
    index = max(len(str(gpu.index)) for gpu in facts.gpus)
    name = max(Line(name_of(gpu)).width for gpu in facts.gpus)
    why = max((_why(gpu).width for gpu in facts.gpus if gpu.index in facts.used), default=0)
    return Columns(width, index, min(name, LONGEST_NAME), why)


def _gpu(gpu: events.Gpu, facts: Facts, at: Columns) -> Line:
    unused = gpu.index not in facts.used
    line = Line(fit(str(gpu.index), at.index, right=True), "strong text").add(" ")
    line.add(fit(clip(name_of(gpu), at.name), at.name), "quiet")
    line.add(" " if at.name else "")
    if is_gone(gpu):
        gone = dimmed(_gone(line, gpu)) if unused else _gone(line, gpu)
        return gone
    used, total = gpu.memory_used_mib, gpu.memory_total_mib
    line.join(memory_bar(gpu, facts, at.bar)).add(" " if at.bar else "")
    line.add(fit(NA if used is None else f"{used / GIB:.1f}", at.used, right=True))
    size = NA if total is None else f"{total / GIB:.1f}" + " GiB" * (at.total > 5)
    line.add("/" + fit(size, at.total), "quiet")
    if at.sparks:
        line.add(" ").add(
            fit("" if unused else _sparks(gpu, facts, at.sparks), at.sparks), "accent-muted"
        )
    if at.utilisation:
        value = gpu.utilization_percent
        line.add(fit(NA if value is None else f"{value:.0f}", 5, right=True)).add(" %", "quiet")
    if unused:
        room = 5 * at.temperature + 7 * at.power + at.why
        return dimmed(line.add(f"  {UNUSED}" if room >= len(UNUSED) + 2 else ""))
    if at.temperature:
        heat = gpu.temperature_c
        line.add(fit(NA if heat is None else f"{heat:.0f}°", 5, right=True), heat_role(gpu))
    if at.power:
        line.add(fit(NA if gpu.power_w is None else f"{gpu.power_w:.0f}", 5, right=True))
        line.add(" W", "quiet")
    return line.join(_why(gpu).cut(at.why))


def _gone(line: Line, gpu: events.Gpu) -> Line:
    line.add("✗ lost  " if gpu.lost else "✗ ", "strong bad")
    if gpu.lost and gpu.memory_total_mib is not None:
        line.add(f"{gpu.memory_total_mib / GIB:.1f}").add(" GiB  ", "quiet")
    return line.add(plain(gpu.error or ""), "quiet" if gpu.lost else "bad")


def _why(gpu: events.Gpu) -> Line:
    """In a word or two; that it runs at its power limit is normal, and is said quietly or not."""
    if is_gone(gpu) or not is_slow(gpu):
        return Line("  MIG", "quiet") if gpu.mig and not is_gone(gpu) else Line()
    words = clip(in_a_word(held_down(gpu)[0]), LONGEST_WHY - 4)
    return Line("  ").add(f"▼ {words}", "warning")


def heat_role(gpu: events.Gpu, calm: str = "quiet") -> str:
    if gpu.temperature_c is None:
        return "quiet"
    hot = gpu.slowdown_c or HOT_C
    warm = gpu.slowdown_c - WARM_BELOW_C if gpu.slowdown_c else WARM_C
    return "bad" if gpu.temperature_c >= hot else "warning" if gpu.temperature_c >= warm else calm


def _sparks(gpu: events.Gpu, facts: Facts, width: int) -> str:
    recent = facts.view.gpu_history.recent.get(identity(gpu))
    return sparks(recent.busy[-width:] if recent else [], width)


def summary(facts: Facts, gpus: list[events.Gpu], width: int, words: str = "") -> Line:
    """Several GPUs in one line: the fullest, how busy, how hot, how many are lost. Those that the
    run uses, where any of them is among these."""
    names = {name_of(gpu) for gpu in gpus}
    line = Line(f"{len(gpus)} ", "strong text")
    line.add(words + (f"× {names.pop()}" if len(names) == 1 else "GPUs"), "quiet")
    if lost := [gpu for gpu in gpus if is_gone(gpu)]:
        line.add("  ").add(f"✗ {len(lost)} lost", "strong bad")
    ours = [gpu for gpu in gpus if gpu.index in facts.used] or gpus
    if len(ours) < len(gpus):
        line.add(f"  {len(ours)}").add(" used", "quiet")
    ours = [gpu for gpu in ours if not is_gone(gpu)]
    parts: list[Line] = []  # as many as there is room for, none cut
    if slow := [gpu for gpu in ours if is_slow(gpu)]:
        line.add("  ").add(f"▼ {in_a_word(held_down(slow[0])[0])}", "warning")
    full = [
        (g.memory_used_mib, g.memory_total_mib or 0.0)
        for g in ours
        if g.memory_used_mib is not None
    ]
    if full:
        used, total = max(full)
        part = Line(f"  {used / GIB:.1f}")
        parts.append(part.add(f"/{total / GIB:.1f} GiB" if total else " GiB", "quiet"))
    for values, unit in (
        ([g.utilization_percent for g in ours], " %"),
        ([g.temperature_c for g in ours], "°"),
        ([g.power_w for g in ours], " W"),
    ):
        known = [value for value in values if value is not None]
        if known:
            least, most = min(known), max(known)
            both = f"{most:.0f}" if round(least) == round(most) else f"{least:.0f}–{most:.0f}"
            parts.append(Line(f"  {both}").add(unit, "quiet"))
    for part in parts:
        if line.width + part.width > width:
            break
        line.join(part)
    return line.cut(width)


def dimmed(line: Line) -> Line:
    """The same in quiet: not of this run, or not of now."""
    line.spans = [
        (text, "faint" if role in ("faint", "accent-muted") else "quiet")
        for text, role in line.spans
    ]
    return line
