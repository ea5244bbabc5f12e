"""The columns of the process table: their widths, their heads, and a row in them."""

from __future__ import annotations

from rich.cells import cell_len

from bitwatch.tui.draw import Line, clip, fit, middle, plain
from bitwatch.tui.rows import Key, Row

NAME_MIN = 16
COMMAND_MIN = 12
COMMAND_ENOUGH = 24  # cells that a command keeps before the columns that few rows need
USER_MOST = 10
STATE = 9
NONE = "–"
# In the order in which they are given up, each with its width including the gap before it.
SELDOM = (("proof", 10), ("shared", 8), ("user", USER_MOST + 2))
OPTIONAL = (("age", 8), ("gpu", 8), ("pid", 0), ("mem", 8), ("cpu", 8), ("state", STATE + 2))


class Columns:
    """For all rows alike, within `width` cells; what does not fit is left out."""

    def __init__(self, rows: list[Row], width: int, now: float, *, old: bool = False) -> None:
        """`old`: what is known of the attempt's processes is not of now."""
        self.now, self._old = now, old
        self._kept: dict[tuple[Key, ...], tuple[bool, str, Line]] = {}  # tagged, age, and drawn
        self._pid = max(3, len(str(max([row.process.pid for row in rows], default=0))))
        names = {(row.guides, row.role) for row in rows}
        name = max([NAME_MIN, *(cell_len(guides) + cell_len(role) for guides, role in names)])
        widths = {key: cells or self._pid + 1 for key, cells in OPTIONAL}
        widths["state"] = 2 + max([STATE, *(min(len(row.state), STATE + 3) for row in rows)])
        if not any(row.gpu_mib is not None for row in rows):
            del widths["gpu"]
        room = width - 1  # the mark of a tagged row
        self.name = min(name, max(NAME_MIN, room * 45 // 100))
        for key, _ in OPTIONAL:
            if sum(widths.values()) + self.name > room:
                widths.pop(key, None)
        self.name = min(self.name, max(4, room))
        left = room - sum(widths.values()) - self.name
        for key, cells in reversed(SELDOM):
            if _used(key, rows) and left - cells - 2 >= COMMAND_ENOUGH:
                widths[key] = cells
                left -= cells
        self.command = left - 2 if left - 2 >= COMMAND_MIN else 0
        if not any(row.process.command or row.barred for row in rows):
            self.command = 0
        if not self.command:
            self.name = min(name, self.name + left)
        self._widths = widths
        self._places: list[tuple[int, int, str]] = []  # (from column, to column, key)

    def has(self, key: str) -> bool:
        return key in self._widths

    def at(self, x: int) -> str:
        """The column that stands there; empty for one that nothing is sorted by."""
        return next((key for start, end, key in self._places if start <= x < end), "")

    def heading(self, sort: str, arrow: str) -> Line:
        """`arrow` says which way the rows are sorted."""
        line = Line(" ")
        self._places = []

        def head(key: str, width: int, *, right: bool = True) -> None:
            words = f"{key}{arrow}" if key == sort else key
            start = line.width
            line.add(fit(words, width, right=right), "strong accent" if key == sort else "quiet")
            if key not in ("proof", "user"):
                self._places.append((start, line.width, key))

        if self.has("pid"):
            head("pid", self._pid)
            line.add(" ")
        head("role", self.name, right=False)
        if self.has("state"):
            line.add("  ")
            head("state", self._widths["state"] - 2, right=False)
        for key in ("age", "cpu", "mem", "shared", "gpu"):
            if self.has(key):
                head(key, self._widths[key])
        for key in ("proof", "user"):
            if self.has(key):
                line.add("  ")
                head(key, self._widths[key] - 2, right=False)
        if self.command:
            line.add("  ")
            head("command", self.command, right=False)
        return line

    def line(self, row: Row, *, tagged: bool) -> Line:
        """A row stays as it is for as long as its age says the same, until it is forgotten."""
        started = row.process.started if row.living else None
        old = NONE if started is None else age(self.now - started)
        kept = self._kept.get(row.keys)
        if kept is None or kept[:2] != (tagged, old):
            line = self._until_age(row, tagged)
            if self.has("age"):
                line.add(fit(old, self._widths["age"], right=True), "quiet")
            kept = self._kept[row.keys] = tagged, old, line.join(self._after(row))
        return kept[2]

    def forget(self, row: Row) -> None:
        """It has changed."""
        self._kept.pop(row.keys, None)

    def _dims(self, row: Row) -> bool:
        """What stands beside the attempt is looked at by the viewer itself."""
        return row.context or (self._old and not row.group)

    def _until_age(self, row: Row, tagged: bool) -> Line:
        line = Line("▌" if tagged else " ", "accent")
        if self.has("pid"):
            line.add(fit(str(row.process.pid), self._pid, right=True) + " ", "quiet")
        guides = clip(row.guides, self.name)
        line.add(guides, "faint")
        room = self.name - Line(guides).width
        if row.barred and not self.command:  # no other place says why
            words = f"{clip(row.role, room // 2)} · {plain(row.barred)}"
            line.add(fit(words, room), "quiet")
        else:
            line.add(fit(row.role, room), "quiet" if self._dims(row) else _role_of(row))
        if self.has("state"):
            dim = row.barred or (self._dims(row) and row.tone != "bad")
            tone = "quiet" if dim else row.tone
            line.add("  ").add(fit(row.state, self._widths["state"] - 2), tone)
        return line

    def _after(self, row: Row) -> Line:
        line, lives = Line(), row.living > 0
        if self.has("cpu"):
            cpu = row.cpu_percent if lives else None
            tone = "quiet" if row.barred or self._dims(row) else _known(cpu)
            line.add(fit(NONE if cpu is None else f"{cpu:.0f}", 6, right=True), tone)
            line.add(" %" if cpu is not None else "  ", "quiet")
        tone = "quiet" if row.barred or self._dims(row) else "text"
        memory = {
            "mem": row.rss_mib if lives else None,
            "shared": row.shared_mib if lives else None,
            "gpu": row.gpu_mib,  # which a driver may hold on to
        }
        for key, mib in memory.items():
            if self.has(key):
                line.join(_memory(mib, self._widths[key], tone))
        if self.has("proof"):
            line.add("  ").add(fit(_proof(row), self._widths["proof"] - 2), "quiet")
        if self.has("user"):
            line.add("  ").add(fit(row.user, USER_MOST), "quiet")
        if self.command:
            line.add("  ").join(_command(row, self.command))
        return line


def _used(key: str, rows: list[Row]) -> bool:
    if key == "proof":
        return any(row.other for row in rows)
    if key == "user":
        return any(row.user for row in rows)
    return any(row.shared_mib is not None for row in rows)


def _role_of(row: Row) -> str:
    if row.barred or "idle" in row.state:
        return "quiet"
    return {"leftover": "bad", "confirm": "warning", "suspect": "warning"}.get(row.group, "text")


def _proof(row: Row) -> str:
    if row.other is None:
        return "recorded" if row.group == "leftover" else ""
    return plain(row.proof) or "none"


def _command(row: Row, width: int) -> Line:
    """What it runs; before that, why it cannot be signalled. Only what can be seen of a very
    long line is made harmless."""
    command = row.process.command
    if len(command) > 2 * width:
        command = f"{command[:width]}…{command[-width:]}"
    command = plain(command)
    if not row.barred:
        return Line(middle(command, width), "quiet")
    line = Line(clip(plain(row.barred[: 2 * width]), width), "text")
    left = width - line.width - 3
    if command and left >= COMMAND_MIN:
        line.add(" · ", "faint").add(middle(command, left), "quiet")
    return line


def _memory(mib: float | None, width: int, tone: str) -> Line:
    if mib is None:
        return Line(fit(NONE, width - 2, right=True) + "  ", "quiet")
    value, unit = (f"{mib / 1024:.1f}", " G") if mib >= 1000 else (f"{mib:.0f}", " M")
    return Line(fit(value, width - 2, right=True), tone).add(unit, "quiet")


def _known(value: float | None) -> str:
    return "quiet" if value is None or value < 0.5 else "text"


def age(seconds: float) -> str:
    """12s · 4m · 2h04 · 3d04h: six cells at most. Beyond the first minute nobody counts a process's
    seconds, and rows in which nothing happens stand still."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"
