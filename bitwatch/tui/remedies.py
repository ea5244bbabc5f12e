"""Which key acts on an alert now. Pure."""

from __future__ import annotations

from bitwatch.attach.offer import BACK, SAME, offers
from bitwatch.plan.cures import CURED, cures
from bitwatch.record.afterwards import LEFT_OF_WATCHED, SUPERVISOR_GONE
from bitwatch.record.view import View
from bitwatch.tui import keys


def remedies(view: View) -> dict[str, tuple[str, str]]:
    """By alert, the key that acts on it now."""
    clean, stacks, again = (keys.get(id) for id in ("clean", "stacks", "relaunch"))
    found = {
        "leftovers": (clean.name, clean.label),
        "stalled": (stacks.name, stacks.label),
        SUPERVISOR_GONE: (clean.name, "supervise again"),
    }
    if view.foreign:
        return found | {LEFT_OF_WATCHED: (clean.name, "list them")}
    first = next(iter(offers(view)), None)
    if first is None or view.state == "stopping":
        return found
    if first.correction not in (SAME, BACK):
        ended = [alert for alert in CURED if cures(alert, first.correction, first.new)]
        found |= dict.fromkeys(ended, (again.name, "relaunch corrected"))
    elif first.correction == BACK:
        found["relaunch-failed"] = (again.name, "go back")
    return found


def no_relaunch(view: View) -> str:
    """Why there is nothing to relaunch."""
    if view.foreign:
        return "bitwatch did not start this training: it is relaunched where it was started"
    if view.gone:
        return f"it cannot be relaunched: {view.gone}"
    if not view.attempt:
        return "this run has no attempt yet"
    if view.state == "done":
        return "all steps are done; nothing is left to relaunch"
    return "nothing to relaunch: the plan needs no correction"
