"""What a relaunch would be now: the corrections of the plan, the same again, or the way back.

Pure: it looks at a picture of a run, and the one who is asked decides again whether it holds.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bitwatch.record.view import END_STATES, View

SAME, BACK = "same", "back"


class Offer(msgspec.Struct, frozen=True):
    """One relaunch of `attempt`. `correction` is the id of a correction of its plan, "same" for
    its own settings, or "back" for those of the attempt that it was made from. `at_once`:
    nothing lives that could be lost, so no question comes before it. `live`: the attempt is
    stopped first. `old` and `new` are the
    data parts of the plans; `new` is empty where it is not known. `prepare_bytes` are written
    before the launch, in about `prepare_s` seconds."""

    attempt: int
    correction: str
    label: str
    at_once: bool
    live: bool = False
    resume: str = "exact"
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    why: str = ""
    prepare_s: float = 0.0
    prepare_bytes: int = 0


def offers(view: View) -> list[Offer]:
    """All there are, the one to take first. Empty while nothing has been launched, when all is
    done, while a run lives whose plan needs no correction, of what bitwatch did not start, and where
    the folder is gone."""
    if not view.attempt or view.state == "done" or view.foreign or view.gone:
        return []
    live = view.state not in END_STATES
    back = [_back(view, live)] if _has_no_step(view) else []
    if live:
        return [*_corrections(view, live), *back]
    if back:
        return [*back, _same(view)]
    if view.correction == BACK and view.last is None:  # what was gone back to failed as well
        return [_same(view), *_corrections(view, live)]
    return [*_corrections(view, live), _same(view)]


def launchable(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The corrections that bitwatch can make by itself, the recommended one first."""
    found = [each for each in plan.get("corrections") or () if each.get("changes")]
    return sorted(found, key=lambda each: not each.get("recommended"))


def _has_no_step(view: View) -> bool:
    """Whether a correction has not come to a step, so that its settings are suspect."""
    return view.last is None and view.relaunch_of > 0 and view.correction not in (SAME, BACK)


def _corrections(view: View, live: bool) -> list[Offer]:
    return [
        Offer(
            attempt=view.attempt,
            correction=each["id"],
            label=f"relaunch: {each['id']}",
            # Who stopped a run on purpose may want to go on at its very place: that is asked.
            at_once=view.state in ("failed", "lost")
            or (not live and each.get("resume") == "exact" and not each.get("prepare_bytes")),
            live=live,
            resume=each.get("resume") or "new-epoch",
            old=view.plan.get("data") or {},
            new=each.get("data") or {},
            why=each.get("why") or "",
            prepare_s=each.get("prepare_s") or 0.0,
            prepare_bytes=each.get("prepare_bytes") or 0,
        )
        for each in launchable(view.plan)
        if each.get("resume") != "refused"
    ]


def _same(view: View) -> Offer:
    data = view.plan.get("data") or {}
    why = f"the settings of attempt {view.attempt} as they were"
    return Offer(view.attempt, SAME, "relaunch", True, old=data, new=data, why=why)


def _back(view: View, live: bool) -> Offer:
    return Offer(
        attempt=view.attempt,
        correction=BACK,
        label=f"back to attempt {view.relaunch_of}",
        at_once=not live,
        live=live,
        old=view.plan.get("data") or {},
        why=f"attempt {view.attempt} has taken no step; the settings of attempt "
        f"{view.relaunch_of} are taken again",
    )
