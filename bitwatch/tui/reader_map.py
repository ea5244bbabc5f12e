"""What a plan would have every reader do, as a grid with a head of numbers. Pure.

Takes the data part of a plan as JSON has it, from any version: what is missing is not said.
"""

from __future__ import annotations

from typing import Any

from bitwatch.text import counted
from bitwatch.tui.draw import Line, flowing, folded
from bitwatch.tui.reader_grid import Cell, Grid, cell, drawn

UNEVEN_PERCENT = 1.0  # that ranks may differ by before it is worth a word
ANY_SEQUENCE = "any reader may take any sequence of the text"


def lines(data: dict[str, Any], width: int, height: int) -> list[Line]:
    """The grid below its head."""
    grid = grid_of(data)
    if not grid:
        return [Line("who will read what is not known", "quiet").cut(width)]
    found = drawn(grid, width, height, [], headed=bool(data.get("workers_per_rank")))
    if _everybody(data):
        found += [Line(), *folded(ANY_SEQUENCE, width, "quiet")]
    return found


def head(data: dict[str, Any], width: int) -> list[Line]:
    """2 shards · 4×4 readers · 8 busy · 8 idle · every rank reads everything 4× · 120 steps"""
    return flowing(_parts(data), width)


def _parts(data: dict[str, Any]) -> list[Line]:
    busy, idle = data.get("readers_busy"), data.get("readers_idle")
    parts = []
    if (shards := data.get("num_shards")) is not None:
        # Row groups that nobody could look at are not counted: then the shards are the files.
        word = "row group" if data.get("mode") == "reshard" and busy is not None else "shard"
        parts.append(_number(f"{shards:,}", _plural(word, shards)))
    size = f"{data.get('ranks') or 0}×{max(data.get('workers_per_rank') or 0, 1)}"
    parts.append(_number(size, "readers"))
    if busy is not None:
        parts.append(_number(f"{busy:,}", "busy", "fine" if not idle else "text"))
    if idle is not None:
        parts.append(_number(f"{idle:,}", "idle", "strong warning" if idle else "fine"))
    parts.extend(_copies(data))
    if (apart := data.get("imbalance_percent") or 0.0) >= UNEVEN_PERCENT:
        parts.append(Line("ranks ", "quiet").add(f"{apart:.0f} %", "strong warning"))
        parts[-1].add(" apart", "quiet")
    if (steps := data.get("steps_per_epoch")) is not None:
        about = "about " if data.get("estimated") else ""
        role = "text" if steps else "strong bad"
        line = Line(about, "quiet").add(f"{steps:,}", role)
        parts.append(line.add(f" {_plural('step', steps)} an epoch", "quiet"))
    return parts


def _copies(data: dict[str, Any]) -> list[Line]:
    """How often a row is read, and how often it is trained on."""
    copies, reads = data.get("copies") or 1, data.get("read_amplification") or 1
    if copies > 1:
        line = Line("each row is trained on ", "quiet").add(f"{copies}×", "strong warning")
        return [line.add(" an epoch", "quiet")]
    if reads > 1:
        line = Line("every rank reads everything ", "quiet")
        return [line.add(f"{reads}×", "strong warning")]
    if data.get("readers_busy") is None:
        return []
    return [Line("each row is read ", "quiet").add("once", "fine")]


def grid_of(data: dict[str, Any]) -> Grid:
    """The readers that the plan has; empty where it does not say what they get."""
    ranks, workers = data.get("ranks") or 0, max(data.get("workers_per_rank") or 0, 1)
    if _everybody(data):
        return {rank: [Cell("reading", "any", "quiet", "any")] * workers for rank in range(ranks)}
    given = {
        (part["rank"], part["worker"]): part.get("shards") or []
        for part in data.get("assignment") or ()
    }
    if not given:
        return {}
    role = "warning" if (data.get("copies") or 1) > 1 else "text"
    return {
        rank: [_predicted(given.get((rank, worker)) or [], role) for worker in range(workers)]
        for rank in range(ranks)
    }


def _predicted(shards: list[Any], role: str) -> Cell:
    return cell("reading" if shards else "idle", shards, role)


def _everybody(data: dict[str, Any]) -> bool:
    """In an index the text belongs to nobody: every reader has something to read."""
    return data.get("mode") == "indexed" and bool(data.get("readers_busy"))


def _number(number: str, word: str, role: str = "text") -> Line:
    return Line(number, role).add(f" {word}", "quiet")


def _plural(word: str, number: int) -> str:
    return counted(number, word).partition(" ")[2]
