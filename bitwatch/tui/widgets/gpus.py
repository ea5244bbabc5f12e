"""GPUs, a line each: memory, utilisation now and before, temperature, power.

Each field is unknown by itself; a GPU that is lost keeps its line. Where there is no NVIDIA
driver the ranks' CPU time and resident memory stand in, and the panel says so.
"""

from __future__ import annotations

from collections import deque

from bitwatch.record.events import Gpu
from bitwatch.record.view import END_STATES, ProcessRow, View
from bitwatch.tui.draw import Line, Part, bar, centred, clip, fit, plain, sparks
from bitwatch.tui.widgets.panel import Panel

HISTORY = 64  # values of utilisation kept: more than a sparkline has columns
FULL, NEARLY_FULL = 0.985, 0.95  # share of the memory
HOT_C, WARM_C = 87, 80  # an L4 slows down above about 85 °C
STALE_S = 10.0
GIB = 1024.0  # MiB
NA = "n/a"


class GpuPanel(Panel):
    default_id = "gpus"
    title = "GPUs"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._history: dict[str, deque[float | None]] = {}
        self._newest = 0.0

    def remember(self, view: View) -> None:
        """One value of the sparkline a sample; the same sample twice is one value."""
        sampled = view.gpus.t if view.gpus and view.gpus.gpus else view.sampled
        if sampled is None or sampled <= self._newest:
            return
        self._newest = sampled
        now: dict[str, float | None] = {}
        if view.gpus and view.gpus.gpus:
            now = {_identity(gpu): gpu.utilization_percent for gpu in view.gpus.gpus}
        elif not _on_gpus(view):
            now = {f"rank {row.rank}": row.cpu_percent for row in _ranks(view)}
        for name, value in now.items():
            self._history.setdefault(name, deque(maxlen=HISTORY)).append(value)

    # -----------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> list[Line]:
        view = self.view
        if view.gpus and view.gpus.gpus:
            rows = [self._gpu(gpu, _columns(view.gpus.gpus, width)) for gpu in view.gpus.gpus]
            rest = view.gpus.gpus[height - 1 :]
            return rows if len(rows) <= height else [*rows[: height - 1], _rest(rest, width)]
        if _on_gpus(view):
            why = view.gpus.note if view.gpus else ""
            return centred(plain(why) or "no sample of the GPUs yet", width, height)
        ranks = _ranks(view)
        if not ranks:
            return centred(_nothing(view), width, height)
        digits = max(len(str(row.rank)) for row in ranks)
        top = max(100.0, *(row.cpu_percent or 0.0 for row in ranks))
        lines = [self._rank(row, width, top, digits) for row in ranks]
        if len(lines) > height:
            more = Line(f"and {len(lines) - height + 1} more ranks", "quiet")
            lines = [*lines[: height - 1], more]
        return lines

    def summary(self, width: int) -> Line:
        view = self.view
        if view.gpus and view.gpus.gpus:
            return _rest(view.gpus.gpus, width, "")
        ranks = _ranks(view)
        if _on_gpus(view) or not ranks:
            return Line("no sample yet" if _on_gpus(view) else "no GPU, no rank running", "quiet")
        line = Line("no GPU  ", "quiet").add(str(len(ranks))).add(" ranks  cpu ", "quiet")
        line.add(f"{sum(row.cpu_percent or 0 for row in ranks):.0f}").add(" %", "quiet")
        line.add("  memory ", "quiet").add(f"{sum(row.rss_mib or 0 for row in ranks) / GIB:.1f}")
        return line.add(" GiB", "quiet")

    def crowded(self, height: int) -> bool:
        gpus = self.view.gpus.gpus if self.view.gpus else []
        rows = len(gpus) or (0 if _on_gpus(self.view) else len(_ranks(self.view)))
        return height - 2 < rows

    def subtitle(self) -> list[Part]:
        view = self.view
        if view.gpus and view.gpus.gpus:
            parts = []
            if predicted := _predicted_gib(view):
                words = Line("┼", "text").add(f" predicted {predicted:.1f} GiB", "quiet")
                parts.append(Part(1, words))
            parts.append(Part(2, Line("NVML", "quiet")))
            age = self.now - view.gpus.t
            return (
                [*parts, Part(3, Line(f"{age:.0f} s old", "warning"))] if age >= STALE_S else parts
            )
        if _on_gpus(view) or (view.gpus is None and view.device != "cpu"):
            return []
        return [Part(1, Line("no GPU: ranks' CPU and memory", "quiet"))]

    # -----------------------------------------------------------------------------------

    def _gpu(self, gpu: Gpu, at: Columns) -> Line:
        line = Line(fit(str(gpu.index), at.index, right=True), "strong text").add(" ")
        line.add(fit(clip(_name(gpu), at.name), at.name), "quiet")
        line.add(" " if at.name else "")
        if gpu.error:
            return line.add("✗ lost  ", "strong bad").add(plain(gpu.error), "quiet")
        used, total = gpu.memory_used_mib, gpu.memory_total_mib
        share = used / total if used is not None and total else None
        line.join(_memory_bar(gpu, self.view, at.bar, share)).add(" " if at.bar else "")
        line.add(fit(NA if used is None else f"{used / GIB:.1f}", at.used, right=True))
        line.add(
            "/"
            + fit(
                NA if total is None else f"{total / GIB:.1f}" + " GiB" * (at.total > 5), at.total
            ),
            "quiet",
        )
        if at.sparks:
            line.add(" ").add(self._sparks(_identity(gpu), at.sparks), "accent-muted")
        return _with_gauges(line, gpu, at)

    def _rank(self, row: ProcessRow, width: int, top: float, digits: int) -> Line:
        """Processor time as a bar of the busiest rank's, then before, then the memory."""
        line = Line("rank ", "quiet").add(fit(str(row.rank), digits, right=True), "strong text")
        cpu = Line(fit(NA if row.cpu_percent is None else f"{row.cpu_percent:.0f}", 5, right=True))
        cpu.add(" % cpu", "quiet")
        rss = Line(fit(NA if row.rss_mib is None else f"{row.rss_mib / GIB:.2f}", 7, right=True))
        rss.add(" GiB", "quiet")
        room = width - line.width - 2 - cpu.width - rss.width
        spark = min(24, room // 2) if room >= 18 else 0
        if room >= 6:
            share = None if row.cpu_percent is None else row.cpu_percent / top
            line.add("  ").join(bar(share, room - spark - (2 if spark else 0)))
        line.join(cpu).add("  " if spark else "")
        line.add(self._sparks(f"rank {row.rank}", spark, top), "accent-muted")
        return line.join(rss).cut(width)

    def _sparks(self, name: str, width: int, top: float = 100.0) -> str:
        return sparks(list(self._history.get(name, ())), width, top)


class Columns:
    """Widths of the fields for all GPUs alike; what does not fit is left out, power first."""

    def __init__(self, width: int, index: int, name: int) -> None:
        self.index = index
        self.used, self.total = 5, 9 if width >= index + 16 else 5
        fixed = index + 1 + self.used + 1 + self.total
        left = width - fixed
        self.utilisation = left >= 7
        left -= 7 if self.utilisation else 0
        self.temperature = left >= 5 + 8
        left -= 5 if self.temperature else 0
        self.name = min(name, max(0, left - 9 - 1)) if left - 9 >= 3 else 0
        left -= self.name + 1 if self.name else 0
        self.power = left >= 7 + 9
        left -= 7 if self.power else 0
        self.sparks = min(24, left // 3) if left >= 22 else 0
        left -= self.sparks + 1 if self.sparks else 0
        self.bar = left - 1 if left >= 6 else 0


def _columns(gpus: list[Gpu], width: int) -> Columns:
    index = max(len(str(gpu.index)) for gpu in gpus)
    name = max(Line(_name(gpu)).width for gpu in gpus)
    return Columns(width, index, min(name, 16))


def _with_gauges(line: Line, gpu: Gpu, at: Columns) -> Line:
    if at.utilisation:
        value = gpu.utilization_percent
        line.add(fit(NA if value is None else f"{value:.0f}", 5, right=True))
        line.add(" %", "quiet")
    if at.temperature:
        heat = gpu.temperature_c
        role = "quiet" if heat is None or heat < WARM_C else "warning" if heat < HOT_C else "bad"
        line.add(fit(NA if heat is None else f"{heat:.0f}°", 5, right=True), role)
    if at.power:
        line.add(fit(NA if gpu.power_w is None else f"{gpu.power_w:.0f}", 5, right=True))
        line.add(" W", "quiet")
    return line


def _memory_bar(gpu: Gpu, view: View, width: int, share: float | None) -> Line:
    """Ours in the accent, then what leftovers hold, then others; the plan's word as a mark."""
    role = "quiet" if view.state in END_STATES else "accent"
    if share is not None and share >= NEARLY_FULL:
        role = "bad" if share >= FULL else "warning"
    line = bar(share, width, role)
    total = gpu.memory_total_mib
    if share is None or not total or width < 4:
        return line
    cells = [(character, role) for text, role in line.spans for character in text]
    ours = {row.pid for row in view.processes}
    left = {process.pid for process in view.leftovers}
    held = [(pid, mib or 0.0) for pid, mib in gpu.processes or ()]
    if any(pid in ours for pid, _ in held) or any(pid in left for pid, _ in held):
        # Without any of ours the pids are of another namespace, and say nothing.
        others = sum(mib for pid, mib in held if pid not in ours and pid not in left) / total
        leftovers = sum(mib for pid, mib in held if pid in left) / total
        _recolour(cells, share - others, share, width, "quiet")
        _recolour(cells, share - others - leftovers, share - others, width, "bad")
    if predicted := _predicted_gib(view):
        x = min(width - 1, int(predicted * GIB / total * width))
        cells[x] = ("╋" if cells[x][1] != "faint" else "┼", "text")
    marked = Line()
    for character, cell_role in cells:
        marked.add(character, cell_role)
    return marked


def _recolour(cells: list[tuple[str, str]], low: float, high: float, width: int, role: str) -> None:
    """The filled cells between two shares of a bar; a share too small for a cell has none."""
    for x in range(round(low * width), min(width, round(high * width))):
        if cells[x][1] != "faint":
            cells[x] = (cells[x][0], role)


def _predicted_gib(view: View) -> float | None:
    memory = view.plan.get("memory") or {}
    return (memory.get("per_gpu_gib") or {}).get("total")


def _rest(gpus: list[Gpu], width: int, words: str = "more ") -> Line:
    """Several GPUs in one line: the fullest, how busy, how hot, how many are lost."""
    names = {_name(gpu) for gpu in gpus}
    line = Line(f"{len(gpus)} ", "strong text")
    line.add(words + (f"× {names.pop()}" if len(names) == 1 else "GPUs"), "quiet")
    if lost := [gpu for gpu in gpus if gpu.error]:
        line.add("  ").add(f"✗ {len(lost)} lost", "strong bad")
    full = [(g.memory_used_mib, g.memory_total_mib) for g in gpus if g.memory_used_mib is not None]
    if full:
        used, total = max(full)
        line.add(f"  {used / GIB:.1f}")
        line.add(f"/{total / GIB:.1f} GiB" if total else " GiB", "quiet")
    for values, unit in (
        ([g.utilization_percent for g in gpus], " %"),
        ([g.temperature_c for g in gpus], "°"),
        ([g.power_w for g in gpus], " W"),
    ):
        known = [value for value in values if value is not None]
        if known:
            least, most = min(known), max(known)
            both = f"{most:.0f}" if round(least) == round(most) else f"{least:.0f}–{most:.0f}"
            line.add(f"  {both}").add(unit, "quiet")
    return line.cut(width)


def _identity(gpu: Gpu) -> str:
    return gpu.uuid or str(gpu.index)


def _name(gpu: Gpu) -> str:
    """NVIDIA L4 -> L4: every name begins with the same words."""
    return plain(gpu.name or "GPU").removeprefix("NVIDIA ").removeprefix("Tesla ")


def _on_gpus(view: View) -> bool:
    """Whether GPUs are to be expected, though no sample of them is there."""
    return view.device == "cuda" or bool(view.gpus and view.gpus.source == "nvml")


def _ranks(view: View) -> list[ProcessRow]:
    return sorted(
        (row for row in view.processes if row.role == "rank"), key=lambda row: row.rank or 0
    )


def _nothing(view: View) -> str:
    if view.foreign and not view.processes:
        return "which GPUs it uses is unknown"
    return "no rank is running" if view.gpus else "no sample yet"
