"""All that is known of one GPU, as a block: is it full, busy, hot, ours, as planned. Pure.

Every value is unknown by itself. What is normal is grey, what a person must act on is not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bitwatch.record import events
from bitwatch.record.gpu_history import RECENT_S, GpuHistory, Recent, Whole, identity
from bitwatch.tui.blocks import Block, Fact, Graph
from bitwatch.tui.draw import Line, fit, plain
from bitwatch.tui.gpu_bar import memory_bar
from bitwatch.tui.gpu_facts import GIB, NORMAL, Facts, Held, held_down, is_gone, is_slow, name_of
from bitwatch.tui.gpu_graph import recent_values, whole_values
from bitwatch.tui.gpu_lines import NA, UNUSED, dimmed, heat_role

NEAR_GIB = 0.05  # a difference that rounds to nothing
OFF_PLAN = 0.1  # of the predicted memory: more than that is worth a colour


class Span:
    """What the graphs show: the last ten minutes, or everything since the first record."""

    def __init__(self, history: GpuHistory, now: float, *, whole: bool) -> None:
        self.now, self.whole = now, whole
        curves = [curve for one in history.whole.values() for curve in (one.busy, one.memory_mib)]
        self.first = min((curve.starts[0] for curve in curves if curve.starts), default=int(now))

    @property
    def seconds(self) -> float:
        return self.now - self.first if self.whole else RECENT_S

    def graphs(
        self, recent: Recent | None, whole: Whole | None, busy: Scale, memory: Scale
    ) -> list[Graph]:
        found = []
        for field, scale, role in (
            ("busy", busy, "accent-muted"),
            ("memory_mib", memory, "accent"),
        ):
            if self.whole:
                series = getattr(whole or Whole(), field)
                values = partial(whole_values, series, self.first, self.now)
            else:
                of = recent or Recent()
                values = partial(recent_values, of.times, getattr(of, field), self.now)
            found.append(Graph(scale.name, scale.label, values, scale.top, role, scale.mark))
        return found


class Scale:
    def __init__(self, name: str, label: str, top: float, mark: float | None = None) -> None:
        self.name, self.label, self.top, self.mark = name, label, top, mark


def block(gpu: events.Gpu, facts: Facts, span: Span) -> Block:
    head = _head(gpu, facts)
    if is_gone(gpu):
        return Block(head if gpu.index in facts.used else dimmed(head), [], [], [])
    if gpu.index not in facts.used:
        facts_of_it = [_memory(gpu, facts), Fact("load", _load(gpu).parts[:1])]
        return _dimmed(head, facts_of_it)
    total = gpu.memory_total_mib or 0.0
    history = facts.view.gpu_history
    recent, whole = history.recent.get(identity(gpu)), history.whole.get(gpu.index)
    if not total:
        total = max((mib or 0.0 for mib in recent.memory_mib), default=0.0) if recent else 0.0
    graphs = span.graphs(
        recent,
        whole,
        Scale("busy", "100 %", 100.0),
        Scale("memory", f"{total / GIB:.1f} GiB", total, facts.predicted_mib),
    )
    left = [_memory(gpu, facts), _whose(gpu, facts.held(gpu)), _allocator(gpu, facts)]
    return Block(head, left, [_load(gpu), _clocks(gpu), _links(gpu)], graphs)


def _dimmed(head: Line, told: list[Fact]) -> Block:
    quiet = [
        Fact(fact.label, [dimmed(part) for part in fact.parts], _quiet_bar(fact.bar))
        for fact in told
    ]
    return Block(dimmed(head), quiet[:1], quiet[1:], [])


def _quiet_bar(bar: Callable[[int], Line] | None) -> Callable[[int], Line] | None:
    return (lambda width: dimmed(bar(width))) if bar else None


def _head(gpu: events.Gpu, facts: Facts) -> Line:
    line = Line(f"{gpu.index} {name_of(gpu)}", "strong text")
    if gpu.mig:
        line.add("  MIG", "quiet")
    if is_gone(gpu):
        line.add("  ")
        line.add("✗ lost" if gpu.lost else "✗", "strong bad")
        if gpu.lost and gpu.memory_total_mib is not None:
            line.add("  ").add(f"{gpu.memory_total_mib / GIB:.1f}").add(" GiB", "quiet")
        return line.add(f"  {plain(gpu.error or '')}", "quiet")
    if gpu.mig and gpu.index in facts.used:
        line.add(": its instances are not told apart", "quiet")
    for seat in facts.seats.get(gpu.index, []):
        line.add("  ").add(f"rank {seat.rank}", "text")
        line.add(" by its number" if seat.guessed else "", "quiet")
    if gpu.index not in facts.used:
        return line.add(f"  {UNUSED} by this run", "quiet")
    if reasons := held_down(gpu):
        words = ", ".join(reasons)
        line.add("  ")
        if is_slow(gpu):
            return line.add(f"▼ held down: {words}", "warning")
        line.add(f"at its {NORMAL}" if reasons == [NORMAL] else f"held by {words}", "quiet")
    return line


def _memory(gpu: events.Gpu, facts: Facts) -> Fact:
    used, total = gpu.memory_used_mib, gpu.memory_total_mib
    size = Line(_gib(used)).add(" of ", "quiet").add(_gib(total, 4)).add(" GiB", "quiet")
    share = None if used is None or not total else 100 * used / total
    parts = [size, Line(_fixed(share, 3)).add(" %", "quiet")]
    if gpu.index in facts.used and (planned := _planned(gpu, facts)) is not None:
        parts.append(planned)
    return Fact("memory", parts, partial(memory_bar, gpu, facts))


def _planned(gpu: events.Gpu, facts: Facts) -> Line | None:
    """The prediction beside what our processes hold; where that is not told, beside all."""
    if facts.predicted_mib is None:
        return None
    line = Line("plan ", "quiet").add(f"{facts.predicted_mib / GIB:.1f}")
    measured = facts.held(gpu).ours
    measured = gpu.memory_used_mib if measured is None else measured
    if measured is None:
        return line.add(" measured n/a", "quiet")
    off = (measured - facts.predicted_mib) / GIB
    if abs(off) < NEAR_GIB:
        return line.add(", as measured", "quiet")
    role = "warning" if off > OFF_PLAN * facts.predicted_mib / GIB else "quiet"
    return line.add(", ", "quiet").add(f"{abs(off):.1f} {'more' if off > 0 else 'less'}", role)


def _whose(gpu: events.Gpu, held: Held) -> Fact:
    if gpu.processes is not None and held == Held(None, None, None, None):
        return Fact("whose", [Line("n/a: its processes are not of this PID namespace", "quiet")])
    others = _named("others", held.others, "text" if held.others else "quiet")
    if held.others and held.others_pid is not None:
        others.add(f" (pid {held.others_pid})", "quiet")
    parts = [
        _named("ours", held.ours, "text"),
        _named("leftovers", held.leftovers, "bad" if held.leftovers else "quiet"),
        others,
        _named("driver", held.rest, "quiet").add(" GiB", "quiet"),
    ]
    return Fact("whose", parts)


def _allocator(gpu: events.Gpu, facts: Facts) -> Fact:
    """What PyTorch's allocator says of the memory that is ours."""
    step = facts.step_on(gpu)
    parts = [
        _named("allocated", step.allocated_mib if step else None, "text"),
        _named("reserved", step.reserved_mib if step else None, "text"),
        _named("peak", step.peak_mib if step else None, "text").add(" GiB", "quiet"),
    ]
    return Fact("allocator", parts)


