"""The readers as a list: a line a reader, who needs a look first. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from bitwatch.record.readers import Judged, Key
from bitwatch.text import duration, size
from bitwatch.tui.draw import Line, clip, fit, plain
from bitwatch.tui.reader_grid import SEVERITY, SHAPES, shard_name, shard_words
from bitwatch.tui.readings import Rates

NONE = "–"
SHARDS_MIN, SHARDS_MAX = 8, 24  # cells
LEAST = 3  # lines: the heading, a reader, and how many more there are
# Heading, cells with the gap before them, whether it is a number; the first goes first.
COLUMNS = (
    ("pid", 9, True),
    ("rows", 12, True),
    ("samples", 12, True),
    ("text", 11, True),
    ("text/s", 11, True),
    ("since", 10, True),
)
SHOWN = ("since", "rows", "samples", "text", "text/s")  # in this order


def lines(
    readers: Mapping[Key, Judged], rates: Rates, now: float, width: int, height: int
) -> list[Line]:
    """As many readers as there is room for; nothing where there is room for none."""
    if height < LEAST or not readers:
        return []
    ordered = sorted(readers.items(), key=lambda one: (SEVERITY.index(one[1].state), one[0]))
    widths = _fitting(width - len("rank  worker") - 12 - SHARDS_MIN - 4)
    others = sum(widths.values())
    shards = min(SHARDS_MAX, SHARDS_MIN + max(0, width - 40 - others))
    found = [_heading(widths, shards)]
    room = height - 1 if len(ordered) <= height - 1 else height - 2
    found += [_line(key, one, widths, shards, rates, now) for key, one in ordered[:room]]
    if len(ordered) > room:
        found.append(Line(f"and {len(ordered) - room:,} more, who need a look less", "quiet"))
    return found


def _fitting(room: int) -> dict[str, int]:
    widths = {name: cells for name, cells, _ in COLUMNS}
    for name, _, _ in COLUMNS:
        if sum(widths.values()) > room:
            widths.pop(name)
    return widths


def _heading(widths: dict[str, int], shards: int) -> Line:
    line = Line("rank  worker", "quiet")
    if "pid" in widths:
        line.add(fit("pid", widths["pid"], right=True), "quiet")
    line.add("  " + fit("state", 12) + fit("shards", shards), "quiet")
    for name in SHOWN:
        if name in widths:
            line.add(fit(name, widths[name], right=True), "quiet")
    return line


def _line(
    key: Key, one: Judged, widths: dict[str, int], shards: int, rates: Rates, now: float
) -> Line:
    reader = one.reader
    line = Line(fit(str(key[0]), 4, right=True)).add(fit(str(key[1]), 8, right=True))
    if "pid" in widths:
        pid = str(reader.pid) if reader and reader.pid else NONE
        line.add(fit(pid, widths["pid"], right=True), "quiet")
    shape, role = SHAPES[one.state]
    strong = role if role in ("bad", "warning") else "text"
    line.add("  ").add(shape, role).add(" " + fit(one.state, 10), strong)
    line.add(fit(clip(_shards(one), shards - 1), shards), "text")
    still = None if one.since is None else max(0.0, now - one.since)
    values = {"since": NONE if still is None else duration(still)}
    if reader is not None:
        rate = rates.of_reader(key)
        values |= {
            "rows": f"{reader.rows:,}",
            "samples": f"{reader.samples:,}",
            "text": size(reader.bytes),
            "text/s": NONE if rate is None else size(rate),
        }
    for name in SHOWN:
        if name in widths:
            value = values.get(name, NONE)
            urgent = name == "since" and role == "bad"
            tone = "bad" if urgent else "quiet" if value == NONE else "text"
            line.add(fit(value, widths[name], right=True), tone)
    if reader is not None and reader.error:
        line.add(f"  {plain(reader.error)}", "warning")
    return line


def _shards(one: Judged) -> str:
    """The one that it is in, of those that it was given."""
    reader = one.reader
    if reader is None or not reader.shards:
        return "no data" if one.state == "idle" else NONE
    words = shard_words(reader.shards)
    if reader.shard is None or len(reader.shards) == 1:
        return words
    return f"{shard_name(reader.shard)} of {words}"
