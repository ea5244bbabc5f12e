"""The first lines: which run this is, how it stands, and its main numbers."""

from __future__ import annotations

from textual.geometry import Size

from bitwatch.record import unwritten
from bitwatch.record.view import END_STATES, View
from bitwatch.text import duration, number, short
from bitwatch.tui import model
from bitwatch.tui.draw import Line, Part, bar, clip, most_important, needed, plain
from bitwatch.tui.widgets.painted import Painted

STATE_ROLES = {
    "preparing": "accent",
    "starting": "accent",
    "running": "fine",
    "stalled": "warning",
    "stopping": "warning",
    "done": "fine",
    "stopped": "quiet",
    "failed": "bad",
    "lost": "bad",
}
STATE_SHAPES = {
    "preparing": "◌",
    "starting": "◌",
    "stalled": "▲",
    "stopping": "◐",
    "done": "✓",
    "stopped": "■",
    "failed": "✗",
    "lost": "✗",
}
MODE_WORDS = {"paused": "paused", "reconnecting": "reconnecting", "ended": ""}
GAP = 3
SAID_LEAST = 14  # cells of a sentence; fewer say nothing
BAR_MIN, BAR_MAX = 8, 44  # cells of the progress bar


class Said(Part):
    """The sentence beside the state."""


class Header(Painted):
    """`mode` is the app's: live, paused, reconnecting or ended."""

    DEFAULT_CSS = "Header { height: auto; }"
    default_id = "header"

    mode = "live"

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 if self._fits_one(width) else 2

    def remember(self, view: View) -> None:
        width = self.size.width
        if width and self.size.height != (1 if self._fits_one(width) else 2):
            self.refresh(layout=True)

    def draw(self, width: int, height: int) -> list[Line]:
        if height == 1:
            parts = [*self._who(), *self._model(), *self._progress(), *self._numbers()]
            return [self._row(parts, self._at_right(), width)]
        return [
            self._row([*self._who(), *self._model()], self._at_right(), width),
            self._row([*self._progress(), *self._numbers()], Line(), width, indent=1),
        ]

    def _row(self, parts: list[Part], right: Line, width: int, indent: int = 0) -> Line:
        """Parts from the left, as many as fit, the bar taking what is left over."""
        room = width - indent - 1 - (right.width + 2 if right.width else 0)
        kept = _kept(parts, room)
        spare = room - needed(kept, GAP)
        # Without the name, which is padded, a row begins as the others do.
        line = Line(" " * (indent or (kept[0] is not parts[0])))
        for at, part in enumerate(kept):
            if at:
                line.add(" " * GAP)
            line.join(self._bar(min(BAR_MAX, BAR_MIN + spare)) if part.least else part.line)
        return line.right(right.add(" "), width) if right.width else line

    def _fits_one(self, width: int) -> bool:
        parts = [*self._who(), *self._progress(), *self._numbers()]
        if model.differs(self.view):
            parts += self._model()
        return needed(parts, GAP) + self._at_right().width + 3 <= width

    def _who(self) -> list[Part]:
        view = self.view
        role = STATE_ROLES[view.state]
        state = Line(f"{STATE_SHAPES.get(view.state, '●')} ", role)
        state.add(view.state.upper(), f"strong {role}")
        parts = [
            Part(1, Line(" bitwatch ", "reverse strong accent")),
            Part(8, Line(clip(plain(view.name or view.run), 40), "strong text")),
        ]
        if view.foreign:
            parts.append(Part(4, Line("watched", "quiet")))
        if view.attempt > 1 or (view.attempt and not view.foreign):
            parts.append(Part(3, Line("attempt ", "quiet").add(str(view.attempt))))
        parts.append(Part(10, state))
        if words := self._words():
            parts.append(Said(2, words))
        return parts

    def _model(self) -> list[Part]:
        """Where there is room; another model than the one that was asked for, always."""
        if model.differs(self.view):
            return [Part(9, model.counted(self.view))]
        return [Part(0, model.counted(self.view)), Part(-1, model.held(self.view))]

    def _words(self) -> Line:
        """What a state does not say: the phase that makes one wait, or the cause of an end."""
        view = self.view
        over = view.state in END_STATES
        if view.note and view.supervisor == "gone":
            return Line("▲ ", "warning").add(plain(view.note), "warning")
        if view.cause and over:
            return Line(plain(view.cause), "bad" if view.state in ("failed", "lost") else "quiet")
        if view.phase and view.phase != "train":
            line = Line(
                {"evaluate": "validating", "checkpoint": "saving"}.get(view.phase, view.phase)
            )
            if view.phase_text:
                line.add(f" {plain(view.phase_text)}", "quiet")
            if view.phase_progress is not None:
                line.add(f" {100 * view.phase_progress:.0f}").add(" %", "quiet")
            return line
        if view.unwritten and over and not view.note:  # while it goes on, an alert says so
            words = unwritten.sentence(view.unwritten, view.ranks, view.state)
            return Line(plain(words), "quiet")
        return Line(plain(view.note), "quiet")

    def _at_right(self) -> Line:
        words = MODE_WORDS.get(self.mode)
        if words:
            shape = "‖" if self.mode == "paused" else "◌"
            return Line(f" {shape} {words} ", "reverse strong warning")
        return Line()

    def _progress(self) -> list[Part]:
        view = self.view
        step = Line("step ", "quiet").add(f"{view.step:,}", "strong text")
        if not view.steps:  # a log that was not written for us need not say
            return [Part(9, step.add(" of unknown", "quiet"))] if view.foreign and view.step else []
        step.add(f"/{view.steps:,}", "quiet")
        parts = [Part(9, step), Part(5, Line(), least=BAR_MIN)]
        parts.append(Part(3, Line(f"{100 * view.step / view.steps:.0f}").add(" %", "quiet")))
        if view.state in END_STATES:
            if view.ended and view.attempt_started:
                took = duration(view.ended - view.attempt_started)
                parts.append(Part(6, Line("took ", "quiet").add(took)))
        elif view.eta_s is not None:
            parts.append(Part(7, Line("ETA ", "quiet").add(duration(view.eta_s))))
        return parts

    def _numbers(self) -> list[Part]:
        last = self.view.last
        if last is None:
            return []
        wrong = last.loss is not None and last.loss - last.loss != 0  # nan, inf
        loss = Line("loss ", "quiet")
        loss.add(number(last.loss, 4), "strong bad" if wrong else "strong text")
        parts = [Part(8, loss)]
        if last.bits_per_byte is not None:
            bits = Line(number(last.bits_per_byte, 3), "strong text").add(" bits/byte", "quiet")
            parts.append(Part(6, bits))
        over = self.view.state in END_STATES  # then nothing has a speed
        if last.tokens_per_s is not None and not over:
            unit = " tok/s" if self.view.foreign else " bit/s"
            parts.append(Part(4, Line(short(last.tokens_per_s)).add(unit, "quiet")))
        if last.mfu is not None and not over:
            mfu = Line("MFU ", "quiet").add(f"{100 * last.mfu:.0f}").add(" %", "quiet")
            parts.append(Part(3, mfu))
        if last.skipped:
            parts.append(Part(7, Line(f"{last.skipped} skipped", "warning")))
        return parts

    def _bar(self, width: int) -> Line:
        view = self.view
        ended = STATE_ROLES[view.state] if view.state in END_STATES else "accent"
        return bar(view.step / view.steps, width, ended)


def _kept(parts: list[Part], room: int) -> list[Part]:
    """The parts that fit. Of the sentence that says why a run has ended the beginning is shown
    where there is no room for the whole: nothing else on a small screen says it."""
    kept = most_important(parts, room, GAP)
    said = next((part for part in parts if isinstance(part, Said) and part.width), None)
    left = room - needed(kept, GAP) - GAP - 1  # the margin that the name brings along
    if said is None or said in kept or left < SAID_LEAST:
        return kept
    before = parts[: parts.index(said)]
    at = sum(part in before for part in kept)
    return [*kept[:at], Said(2, said.line.cut(left)), *kept[at:]]