def _load(gpu: events.Gpu) -> Fact:
    busy = Line(_fixed(gpu.utilization_percent, 3)).add(" % busy", "quiet")
    heat = Line(_fixed(gpu.temperature_c, 4), heat_role(gpu, "text")).add("°", "quiet")
    heat.add(f" of {_fixed(gpu.slowdown_c, 3)}°", "quiet")
    power = Line(_fixed(gpu.power_w, 4)).add(f" of {_fixed(gpu.power_limit_w, 3)} W", "quiet")
    fan = Line("fan ", "quiet").add(
        _fixed(gpu.fan_percent, 3), "text" if gpu.fan_percent else "quiet"
    )
    fan.add(" %" if gpu.fan_percent is not None else "", "quiet")
    return Fact("load", [busy, heat, power, fan])


def _clocks(gpu: events.Gpu) -> Fact:
    role = "warning" if is_slow(gpu) else "text"
    sm = Line("SM ", "quiet").add(_mhz(gpu.clock_sm_mhz), role)
    sm.add(f" of {_mhz(gpu.clock_sm_most_mhz)} MHz", "quiet")
    memory = Line("memory ", "quiet").add(_mhz(gpu.clock_memory_mhz)).add(" MHz", "quiet")
    return Fact("clocks", [sm, memory, _ecc(gpu)])


def _ecc(gpu: events.Gpu) -> Line:
    line = Line("ECC ", "quiet")
    bad, mended = gpu.ecc_uncorrected, gpu.ecc_corrected
    if bad is None and mended is None:
        return line.add(NA, "quiet")
    if bad:
        line.add(f"{bad:,}", "strong bad").add(" uncorrected", "bad")
    if mended:
        line.add(", " if bad else "", "quiet").add(f"{mended:,}").add(" corrected", "quiet")
    return line if bad or mended else line.add("0", "quiet")


def _links(gpu: events.Gpu) -> Fact:
    pcie = Line("PCIe ", "quiet").add(
        NA if gpu.pcie_generation is None else f"{gpu.pcie_generation}"
    )
    pcie.add("×", "quiet").add(fit(NA if gpu.pcie_lanes is None else f"{gpu.pcie_lanes}", 3))
    pcie.join(_traffic(gpu.pcie_in_mib_s, gpu.pcie_out_mib_s))
    link = Line("NVLink ", "quiet")
    if gpu.nvlink_in_mib_s is None and gpu.nvlink_out_mib_s is None:
        return Fact("links", [pcie.add(" GiB/s", "quiet"), link.add(NA, "quiet")])
    link.join(_traffic(gpu.nvlink_in_mib_s, gpu.nvlink_out_mib_s))
    return Fact("links", [pcie, link.add(" GiB/s", "quiet")])


def _traffic(into: float | None, out: float | None) -> Line:
    line = Line("in ", "quiet").add(_rate(into), "text" if into else "quiet")
    return line.add(" out ", "quiet").add(_rate(out), "text" if out else "quiet")


def _rate(mib_s: float | None) -> str:
    """Four cells of GiB a second, from 0.01 to 9999."""
    gib_s = (mib_s or 0.0) / GIB
    digits = 2 if gib_s < 9.995 else 1 if gib_s < 99.95 else 0
    return fit(NA if mib_s is None else f"{gib_s:.{digits}f}", 4, right=True)


def _named(name: str, mib: float | None, role: str) -> Line:
    return Line(f"{name} ", "quiet").add(_gib(mib, 4), "quiet" if mib is None else role)


def _gib(mib: float | None, width: int = 5) -> str:
    return fit(NA if mib is None else f"{mib / GIB:.1f}", width, right=True)


def _fixed(value: float | None, width: int) -> str:
    return fit(NA if value is None else f"{value:.0f}", width, right=True)


def _mhz(value: float | None) -> str:
    return fit(NA if value is None else f"{value:,.0f}", 5, right=True)
