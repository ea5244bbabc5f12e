"""Who reads what: a mark for every reader (a rank's worker), with its shard.

Every state has a shape besides its colour. The marks shrink with the room: with words, then
alone, then several ranks a line, and at last one mark a rank, which shows its worst reader.
"""

from __future__ import annotations

from typing import Any

from bitwatch.record.events import Reader
from bitwatch.record.view import END_STATES, View
from bitwatch.tui.draw import Line, Part, bar, centred, clip, fit, joined, plain
from bitwatch.tui.readings import NEVER, Rates, grid, shard_progress, worst
from bitwatch.tui.widgets.panel import Panel

SHAPES = {
    "reading": ("●", "fine"),
    "retrying": ("↻", "warning"),
    "idle": ("○", "warning"),
    "starting": ("◌", "accent"),
    "done": ("✓", "quiet"),
    "failed": ("✗", "bad"),
    "dead": ("✗", "bad"),
    "stopped": ("■", "quiet"),
    NEVER: ("·", "quiet"),
}
IMPORTANCE = {"failed": 9, "dead": 9, "retrying": 9, "idle": 8, "reading": 7}  # of their counts
ORDER = ("failed", "dead", "retrying", "idle", "starting", "stopped", "done", NEVER)
LABEL_MIN, LABEL_MAX = 4, 14  # cells of the word beside a mark
RATE_WIDTH, WAIT_WIDTH = 9, 6
SLOW_SHARE = 0.1  # of a step spent waiting for data: worth a colour


class ReaderPanel(Panel):
    default_id = "readers"
    number = "2"
    title = "Readers"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rates = Rates()

    def remember(self, view: View) -> None:
        self._rates.take(view)

    # -----------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> list[Line]:
        rows = grid(self.view)
        if not rows:
            return centred("no reader has reported yet", width, height)
        head = [self.summary(width)]
        if height >= 3 + len(rows):
            head.append(Line())
        room = height - len(head)
        body = self._table(rows, width, room) or _dense(rows, width, room) or _by_rank(rows, width)
        body.extend(_shard_bars(self.view, width, room - len(body)))
        if self.view.workers == 0 and len(head) + len(body) < height:
            body.append(Line("no workers: each rank reads for itself", "quiet"))
        return [*head, *body][:height]

    def summary(self, width: int) -> Line:
        view = self.view
        data = view.plan.get("data") or {}
        states = [state for row in grid(view).values() for _, state, _ in row]
        parts = []
        if data.get("num_shards") is not None:
            parts.append(Part(2, Line("shards ", "quiet").add(f"{data['num_shards']}")))
        size = f"{view.ranks}×{max(view.workers, 1)}"
        parts.append(Part(3, Line("readers ", "quiet").add(size)))
        words = {"reading": "busy", NEVER: "not started"}
        for state in ("reading", *ORDER):
            number = states.count(state)
            if number or (state == "reading" and view.state not in END_STATES):
                role = (
                    "text" if state in ("reading", "done", "stopped", NEVER) else SHAPES[state][1]
                )
                strong = f"strong {role}" if role in ("bad", "warning") else role
                line = Line(f"{words.get(state, state)} ", "quiet").add(f"{number}", strong)
                parts.append(Part(IMPORTANCE.get(state, 4), line))
        if (copies := data.get("read_amplification") or 1) > 1:
            line = Line("every rank reads ", "quiet").add(f"{copies}×", "strong warning")
            parts.append(Part(5, line))
        return joined(parts, width)

    def subtitle(self) -> list[Part]:
        data = self.view.plan.get("data") or {}
        words = [plain(str(data[key])) for key in ("source", "mode") if data.get(key)]
        if self.view.epoch:
            words.append(f"epoch {self.view.epoch.epoch + 1}")
        return [Part(at, Line(word, "quiet")) for at, word in enumerate(words)]

    # -----------------------------------------------------------------------------------

    def _table(self, rows: Grid, width: int, height: int) -> list[Line]:
        """A line a rank, or nothing when that does not fit."""
        count = max(len(row) for row in rows.values())
        name = len(f"rank {max(rows)}") + 2
        headed = height > len(rows) and self.view.workers > 0
        rates = headed and self._rates.known()  # a number without a head says nothing
        right = (RATE_WIDTH if rates else 0) + (WAIT_WIDTH if headed else WAIT_WIDTH + 5)
        over = self.view.state in END_STATES  # its rates are of another time
        right = right if not over and width - name - right >= count * 2 else 0
        cell = (width - name - right) // count
        if len(rows) > height or cell < 2:
            return []
        longest = min(LABEL_MAX, _longest(rows))
        label = min(longest, cell - 3)
        if label < min(longest, LABEL_MIN):  # a word cut short says less than the mark alone
            label = 0
        cell = min(cell, label + 5) if label else 2
        lines = []
        if headed:
            lines.append(self._header(count, name, cell, bool(right), rates))
        for rank, row in rows.items():
            line = Line("rank ", "quiet").add(str(rank), "text").pad(name)
            for _, state, reader in row:
                shape, role = SHAPES[state]
                begins = line.width
                line.add(shape, role)
                if label:
                    words, words_role = _words(state, reader)
                    line.add(f" {clip(words, label)}", words_role)
                line.pad(begins + cell)
            if right:
                line.add("" if headed else " wait", "quiet").join(self._gauges(rank, rates))
            lines.append(line)
        return lines

    def _header(self, count: int, name: int, cell: int, gauges: bool, rates: bool) -> Line:
        line = Line(" " * name)
        for worker in range(count):
            words = f"w{worker}" if cell > 2 else str(worker)
            line.add(fit(words if len(words) < cell else "", cell), "quiet")
        if gauges:
            line.add(fit("samples/s", RATE_WIDTH, right=True) if rates else "", "quiet")
            line.add(fit("wait", WAIT_WIDTH, right=True), "quiet")
        return line

    def _gauges(self, rank: int, rate: bool) -> Line:
        line = Line()
        if rate:
            value = self._rates.of(rank)
            line.add(fit("–" if value is None else f"{value:,.0f}", RATE_WIDTH, right=True))
        step = self.view.rank_steps.get(rank)
        share = (
            step.data_s / step.step_s if step and step.data_s is not None and step.step_s else None
        )
        if share is None:
            return line.add(fit("–", WAIT_WIDTH, right=True), "quiet")
        role = "warning" if share >= SLOW_SHARE else "text"
        return line.add(fit(f"{100 * share:.0f}", WAIT_WIDTH - 2, right=True), role).add(
            " %", "quiet"
        )


