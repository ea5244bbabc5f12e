"""Who is there beside the live attempt: real processes, in the groups that a screen shows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.attach import others as looking
from bitwatch.attach.others import Other, Others
from bitwatch.attach.signals import OUTSIDE
from bitwatch.record import events, kernel, rundir
from bitwatch.record.rundir import RunDir
from bitwatch.record.state import RunState
from bitwatch.sense import facts
from bitwatch.sense.processes import Key
from tests.attach.conftest import (
    NOBODY_UID,
    WORKER,
    Start,
    needs_root,
    recorded,
    tags,
)
from tests.conftest import until
from tests.supervise.standins import ended_run, write

NOT_A_PID = (1 << 22) + 7  # more than any kernel gives out


def named(*held: tuple[int, float | None], ago_s: float = 0.0) -> RunState:
    """The state of a run whose newest sample has these pids on GPU 0, the last one on GPU 1 too."""
    cards = [events.Gpu(index=0, processes=list(held)), events.Gpu(index=1)]
    cards[1].processes = [held[-1]] if held else None
    state = RunState()
    state.samples.gpus = events.Gpus(gpus=cards, t=time.time() - ago_s)
    return state


def by_pid(found: tuple[Other, ...]) -> dict[int, Other]:
    return {other.pid: other for other in found}


def test_each_process_is_in_its_group_with_its_proof(
    run: RunDir, start: Start, abandoned: Key
) -> None:
    other_run = ended_run(run.path.parent)
    left, theirs, alive = start(), start(), start()
    daemon = start(env=tags(run), start_new_session=True)
    innocent = start()
    write(run, recorded(left, "worker", rank=1, worker=0))
    write(other_run, recorded(theirs, "rank", rank=0), events.AttemptStarted(attempt=2))
    write(other_run, recorded(alive, "rank", attempt=2))
    lock = rundir.Lock(other_run)  # its attempt 2 lives
    others = Others(run)
    found: dict[int, Other] = {}

    def settled() -> bool:
        found.clear()
        found.update(by_pid(others.look(RunState())))
        return daemon[0] in found

    until(settled, "a daemon old enough for its tags to be its own")
    lock.release()
    mine = found[left[0]]
    assert (mine.key, mine.group, mine.run, mine.proof) == (left, "leftover", run.id, "recorded")
    assert (mine.role, mine.rank, mine.worker, mine.attempt) == ("worker", 1, 0, 1)
    assert (mine.state, mine.words, mine.barred) == ("S", "sleeping", "")
    assert mine.user and mine.age_s and mine.rss_mib and mine.shared_mib
    assert mine.command == "sleep 600" and mine.cpu_percent == 0.0
    assert (found[theirs[0]].group, found[theirs[0]].run) == ("leftover", other_run.id)
    assert (found[daemon[0]].group, found[daemon[0]].proof) == ("confirm", "tagged")
    assert "nothing that a training starts" in found[daemon[0]].why
    suspect = found[abandoned[0]]
    assert (suspect.group, suspect.run, suspect.command) == ("suspect", "", f"{WORKER} 600")
    assert "nothing proves that it is ours" in suspect.why
    assert alive[0] not in found, "the live processes of other runs are theirs"
    assert innocent[0] not in found
    shown = [other.group for other in found.values()]
    assert shown == sorted(shown, key=["leftover", "confirm", "suspect", "gpu"].index)


def test_ourselves_are_named_and_cannot_be_signalled(run: RunDir) -> None:
    write(run, recorded((os.getpid(), kernel.own_starttime())))
    me = by_pid(Others(run).look(RunState()))[os.getpid()]
    assert (me.group, me.barred) == ("leftover", "this program itself, or what started it")


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A file in the place of a GPU's device."""
    monkeypatch.setattr(facts, "GPU_DEVICES", str(tmp_path / "nvidia"))
    with open(tmp_path / "nvidia0", "wb") as file:
        yield file.fileno()


def test_who_else_holds_a_gpu_is_shown_and_our_live_attempt_is_not(
    run: RunDir, start: Start, device: int
) -> None:
    user, rank, left, foreign = (start(stdin=device) for _ in range(4))
    write(run, recorded(left), events.AttemptStarted(attempt=2), recorded(rank, "rank", 2))
    other_run = ended_run(run.path.parent)
    write(other_run, events.AttemptStarted(attempt=2), recorded(foreign, "rank", 2))
    locks = [rundir.Lock(one) for one in (run, other_run)]
    state = named((rank[0], 5.0), (left[0], 7.5), (foreign[0], None), (user[0], 100.0))
    found = by_pid(Others(run).look(state))
    for lock in locks:
        lock.release()
    one = found[user[0]]
    assert (one.key, one.group, one.gpu_mib, one.barred) == (user, "gpu", 200.0, "")
    assert one.why == "the driver says that it holds memory of GPU 0, GPU 1"
    assert rank[0] not in found
    assert (found[left[0]].group, found[left[0]].gpu_mib) == ("leftover", 7.5)
    theirs = found[foreign[0]]
    assert (theirs.group, theirs.run, theirs.role, theirs.gpu_mib) == (
        "gpu",
        other_run.id,
        "rank",
        None,
    )
    assert f"of a live attempt of run {other_run.id}" in theirs.why


@needs_root("start a process of another user")
def test_another_users_process_on_a_gpu_has_its_name_and_is_barred(
    run: RunDir, start: Start
) -> None:
    theirs = start(user=NOBODY_UID, extra_groups=[])
    one = by_pid(Others(run).look(named((theirs[0], 12.0))))[theirs[0]]
    assert (one.group, one.user, one.barred) == ("gpu", "nobody", "of another user (nobody)")
    assert (one.key, one.gpu_mib) == (theirs, 24.0)


def test_a_pid_that_means_nobody_here_or_another_one_is_of_outside(
    run: RunDir, start: Start
) -> None:
    """Without a GPU device open, the process of that number here is not whom the driver means."""
    innocent = start()
    held = [(0, 1.0), (4294967295, 1.0), (NOT_A_PID, 3.0), (innocent[0], 4.0)]
    others = Others(run)

    def of_gpus(state: RunState) -> list[Other]:
        return [other for other in others.look(state) if other.group == "gpu"]

    first = named(*held)
    assert of_gpus(first) == [], "who has just ended is not of outside"
    assert of_gpus(first) == [], "nothing new was said"
    found = of_gpus(named(*held))
    assert {other.key for other in found} == {(NOT_A_PID, 0), (innocent[0], 0)}
    assert {other.barred for other in found} == {OUTSIDE}
    assert of_gpus(named(*held, ago_s=60)) == [], "an old sample says nothing of now"


def test_it_looks_more_often_while_something_is_left_and_never_takes_much_of_a_core(
    run: RunDir, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = Others(run)
    assert others.is_due()
    write(run, recorded(start()))
    others.look(RunState())
    assert not others.is_due()
    assert others._next - time.monotonic() <= looking.WATCHED_S
    monkeypatch.setattr(looking, "MOST_OF_A_CORE", 1e-6)
    others.look(RunState())
    assert others._next - time.monotonic() > looking.CALM_S
