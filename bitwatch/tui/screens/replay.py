"""The dashboard of a run that is played again: its clock is in a person's hands, and nothing can
be done to what is over."""

from __future__ import annotations

from textual.app import ComposeResult

from bitwatch.attach.playing import Played
from bitwatch.attach.replay import REFUSED, Replay, Wish
from bitwatch.attach.telling import Snapshot
from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.host import Host
from bitwatch.tui.screens.dashboard import Dashboard
from bitwatch.tui.targets import Target
from bitwatch.tui.where import taken
from bitwatch.tui.widgets.timeline import Timeline

BEGIN = "replay-begin"
REFUSES = {"stop", "stacks", "clean", "relaunch", "signal", "details", "tag", "untag"}


class ReplayDashboard(Dashboard):
    BINDINGS = keys.bindings("replay")

    def __init__(self, replay: Replay, host: Host, first: Snapshot | None = None) -> None:
        super().__init__(replay.run, host, first)
        self._replay = replay
        self.timeline = Timeline()

    def compose(self) -> ComposeResult:
        widgets = iter(super().compose())
        yield next(widgets)
        yield self.timeline
        yield from widgets

    def _paint(self) -> None:
        before, coming = self.shown, self.snapshot
        if before and coming and coming.now < before.now:
            for panel in self.panels:
                panel.forget()
        if isinstance(coming, Played):
            self.timeline.place = coming.place
            self.timeline.repaint()
        super()._paint()

    # -- the clock ------------------------------------------------------------------------

    def _wish(self, wish: Wish) -> None:
        self._replay.wish(wish)

    def action_pause(self) -> None:
        self._wish(lambda playing: playing.pause())

    def action_faster(self, factor: float) -> None:
        self._wish(lambda playing: playing.faster(factor))

    def action_jump(self, seconds: float) -> None:
        self._wish(lambda playing: playing.jump(seconds))

    def action_leap(self, share: float) -> None:
        self._wish(lambda playing: playing.leap(share))

    def action_begin_again(self) -> None:
        self._wish(lambda playing: playing.home())

    def action_to_the_end(self) -> None:
        self._wish(lambda playing: playing.to_end())

    # -- what is refused ------------------------------------------------------------------

    @staticmethod
    def leaving() -> str:
        return f"{keys.name('detach')} leaves the replay"

    def has(self, key: keys.Key) -> bool:
        return key.id not in REFUSES

    def name_keys(self) -> None:
        """Those of the clock first."""
        first = {"detach", "pause"}
        rest = keys.footer(self.doing() - first)
        self.footer.show_keys([*keys.footer(first, panels=False), *rest])
        self.timeline.name_key(keys.get(BEGIN).name if BEGIN in self._clock() else "")

    def doing(self) -> set[str]:
        return (super().doing() | self._clock() | {"pause"}) - REFUSES

    def _clock(self) -> set[str]:
        """The keys of the clock, but those that mean something else where the focus is."""
        others = taken(self)
        mine = (key for key in keys.table() if key.scope == "replay")
        return {key.id for key in mine if not others.intersection(key.all[:1])}

    def remedies(self, view: View) -> dict[str, tuple[str, str]]:
        return {}

    def left_of_watched(self) -> list[Target]:
        return []

    def _refuse(self) -> None:
        self.notify(REFUSED, markup=False)

    def action_stop(self) -> None:
        self._refuse()

    def action_stacks(self) -> None:
        self._refuse()

    def action_clean(self) -> None:
        self._refuse()

    def action_relaunch(self) -> None:
        self._refuse()

    def action_signal(self) -> None:
        self._refuse()

    def action_tag(self) -> None:
        self._refuse()

    def action_details(self) -> None:
        self._refuse()
