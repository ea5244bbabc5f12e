"""Where there is no GPU: the ranks' processor time and resident memory, a line a rank. Pure."""

from __future__ import annotations

from bitwatch.record.gpu_history import of_rank
from bitwatch.record.view import ProcessRow, View
from bitwatch.tui.draw import Line, bar, fit, sparks
from bitwatch.tui.gpu_facts import GIB, last_known, ranks_of

NA = "n/a"


def lines(view: View, width: int, height: int) -> list[Line]:
    ranks = ranks_of(view)
    digits = max(len(str(row.rank)) for row in ranks)
    top = max(100.0, *(row.cpu_percent or 0.0 for row in ranks))
    drawn = [_rank(view, row, width, top, digits) for row in ranks[:height]]
    if len(ranks) > height:
        more = Line(f"and {len(ranks) - height + 1} more ranks", "quiet")
        drawn = [*drawn[: height - 1], more]
    return drawn


def _rank(view: View, row: ProcessRow, width: int, top: float, digits: int) -> Line:
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
    recent = view.gpu_history.recent.get(of_rank(row.rank or 0))
    line.add(sparks(recent.busy[-spark:] if recent and spark else [], spark, top), "accent-muted")
    return line.join(rss).cut(width)


def summary(view: View) -> Line:
    ranks = ranks_of(view)
    line = Line("no GPU  " if not last_known(view) else "on the CPU  ", "quiet")
    line.add(str(len(ranks))).add(" ranks", "quiet")
    if cpu := [row.cpu_percent for row in ranks if row.cpu_percent is not None]:
        line.add("  cpu ", "quiet").add(f"{sum(cpu):.0f}").add(" %", "quiet")
    if rss := [row.rss_mib for row in ranks if row.rss_mib is not None]:
        line.add("  memory ", "quiet").add(f"{sum(rss) / GIB:.1f}").add(" GiB", "quiet")
    return line
