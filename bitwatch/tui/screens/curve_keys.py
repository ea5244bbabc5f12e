"""What the keys do that are about the curves: which, along what, beside which other run. And
the threads that read for them, so that the screen never waits for a file."""

from __future__ import annotations

import threading
from typing import NamedTuple

from textual.message import Message
from textual.screen import Screen

from bitwatch.attach.beside import Beside, Companion
from bitwatch.record import stretch
from bitwatch.record.rundir import RunDir
from bitwatch.record.stretch import Stretch
from bitwatch.text import counted
from bitwatch.tui import keys
from bitwatch.tui.detail import Wanted
from bitwatch.tui.drawing import OTHERS
from bitwatch.tui.widgets.loss import LossPanel


class Unread(NamedTuple):
    """A stretch that could not be read."""

    wanted: Wanted


class CurveKeys(Screen[None]):
    """The part of a dashboard that is about the curves."""

    run: RunDir
    loss: LossPanel

    class Read(Message):
        """A thread has read something of a curve."""

        def __init__(self, found: Beside | Stretch | Unread) -> None:
            super().__init__()
            self.found = found

    def __init__(self) -> None:
        super().__init__()
        self._companions: dict[str, Companion] = {}

    def action_log(self) -> None:
        self.loss.log_scale = not self.loss.log_scale
        self.loss.repaint()

    def action_smooth(self) -> None:
        self.loss.next_smoothing()

    def action_curve(self, by: int) -> None:
        self.loss.next_curve(by)

    def action_axis(self) -> None:
        if not self.loss.next_axis():
            self.notify("neither tokens nor times are known of this curve", markup=False)

    # -- another run ----------------------------------------------------------------------

    def action_compare(self) -> None:
        from bitwatch.tui.screens.compare import Compare

        page = Compare(self.run, set(self._companions))
        self.app.push_screen(page, self._chosen)

    def _chosen(self, run: RunDir | None) -> None:
        if run is None:
            return
        if run.id in self._companions:
            self._companions.pop(run.id).close()
            self.loss.companions.remove(run.id)
        elif self.loss.companions.is_full:
            most = counted(len(OTHERS), "run")
            key = keys.name("compare")
            self.notify(f"at most {most} at once; {key} takes one away", markup=False)
        else:
            self.loss.companions.add(run.id)
            companion = Companion(run, lambda found: self.post_message(self.Read(found)))
            self._companions[run.id] = companion
            companion.start()
        self.loss.repaint()

    def on_curve_keys_read(self, message: Read) -> None:
        if isinstance(message.found, Unread):
            self.loss.detail.failed(message.found.wanted)
            return  # asked for again with the next picture, not at once: it may fail for long
        if isinstance(message.found, Stretch):
            self.loss.detail.take(message.found)
        elif said := self.loss.companions.take(message.found):
            self.notify(said, severity="warning", timeout=8, markup=False)
        self.loss.repaint()

    def on_unmount(self) -> None:
        for companion in self._companions.values():
            companion.close()

    # -- a stretch in full detail ---------------------------------------------------------

    def on_loss_panel_closer(self, message: LossPanel.Closer) -> None:
        run = self.run

        def read() -> None:
            for one in message.wanted:
                try:
                    found = stretch.read(run.rank(one.attempt, 0), *one)
                except OSError:  # it says how much each point is, and stays so meanwhile
                    self.post_message(self.Read(Unread(one)))
                    continue
                self.post_message(self.Read(found))

        threading.Thread(target=read, name="detail", daemon=True).start()
