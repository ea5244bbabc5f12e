"""What psutil knows of a process that somebody looks at."""

from __future__ import annotations

import os
import time

from bitwatch.sense import processes
from bitwatch.sense.processes import Facts, Stat
from tests.conftest import until
from tests.sense.conftest import Start, in_state, program, stat_of


def test_details_are_of_exactly_this_process(start: Start, tmp_path: os.PathLike[str]) -> None:
    stat = program(start("cat", "-u", cwd=tmp_path).pid, "cat")
    until(lambda: in_state(stat.pid, "S") and "read" in Facts().wchan(stat), "a cat in its read")
    found = processes.details(*stat.key)
    assert found
    assert (found.pid, found.starttime) == stat.key
    assert found.command == ["cat", "-u"]
    assert found.directory == os.path.realpath(tmp_path)
    assert found.user and (found.threads, found.open_files) == (1, 3)
    assert found.created and abs(found.created - time.time()) < 600
    assert found.user_s is not None and found.system_s is not None
    assert found.rss_mib and found.proportional_mib
    assert found.unique_mib is not None and found.swap_mib is not None
    assert found.read_bytes is not None and found.written_bytes is not None
    assert processes.details(stat.pid, stat.starttime + 1) is None


def test_of_the_dead_little_is_known_and_of_the_gone_nothing(start: Start) -> None:
    child = start("cat")
    child.kill()
    zombie = until(lambda: in_state(child.pid, "Z"), "a zombie")
    found = processes.details(*zombie.key)
    assert found and found.command is None and found.directory is None and found.user
    child.wait()
    assert processes.details(*zombie.key) is None


def test_a_dead_leader_does_not_keep_details_from_being_told(leaderless: Stat) -> None:
    found = processes.details(*leaderless.key)
    assert found and found.threads == 2
    assert stat_of(leaderless.pid).key == leaderless.key
