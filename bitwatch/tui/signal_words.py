"""What a signal does to those it is meant for, in words: what becomes of a training is another thing
with each role. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bitwatch.attach.signals import SIGNALS
from bitwatch.tui.targets import Target

STOPS = "stops the training, with a checkpoint"
BEFORE = "stops the attempt before its training begins"
IGNORED = "does nothing: it ignores this signal"
# In an attempt of ours, where it is another thing than SIGNALS says.
BY_ROLE = {
    "STOP": {
        "supervisor": "holds it; the training goes on, unwatched until CONT",
        "agent": "holds it; the training goes on, and no rank's end is noticed",
        "rank": "holds it; the others wait for it, and fail after a while",
        "worker": "holds it; its rank waits, once it needs its data",
        "sensor": "holds it; the training goes on, with no news of the GPUs",
        "resource tracker": "holds it; the training goes on",
    },
    "TERM": {"supervisor": STOPS, "prepare": BEFORE, "resource tracker": IGNORED},
    "INT": {"supervisor": STOPS, "prepare": BEFORE, "resource tracker": IGNORED},
    "HUP": {"supervisor": IGNORED},
}
WHILE_TRAINING = {  # the ranks listen from their first step on, until a stop is asked for
    "TERM": {
        "rank": "stops all ranks with a checkpoint, if they agree on a step",
        "agent": "is passed on: all ranks stop with a checkpoint, if they agree",
    },
}


def words(name: str, targets: Sequence[Target], *, training: bool) -> list[str]:
    """Of one signal, for all of them: a line, or one for each that it means another thing to.
    `training`: the ranks take steps, and no stop has been asked for."""
    does = dict(SIGNALS)[name]
    by_role = BY_ROLE.get(name, {}) | (WHILE_TRAINING.get(name, {}) if training else {})
    found: dict[str, list[str]] = {}
    for target in targets:
        roles = found.setdefault(by_role.get(target.role, does), [])
        role = target.role or "any other"
        if role not in roles:
            roles.append(role)
    if len(found) < 2:
        return list(found) or [does]
    return [f"{', '.join(roles)}: {what}" for what, roles in found.items()]
