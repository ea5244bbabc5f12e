"""What the keys do that are about the run as a whole: pages over the dashboard, stop, relaunch,
clean up. They act on the attempt that was on the screen when they were pressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bitwatch.attach.offer import Offer, offers
from bitwatch.record.view import END_STATES, View
from bitwatch.supervise.begin import NOT_OURS
from bitwatch.tui.remedies import no_relaunch
from bitwatch.tui.screens.process_keys import ProcessKeys

if TYPE_CHECKING:
    from bitwatch.tui.screens.alerts import AlertsPage


class RunKeys(ProcessKeys):
    """The part of a dashboard that is about the run."""

    alerts_page: AlertsPage | None = None  # the last that was opened

    @property
    def view(self) -> View:
        """What is on the screen."""
        raise NotImplementedError

    @property
    def now(self) -> float:
        """When that was seen."""
        raise NotImplementedError

    def action_why(self) -> None:
        from bitwatch.tui.screens.why import Why

        self.app.push_screen(Why(self.view))

    def action_alerts(self) -> None:
        """A page that goes on with the picture."""
        from bitwatch.tui.screens.alerts import AlertsPage

        self.alerts_page = AlertsPage(self.view, self.now)
        self.app.push_screen(self.alerts_page)

    def action_stacks(self) -> None:
        from bitwatch.tui.screens.stacks import StacksPage

        self.app.push_screen(StacksPage(self.run, lambda: self.view))

    def action_logs(self) -> None:
        from bitwatch.tui.screens.logs import Logs

        if self.view.attempt:
            self.app.push_screen(Logs(self.run, self.view.attempt))
        else:
            self.notify("this run has no attempt yet", markup=False)

    def action_stop(self) -> None:
        """The dialog asks about the attempt that is on the screen now, and about no later."""
        from bitwatch.tui.screens.confirm import ConfirmStop

        view = self.view
        if view.foreign:
            self.notify(f"{NOT_OURS}; it is stopped where it was started", markup=False)
            return
        if view.gone:
            self.notify(f"it cannot be stopped: {view.gone}", markup=False)
            return
        if not view.attempt or view.state in END_STATES:
            self.notify(f"nothing to stop: {view.state}", markup=False)
            return
        run, attempt, commands = self.run, view.attempt, self.host.commands

        def answered(yes: bool | None) -> None:
            if yes:
                self.host.in_background(lambda: commands.stop(run, attempt))

        self.app.push_screen(ConfirmStop(run.id, attempt, view), answered)

    def action_relaunch(self) -> None:
        """At once where nothing lives that could be lost, else after a question; about the
        attempt and the correction that are on the screen now."""
        from bitwatch.tui.screens.relaunch import Relaunch

        view, found = self.view, offers(self.view)
        if view.state == "stopping" and not view.gone:
            self.notify(f"attempt {view.attempt} is stopping", markup=False)
        elif not found:
            self.notify(no_relaunch(view), markup=False)
        elif found[0].at_once:
            self._relaunch(found[0])
        else:
            self.app.push_screen(Relaunch(view, found), self._relaunch)

    def _relaunch(self, offer: Offer | None) -> None:
        if offer is None:
            return
        run, commands = self.run, self.host.commands
        self.notify(f"attempt {offer.attempt}: {offer.label}", timeout=3, markup=False)
        self.host.in_background(lambda: commands.relaunch(run, offer.attempt, offer.correction))

    def action_clean(self) -> None:
        """Acts at once: only what is proven to be of a run of this home, and over. What a training
        that bitwatch did not start has left is asked about."""
        if self.left_of_watched():
            self.ask_about_left()
            return
        run, commands = self.run, self.host.commands
        self.notify(
            "looking for what ended attempts of all runs have left", timeout=3, markup=False
        )
        self.host.in_background(lambda: commands.clean(run))
