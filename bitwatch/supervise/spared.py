"""What is below a supervisor and has no part in the run: what it has started for the user, with all
that this starts. Nobody records, counts or ends it as one of the run's processes."""

from __future__ import annotations

from collections.abc import Collection

from bitwatch.sense.processes import Key, Stat


class Spared:
    """Remembers them: what outlives its parent comes to the supervisor."""

    def __init__(self) -> None:
        self._known: set[Key] = set()

    def without(self, own: dict[Key, Stat], pids: Collection[int]) -> dict[Key, Stat]:
        """`own` without those processes and what is below them."""
        if not pids and not self._known:
            return own
        self._known = {key for key in own if key in self._known or key[0] in pids}
        parents = {key[0] for key in self._known}
        while below := [
            key for key, stat in own.items() if stat.ppid in parents and key not in self._known
        ]:
            self._known.update(below)
            parents = {key[0] for key in below}
        return {key: stat for key, stat in own.items() if key not in self._known}
