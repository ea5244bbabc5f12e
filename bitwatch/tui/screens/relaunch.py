"""The question before a relaunch that something can be lost by: the old plan beside the new, and
what happens in which order. It is about the attempt and the corrections that were there when it
opened."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from bitwatch.attach.offer import Offer
from bitwatch.record.view import View
from bitwatch.tui import comparison, keys
from bitwatch.tui.comparison import Side, said
from bitwatch.tui.draw import Line, folded, plain
from bitwatch.tui.screens.over import Over
from bitwatch.tui.widgets.chooser import Chooser

MAPS = 20  # lines of the screen that a map leaves to the rest


class Relaunch(Over[Offer | None]):
    """Dismissed with the offer that was taken."""

    BINDINGS = keys.bindings("relaunch", "dialog")
    AUTO_FOCUS = "#chooser"

    def __init__(self, view: View, offers: list[Offer]) -> None:
        super().__init__()
        self._run_name = view.name or view.run
        self._step = view.step
        self._offers = offers
        self._chooser = Chooser(self._lines, len(offers))

    def compose(self) -> ComposeResult:
        attempt = self._offers[0].attempt
        takes, cancels, other = map(keys.name, ("relaunch-take", "cancel", "correction-next"))
        others = f"{other} another correction · " if len(self._offers) > 1 else ""
        with Vertical(classes="dialog wide") as dialog:
            dialog.border_title = Content(f"Relaunch attempt {attempt} of {plain(self._run_name)}")
            dialog.border_subtitle = Content(f"{takes} relaunches · {others}{cancels} cancels")
            yield self._chooser

    def action_take(self) -> None:
        self.dismiss(self._offers[self._chooser.chosen])

    def action_cancel(self) -> None:
        self.dismiss(None)

    def _lines(self, width: int, chosen: int) -> list[Line]:
        offer = self._offers[chosen]
        names = [plain(each.correction) for each in self._offers]
        old = Side(
            comparison.heading(
                f"attempt {offer.attempt}:", plain(str(offer.old.get("mode") or ""))
            ),
            offer.old,
            lambda _: [],
        )
        new = Side(
            comparison.choice(f"attempt {offer.attempt + 1}:", names, chosen),
            offer.new,
            lambda room: said("why", plain(offer.why), room, "quiet"),
        )
        height = max(4, self.app.size.height - MAPS)
        happens = [Line("What happens", "quiet")]
        for at, step in enumerate(_order(offer, self._step), start=1):
            happens += folded(step, width, "text", Line(f"{at}  ", "accent"))
        words = comparison.RESUME.get(offer.resume, plain(offer.resume))
        role = "text" if offer.resume == "exact" else "warning"
        resume = folded(words, width, role, Line("resume  ", "quiet"))
        maps = comparison.lines(old, new, width, height)
        if width < comparison.BOTH:  # what may be lost must not lie below the fold
            return [*resume, Line(), *maps, Line(), *happens]
        return [*maps, Line(), *happens, Line(), *resume]


def _order(offer: Offer, step: int) -> list[str]:
    number = offer.attempt + 1
    if not offer.live:
        return [
            "what is left of it is cleaned up",
            comparison.cost(offer.prepare_bytes, offer.prepare_s),
            f"attempt {number} goes on from the newest checkpoint",
        ]
    return [
        f"attempt {offer.attempt}, now at step {step:,}, stops by agreement of its ranks, with a "
        "checkpoint at its step",
        "what it leaves behind is cleaned up",
        comparison.cost(offer.prepare_bytes, offer.prepare_s),
        f"attempt {number} goes on from that checkpoint",
    ]
