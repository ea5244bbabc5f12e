"""The memory of a GPU as a bar: ours, what leftovers hold, others; the plan's word as a mark."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.view import END_STATES
from bitwatch.tui.draw import Line, bar
from bitwatch.tui.gpu_facts import Facts

FULL, NEARLY_FULL = 0.985, 0.95  # share of the memory


def memory_bar(gpu: events.Gpu, facts: Facts, width: int) -> Line:
    used, total = gpu.memory_used_mib, gpu.memory_total_mib
    share = used / total if used is not None and total else None
    role = "quiet" if facts.view.state in END_STATES else "accent"
    if share is not None and share >= NEARLY_FULL:
        role = "bad" if share >= FULL else "warning"
    line = bar(share, width, role)
    if share is None or not total or width < 4:
        return line
    cells = [(character, role) for text, role in line.spans for character in text]
    if facts.pids_are_ours or gpu.index not in facts.used:
        held = facts.held(gpu)
        others, leftovers = (held.others or 0.0) / total, (held.leftovers or 0.0) / total
        _recolour(cells, share - others, share, width, "quiet")
        _recolour(cells, share - others - leftovers, share - others, width, "bad")
    if facts.predicted_mib and gpu.index in facts.used:
        x = min(width - 1, int(facts.predicted_mib / total * width))
        cells[x] = ("╋" if cells[x][1] != "faint" else "┼", "text")
    marked = Line()
    for character, cell_role in cells:
        marked.add(character, cell_role)
    return marked


def _recolour(cells: list[tuple[str, str]], low: float, high: float, width: int, role: str) -> None:
    """The filled cells between two shares of a bar; a share too small for a cell has none."""
    for x in range(max(0, round(low * width)), min(width, round(high * width))):
        if cells[x][1] != "faint":
            cells[x] = (cells[x][0], role)
