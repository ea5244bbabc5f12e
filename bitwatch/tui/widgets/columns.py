"""The columns of the process table: their widths, their heads, and a row in them."""

from __future__ import annotations

from bitwatch.tui.draw import Line, clip, fit, middle, plain
from bitwatch.tui.family import Row

NAME_MIN = 16
COMMAND_MIN = 12
NONE = "–"
# In the order in which they are given up, each with its width including the gap before it.
OPTIONAL = (("gpu", 8), ("age", 8), ("pid", 0), ("mem", 8), ("cpu", 8), ("state", 11))


class Columns:
    """For all rows alike, within `width` cells; what does not fit is left out."""

    def __init__(self, rows: list[Row], width: int, now: float) -> None:
        self._now = now
        self._pid = max([3, *(len(str(row.process.pid)) for row in rows)])
        name = max([NAME_MIN, *(Line(row.guides + row.role).width for row in rows)])
        widths = {key: cells or self._pid + 1 for key, cells in OPTIONAL}
        if not any(row.gpu_mib is not None for row in rows):
            del widths["gpu"]
        room = width - 1  # the mark of a tagged row
        self.name = min(name, max(NAME_MIN, room * 45 // 100))
        for key, _ in OPTIONAL:
            if sum(widths.values()) + self.name > room:
                widths.pop(key, None)
        self.name = min(self.name, max(4, room))
        left = room - sum(widths.values()) - self.name
        self.command = left - 2 if left - 2 >= COMMAND_MIN else 0
        if not any(row.process.command for row in rows):
            self.command = 0
        if not self.command:
            self.name = min(name, self.name + left)
        self._widths = widths

    def has(self, key: str) -> bool:
        return key in self._widths

    def heading(self, sort: str, descending: bool) -> Line:
        line = Line(" ")
        arrow = "▾" if descending else "▴"

        def head(key: str, width: int, *, right: bool = True) -> None:
            words = f"{key}{arrow}" if key == sort else key
            line.add(fit(words, width, right=right), "strong accent" if key == sort else "quiet")

        if self.has("pid"):
            head("pid", self._pid)
            line.add(" ")
        head("role", self.name, right=False)
        if self.has("state"):
            line.add("  ")
            head("state", 9, right=False)
        for key in ("age", "cpu", "mem", "gpu"):
            if self.has(key):
                head(key, self._widths[key])
        if self.command:
            line.add("  ")
            head("command", self.command, right=False)
        return line

    def line(self, row: Row, *, tagged: bool) -> Line:
        line = Line("▌" if tagged else " ", "accent")
        if self.has("pid"):
            line.add(fit(str(row.process.pid), self._pid, right=True) + " ", "quiet")
        role = "bad" if row.state == "leftover" else "quiet" if "idle" in row.state else "text"
        guides = clip(row.guides, self.name)
        line.add(guides, "faint")
        line.add(fit(row.role, self.name - Line(guides).width), role)
        if self.has("state"):
            line.add("  ").add(fit(row.state, 9), row.tone)
        if self.has("age"):
            started = row.process.started
            line.add(
                fit(NONE if started is None else age(self._now - started), 8, right=True), "quiet"
            )
        if self.has("cpu"):
            cpu = row.cpu_percent
            line.add(fit(NONE if cpu is None else f"{cpu:.0f}", 6, right=True), _known(cpu))
            line.add(" %" if cpu is not None else "  ", "quiet")
        for key, mib in (("mem", row.rss_mib), ("gpu", row.gpu_mib)):
            if self.has(key):
                line.join(_memory(mib, self._widths[key]))
        if self.command:
            line.add("  ").add(middle(plain(row.process.command), self.command), "quiet")
        return line


def _memory(mib: float | None, width: int) -> Line:
    if mib is None:
        return Line(fit(NONE, width - 2, right=True) + "  ", "quiet")
    value, unit = (f"{mib / 1024:.1f}", " G") if mib >= 1000 else (f"{mib:.0f}", " M")
    return Line(fit(value, width - 2, right=True)).add(unit, "quiet")


def _known(value: float | None) -> str:
    return "quiet" if value is None or value < 0.5 else "text"


def age(seconds: float) -> str:
    """12s · 4m05 · 2h04 · 3d04h: seven cells at most."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"