Grid = dict[int, list[tuple[int, str, Reader | None]]]


def _dense(rows: Grid, width: int, height: int) -> list[Line]:
    """Several ranks a line, a mark a reader; nothing when that does not fit."""
    count = max(len(row) for row in rows.values())
    name = len(str(max(rows))) + 1
    block = name + count
    a_line = (width + 3) // (block + 3)
    if a_line < 1 or -(-len(rows) // a_line) > height:
        return []
    lines: list[Line] = []
    for at, (rank, row) in enumerate(rows.items()):
        if at % a_line == 0:
            lines.append(Line())
        else:
            lines[-1].add("   ")
        lines[-1].add(fit(str(rank), name - 1, right=True), "quiet").add(" ")
        for _, state, _ in row:
            lines[-1].add(*SHAPES[state])
    return lines


def _by_rank(rows: Grid, width: int) -> list[Line]:
    """A mark a rank: its worst reader."""
    name = 2 * len(str(max(rows))) + 2
    a_line = max(1, (width - name) // 8 * 8 if width - name >= 8 else width - name)
    ranks = list(rows)
    lines = []
    for start in range(0, len(ranks), a_line):
        some = ranks[start : start + a_line]
        line = Line(fit(f"{some[0]}–{some[-1]}", name - 1, right=True), "quiet").add(" ")
        for rank in some:
            line.add(*SHAPES[worst(state for _, state, _ in rows[rank])])
        lines.append(line)
    lines.append(Line(clip("a mark a rank: its worst reader", width), "quiet"))
    return lines


def _shard_bars(view: View, width: int, height: int) -> list[Line]:
    """How far each shard is, in columns, below an empty line; as many as there is room for."""
    shares = shard_progress(view)
    if not shares or height < 2:
        return []
    name = max(len(shard) for shard in shares) + 6
    a_line = max(1, min(len(shares), (width + 3) // (name + 6 + 12 + 3)))
    bar_width = (width + 3) // a_line - 3 - name - 1 - 6
    if bar_width < 6:
        return []
    if -(-len(shares) // a_line) + 1 > height:
        mean = sum(shares.values()) / len(shares)
        line = Line("of their shards ", "quiet").join(bar(mean, min(32, width - 22), "fine"))
        return [Line(), line.add(f"{100 * mean:.0f}".rjust(4)).add(" %", "quiet")]
    lines = [Line()]
    for at, (shard, share) in enumerate(shares.items()):
        if at % a_line == 0:
            lines.append(Line())
        else:
            lines[-1].add("   ")
        lines[-1].add("shard ", "quiet").add(fit(plain(shard), name - 6)).add(" ")
        lines[-1].join(bar(share, min(bar_width, 32), "fine" if share < 1 else "quiet"))
        lines[-1].add(fit(f"{100 * share:.0f}", 4, right=True)).add(" %", "quiet")
    return lines


def _words(state: str, reader: Reader | None) -> tuple[str, str]:
    """What stands beside a mark: the shards of who reads, else the state."""
    if reader is not None and state in ("reading", "done", "stopped") and reader.shards:
        return _shards(reader.shards), "text" if state == "reading" else "quiet"
    return state, "quiet" if state not in ("failed", "dead") else "bad"


def _shards(shards: list[Any]) -> str:
    """s0 · s0-s3 · s0 +2 · [0:12], of the row groups of a file"""
    names = [f"s{shard}" if isinstance(shard, int) else _run(str(shard)) for shard in shards]
    if len(names) == 1:
        return names[0]
    numbers = [shard for shard in shards if isinstance(shard, int)]
    if len(numbers) == len(shards) and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"s{numbers[0]}-{numbers[-1]}"
    return f"{names[0]} +{len(names) - 1}"


def _run(name: str) -> str:
    """The end of train-0.parquet[0:12]: the names of files begin alike."""
    at = name.rfind("[")
    return plain(name[at:] if at > 0 and name.endswith("]") else name)


def _longest(rows: Grid) -> int:
    return max(
        Line(_words(state, reader)[0]).width for row in rows.values() for _, state, reader in row
    )
