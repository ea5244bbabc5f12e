"""A known training is looked at again: who joined it, who left, and who is the same as before."""

from __future__ import annotations

import os
import signal

from bitwatch.sense.training import Member
from bitwatch.sense.training_watch import TrainingWatch
from tests.conftest import until
from tests.sense.families import Families, families, found, of_role

__all__ = ["families"]


def roles(members: tuple[Member, ...]) -> dict[int, tuple[str, int | None, int | None]]:
    return {one.stat.pid: (one.role, one.rank, one.worker) for one in members}


def test_a_new_worker_takes_the_lowest_number_and_the_others_keep_theirs(
    families: Families,
) -> None:
    looked = found(families.torchrun(2, 3).pid, ranks=2, workers=6)
    watch = TrainingWatch(looked)
    before = roles(watch.look())
    assert before == roles(looked.members)
    rank = next(one.stat for one in of_role(looked, "rank") if one.rank == 1)
    first = next(pid for pid, what in before.items() if what == ("worker", 1, 0))
    os.kill(first, signal.SIGKILL)
    os.kill(rank.pid, signal.SIGUSR1)

    def replaced() -> dict[int, tuple[str, int | None, int | None]]:
        now = roles(tuple(one for one in watch.look() if one.stat.state not in "ZX"))
        return now if set(now.values()) == set(before.values()) and first not in now else {}

    after = until(replaced, "another worker in the place of the first")

    (new,) = after.keys() - before.keys()
    assert after[new] == ("worker", 1, 0)
    assert {pid: after[pid] for pid in before.keys() & after.keys()} == {
        pid: what for pid, what in before.items() if pid != first
    }


def test_roles_are_kept_when_parents_are_gone_and_none_lives_at_the_end(
    families: Families,
) -> None:
    launched = families.python("train.py", "1", "2", "--log")
    looked = found(launched.pid, ranks=2, workers=1)
    watch = TrainingWatch(looked)
    watch.look()
    launched.kill()
    launched.wait()

    orphaned = watch.look()
    again = watch.look()

    # Their parent was the only sign of what these were.
    left = {pid: what for pid, what in roles(looked.members).items() if pid != launched.pid}
    assert roles(orphaned) == roles(again) == left
    families.end()
    until(lambda: all(one.stat.state in "ZX" for one in watch.look()), "the death of all")
