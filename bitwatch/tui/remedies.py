"""Which key acts on an alert now. Pure."""

from __future__ import annotations

from bitwatch.attach.offer import BACK, SAME, offers
from bitwatch.plan.cures import CURED, cures
from bitwatch.record.view import View


def remedies(view: View) -> dict[str, tuple[str, str]]:
    """By alert, the key that acts on it now."""
    found = {"leftovers": ("c", "clean up"), "stalled": ("s", "stacks")}
    first = next(iter(offers(view)), None)
    if first is None or view.state == "stopping":
        return found
    if first.correction not in (SAME, BACK):
        ended = [alert for alert in CURED if cures(alert, first.correction, first.new)]
        found |= dict.fromkeys(ended, ("R", "relaunch corrected"))
    elif first.correction == BACK:
        found["relaunch-failed"] = ("R", "go back")
    return found


def no_relaunch(view: View) -> str:
    """Why there is nothing to relaunch."""
    if not view.attempt:
        return "this run has no attempt yet"
    if view.foreign:
        return "bitwatch did not start this training, and cannot relaunch it"
    if view.state == "done":
        return "all steps are done; nothing is left to relaunch"
    return "nothing to relaunch: the plan needs no correction"
