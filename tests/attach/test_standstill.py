"""Why a training takes no step that bitwatch did not start: real processes, which are looked at."""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

from bitwatch.attach import foreign, stacks
from bitwatch.attach.watcher import Watcher
from bitwatch.record import events
from bitwatch.record.view import ProcessRow, View
from bitwatch.record.waits import Wait
from bitwatch.sense.processes import read_stat
from bitwatch.supervise import blame
from tests.attach.watched import append, look, seen, steps, watching
from tests.conftest import until
from tests.sense.families import Families, families, found, of_role
from tests.supervise.standins import write

__all__ = ["families"]


def test_a_rank_that_is_stopped_is_named_until_there_is_a_step_again(
    home: Path, log: Path, families: Families
) -> None:
    with log.open("a") as output:
        launcher = families.torchrun(2, 1, stdout=output)
    looked = found(launcher.pid, ranks=2, workers=2)
    until(lambda: log.read_text().count("ready") == 2, "its last words")
    rank = next(one.stat for one in of_role(looked, "rank") if one.rank == 1)
    os.kill(rank.pid, signal.SIGSTOP)
    until(lambda: (now := read_stat(rank.pid)) and now.state == "T", "it to be stopped")
    os.utime(log, (0, time.time() - 100))
    run = foreign.of_training(home, looked)
    write(run, events.AttemptStarted(attempt=1, ranks=2, stall_s=1.0))

    def alerts(watcher: Watcher) -> list[events.Alert]:
        look(watcher)
        return [alert for alert in seen(run).alerts if alert.id == "stalled"]

    with watching(run) as watcher:
        (alert,) = until(lambda: alerts(watcher), "an alert")
        assert seen(run).state == "stalled"
        assert alert.text.endswith(": rank 1 is stopped by a signal")
        assert alert.next == f"kill -CONT {rank.pid} lets rank 1 go on"
        assert stacks.look(run, seen(run)).text == "rank 1 is stopped by a signal"
    numbers = itertools.count(10)

    def is_well(watcher: Watcher) -> bool:
        number = next(numbers)
        append(log, steps(range(number, number + 1)))
        return not alerts(watcher)

    with watching(run) as watcher:  # whoever watches next takes it back
        until(lambda: is_well(watcher), "it to be well")
        cleared = seen(run).past_alerts[-1]
        assert cleared.cleared and cleared.id == "stalled" and cleared.attempt == 1


def test_ranks_that_only_sleep_are_not_said_to_be_at_work() -> None:
    waits = [Wait(rank, "unknown", "futex_wait_queue") for rank in range(2)]
    assert blame.sentence(View(), waits, 0.0) == (
        "what the ranks wait for cannot be known; the kernel says futex_wait_queue"
    )


def test_one_whose_number_cannot_be_read_has_the_only_one_that_is_left() -> None:
    numbers = (0, None, 1)
    rows = [
        ProcessRow(pid=10 + at, starttime=1, ppid=1, role="rank", state="D", rank=rank)
        for at, rank in enumerate(numbers)
    ]
    looked = View(foreign=True, ranks=3, processes=rows)
    assert [(one.rank, one.pid) for one in stacks.foreign(looked)] == [(0, 10), (2, 11), (1, 12)]
    looked.ranks = 4  # the third or the fourth: nobody knows
    assert [one.rank for one in stacks.foreign(looked)] == [0, 1]
    looked.exits = [events.ProcessExit(pid=9, role="rank", rank=2)]
    assert [one.rank for one in stacks.foreign(looked)] == [0, 3, 1]
