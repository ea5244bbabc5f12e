"""The GPU panel: a line a GPU, or where it fills the screen a block of all that is known.

A GPU that is lost keeps its place, and what is not of now is dimmed. Where there is no NVIDIA
driver the ranks' CPU time and resident memory stand in, and the panel says so.
"""

from __future__ import annotations

from textual import events as textual_events

from bitwatch.record.gpu_history import GpuHistory
from bitwatch.record.view import END_STATES, View
from bitwatch.text import duration
from bitwatch.tui import blocks, gpu_block, gpu_lines, keys, rank_block, rank_lines
from bitwatch.tui.draw import Line, Part, centred, plain
from bitwatch.tui.gpu_facts import (
    GIB,
    Facts,
    age,
    expects_gpus,
    ranks_of,
    rows_wanted,
    shows_ranks,
    trouble,
)
from bitwatch.tui.widgets.panel import Panel

WHEEL_LINES = 3


class GpuPanel(Panel):
    """`large`: with blocks instead of lines, where it fills the screen. `whole_run`: the graphs
    show everything since the run began, else the last ten minutes."""

    default_id = "gpus"
    title = "GPUs"
    BINDINGS = keys.bindings("gpus")

    large = False
    whole_run = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._facts = Facts(View())
        self._span = gpu_block.Span(GpuHistory(), 0.0, whole=False)
        self._offset = 0  # lines above the first that is drawn
        self._starts: list[int] = []
        self._room = 1
        self._length = 0

    def remember(self, view: View) -> None:
        self._facts = Facts(view)

    # -----------------------------------------------------------------------------------

    def lines(self, width: int, height: int) -> list[Line]:
        view = self.view
        self._starts = []
        if shows_ranks(view):
            if not ranks_of(view):
                return centred(_nothing(view), width, height)
            drawn = self._blocks if self.large else rank_lines.lines
            return self._of_now(drawn(view, width, height))
        if self._facts.gpus:
            if self.large:
                return self._of_now(self._blocks(view, width, height))
            return self._of_now(gpu_lines.lines(self._facts, width, height))
        why = view.gpus.note if view.gpus else ""
        return centred(plain(why) or "no sample of the GPUs yet", width, height)

    def summary(self, width: int) -> Line:
        view = self.view
        if shows_ranks(view):
            if not ranks_of(view):
                unknown = view.gpus is None and view.device != "cpu"
                words = "no sample yet" if unknown else "no GPU, no rank running"
                return Line(words, "quiet")
            return self._aged(rank_lines.summary(view))
        if self._facts.gpus:
            return self._aged(gpu_lines.summary(self._facts, self._facts.gpus, width))
        return Line("no sample yet", "quiet")

    def crowded(self, height: int) -> bool:
        return not self.large and height - 2 < rows_wanted(self.view)

    def subtitle(self) -> list[Part]:
        view = self.view
        parts = []
        if old := self._old():
            parts.append(Part(9, Line(old, "quiet" if view.state in END_STATES else "warning")))
        if shows_ranks(view):
            if view.gpus is None and view.device != "cpu":
                return []
            unused = len(self._facts.gpus)
            words = "no GPU: ranks' CPU and memory"
            words = f"on the CPU: the {unused} GPUs are not used" if unused else words
            parts.append(Part(1, Line(words, "quiet")))
        elif self._facts.gpus:
            if predicted := self._facts.predicted_mib:
                mark = Line("┼", "text").add(f" predicted {predicted / GIB:.1f} GiB", "quiet")
                parts.append(Part(2, mark))
            parts.append(Part(1, Line("NVML", "quiet")))
        return [*parts, *self._about_blocks()] if self.large and parts else parts

    def _about_blocks(self) -> list[Part]:
        span = "graphs: last 10 minutes"
        if self.whole_run:
            span = f"graphs: all of {duration(self._span.seconds)}"
        parts = [Part(3, Line(span, "quiet"))]
        if hidden := len(self._starts) - self._whole_blocks():
            parts.append(Part(5, Line("↑↓", "accent").add(f" {hidden} more", "quiet")))
        return parts

    def _whole_blocks(self) -> int:
        """How many are in sight from head to end."""
        ends = [*self._starts, self._length + 1][1:]
        last = self._offset + self._room
        inside = zip(self._starts, ends, strict=True)
        return sum(start >= self._offset and end - 1 <= last for start, end in inside)

    # -----------------------------------------------------------------------------------

    def _blocks(self, view: View, width: int, height: int) -> list[Line]:
        span = self._span = gpu_block.Span(view.gpu_history, self._end(), whole=self.whole_run)
        if shows_ranks(view):
            found = rank_block.blocks(view, span)
        else:
            found = [gpu_block.block(gpu, self._facts, span) for gpu in self._facts.gpus]
        drawn = blocks.drawn(found, width, height)
        self._starts, self._room, self._length = drawn.starts, height, len(drawn.lines)
        self._offset = max(0, min(self._offset, self._length - height))
        return drawn.lines[self._offset : self._offset + height]

    def _end(self) -> float:
        """Up to when graphs go: now, or the last sample of a run that is over."""
        view = self.view
        sampled = view.sampled if shows_ranks(view) else view.gpus.t if view.gpus else None
        return sampled if sampled and view.state in END_STATES else self.now

    def _old(self) -> str:
        view = self.view
        if shows_ranks(view):
            return age(self.now - view.sampled) if view.sampled and ranks_of(view) else ""
        return trouble(view, self.now)

    def _of_now(self, lines: list[Line]) -> list[Line]:
        return [gpu_lines.dimmed(line) for line in lines] if self._old() else lines

    def _aged(self, line: Line) -> Line:
        old = self._old()
        return Line(f"{old}  ", "warning").join(gpu_lines.dimmed(line)) if old else line

    # -- keys -----------------------------------------------------------------------------

    def action_gpu_span(self) -> None:
        self.whole_run = not self.whole_run
        self.repaint()

    def action_gpu_scroll(self, blocks_down: int) -> None:
        """To the beginning of the next block, or of the one before."""
        starts = self._starts if self.large else []
        after = [start for start in starts if start > self._offset]
        before = [start for start in starts if start < self._offset]
        if blocks_down > 0 and after:
            self._go_to(min(after[0], self._offset + self._room))
        elif blocks_down < 0 and before:
            self._go_to(max(before[-1], self._offset - self._room))

    def action_gpu_page(self, pages_down: int) -> None:
        self._go_to(self._offset + pages_down * max(1, self._room - 1))

    def on_mouse_scroll_down(self, event: textual_events.MouseScrollDown) -> None:
        self._go_to(self._offset + WHEEL_LINES)

    def on_mouse_scroll_up(self, event: textual_events.MouseScrollUp) -> None:
        self._go_to(self._offset - WHEEL_LINES)

    def _go_to(self, offset: int) -> None:
        if self.large:
            self._offset = max(0, min(offset, self._length - self._room))
            self.repaint()


def _nothing(view: View) -> str:
    if view.foreign and not view.processes:
        return "which GPUs it uses is unknown"
    if expects_gpus(view):
        return "no sample of the GPUs yet"
    return "no rank is running" if view.gpus else "no sample yet"
