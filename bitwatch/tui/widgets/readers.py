"""What every reader does: the grid, what each rank gets out of it, and how far the text is.

With the screen for itself and room below, the readers as a list, who needs a look first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from bitwatch.record.readers import NEVER, Judged, Key, judged
from bitwatch.record.view import END_STATES, View
from bitwatch.text import duration, size
from bitwatch.tui import reader_list, shard_bars, watched_workers
from bitwatch.tui.draw import Line, Part, centred, fit, joined, plain
from bitwatch.tui.reader_grid import SEVERITY, SHAPES, Gauge, drawn, shard_name
from bitwatch.tui.readings import BUSY, Rates, grid
from bitwatch.tui.widgets.panel import Panel

IMPORTANCE = {"failed": 9, "dead": 9, "stuck": 9, "retrying": 9, "idle": 8, "busy": 7}  # of counts
CALM = ("busy", "done", "stopped", NEVER)
NAMED = ("failed", "dead", "stuck")  # with a sentence
SLOW_SHARE = 0.1  # of a step spent waiting for data: worth a colour


class ReaderPanel(Panel):
    """`listed`: with the list, where it fills the screen."""

    default_id = "readers"
    title = "Readers"

    listed = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rates = Rates()
        self._judged: Mapping[Key, Judged] = {}

    def remember(self, view: View) -> None:
        self._judged = judged(view, view.ended or self.now)
        self._rates.take(view, self._judged, self.now)

    @property
    def _at(self) -> float:
        """The moment that is shown: nothing goes on in an attempt that is over."""
        return self.view.ended or self.now

    # -----------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> list[Line]:
        if self.view.foreign:
            return watched_workers.lines(self.view, width, height)
        rows = grid(self.view, self._judged, self._at)
        if not rows:
            return centred("no reader has reported yet", width, height)
        head = [self.summary(width)]
        if height >= 3 + len(rows):
            head.append(Line())
        room = height - len(head)
        body = drawn(rows, width, room, self._gauges(), headed=self.view.workers > 0)
        body.extend(self._named(width, room - len(body)))
        body.extend(shard_bars.lines(self.view, width, room - len(body)))
        if self.view.workers == 0 and len(body) < room:
            body.append(Line("no workers: each rank reads for itself", "quiet"))
        if self.listed and len(body) < room:
            left = room - len(body) - 1
            listed = reader_list.lines(self._judged, self._rates, self._at, width, left)
            body.extend([Line(), *listed])
        return [*head, *body][:height]

    def summary(self, width: int) -> Line:
        view = self.view
        if view.foreign:
            return watched_workers.summary(view)
        data = view.plan.get("data") or {}
        if not (data or self._judged or view.ranks):
            return Line("not known yet", "quiet")
        states = [one.state for one in self._judged.values()]
        parts = []
        if data.get("num_shards") is not None:
            parts.append(Part(2, Line("shards ", "quiet").add(f"{data['num_shards']}")))
        size_ = f"{view.ranks}×{max(view.workers, 1)}"
        parts.append(Part(3, Line("readers ", "quiet").add(size_)))
        counts = {"busy": sum(states.count(state) for state in BUSY)}
        counts |= {state: states.count(state) for state in SEVERITY if state not in BUSY}
        for state, number in counts.items():
            if number or (state == "busy" and view.state not in END_STATES):
                role = "text" if state in CALM else SHAPES[state][1]
                strong = f"strong {role}" if role in ("bad", "warning") else role
                word = "not started" if state == NEVER else state
                line = Line(f"{word} ", "quiet").add(f"{number:,}", strong)
                parts.append(Part(IMPORTANCE.get(state, 4), line))
        if waiting := states.count("waiting"):
            line = Line("of them waiting ", "quiet").add(f"{waiting:,}")
            parts.insert(3 if len(parts) > 2 else len(parts), Part(1, line))
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

    def _named(self, width: int, height: int) -> list[Line]:
        """Who is in trouble, and what is known of it, below an empty line."""
        wrong = [(key, one) for key, one in self._judged.items() if one.state in NAMED]
        wrong.sort(key=lambda one: (SEVERITY.index(one[1].state), one[0]))
        if not wrong or height < 2:
            return []
        shown = wrong if len(wrong) < height else wrong[: max(1, height - 2)]
        found = [_trouble(key, one, self._at).cut(width) for key, one in shown]
        if len(wrong) > len(shown) and height > len(shown) + 1:
            found.append(Line(f"and {len(wrong) - len(shown):,} more", "quiet"))
        return [Line(), *found]

    def _gauges(self) -> list[Gauge]:
        """Rates while the run lives: after it they would be of another time."""
        view = self.view
        if view.state in END_STATES:
            return []
        waits = Gauge("wait", 6, lambda rank: _wait(view, rank))
        if not self._rates.known():
            return [waits]
        rates = self._rates
        return [
            Gauge("text/s", 11, lambda rank: _rate(_size(rates.text_bytes(rank)), 11)),
            Gauge("samples/s", 10, lambda rank: _rate(_count(rates.samples(rank)), 10)),
            waits,
        ]


def _trouble(key: Key, one: Judged, now: float) -> Line:
    """rank 1 worker 0 stuck in s0 since 12 s"""
    shape, role = SHAPES[one.state]
    line = Line(f"{shape} ", role).add("rank ", "quiet").add(str(key[0])).add(" worker ", "quiet")
    line.add(str(key[1])).add(f" {one.state}", f"strong {role}")
    reader = one.reader
    shard = None
    if reader is not None:
        shard = reader.shards[0] if len(reader.shards) == 1 else reader.shard
    if shard is not None:
        line.add(" in ", "quiet").add(shard_name(shard))
    if one.since is not None:
        line.add(" since ", "quiet").add(duration(max(0.0, now - one.since)))
    if reader is not None and reader.error:
        line.add(f": {plain(reader.error)}", "quiet")
    return line


def _wait(view: View, rank: int) -> Line:
    step = view.rank_steps.get(rank)
    share = step.data_s / step.step_s if step and step.data_s is not None and step.step_s else None
    if share is None or math.isnan(share):
        return _rate(None, 6)
    role = "warning" if share >= SLOW_SHARE else "text"
    return Line(fit(f"{100 * share:.0f}", 4, right=True), role).add(" %", "quiet")


def _size(rate: float | None) -> str | None:
    return None if rate is None else size(rate)


def _count(rate: float | None) -> str | None:
    return None if rate is None else f"{rate:,.0f}"


def _rate(words: str | None, width: int) -> Line:
    if words is None:
        return Line(fit("–", width, right=True), "quiet")
    number, _, unit = words.partition(" ")
    return Line(fit(number, width - (len(unit) + 1 if unit else 0), right=True)).add(
        f" {unit}" if unit else "", "quiet"
    )
