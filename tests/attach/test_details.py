"""A close look at one process: all that the kernel and psutil know, and never a wait."""

from __future__ import annotations

import os
import signal
import subprocess

from bitwatch.attach.details import about
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from tests.attach.conftest import NOBODY_UID, Start, needs_root, tags
from tests.conftest import until
from tests.sense.conftest import WITH_A_DEAD_LEADER


def test_of_a_process_with_tags_all_is_told(run: RunDir, start: Start) -> None:
    key = start(env=tags(run), start_new_session=True)
    found = until(
        lambda: (one := about(*key)) and one.run and one.state == "S" and one, "its sleep"
    )
    assert (found.pid, found.starttime, found.name) == (*key, "sleep")
    assert (found.run, found.attempt, found.run_directory) == (run.id, 1, str(run.path))
    assert (found.command, found.directory) == (["sleep", "600"], os.getcwd())
    assert (found.state, found.state_words) == ("S", "sleeping")
    assert (found.parent_pid, found.session, found.session_name) == (os.getpid(), key[0], "sleep")
    mine = processes.read_stat(os.getpid())
    assert mine and found.parent_name == mine.name
    assert (found.threads, found.threads_live, found.gpu_files) == (1, 1, ())
    assert found.wchan and "sleep" in found.wchan
    assert found.user and found.shared_mib and found.rss_mib and found.created
    assert (found.barred, found.role) == ("", "other")


def test_a_stopped_process_says_so_and_one_without_tags_has_none(start: Start) -> None:
    key = start(env={})
    os.kill(key[0], signal.SIGSTOP)
    found = until(
        lambda: (one := about(*key)) and (one.run, one.state) == ("", "T") and one,
        "that it has no tags and is stopped",
    )
    assert found.state_words == "stopped (T)"
    assert (found.attempt, found.run_directory) == (None, None)


def test_a_dead_leader_with_live_threads_is_told_as_such(start: Start) -> None:
    key = start(WITH_A_DEAD_LEADER, stdin=subprocess.PIPE)
    found = until(lambda: (one := about(*key)) and one.state == "Z" and one, "its death")
    assert (found.state_words, found.threads_live) == ("leader dead, 1 thread live", 1)


def test_of_the_gone_and_of_their_successors_nothing_is_told(start: Start) -> None:
    pid, starttime = start()
    assert about(pid, starttime - 1) is None
    os.kill(pid, signal.SIGKILL)
    zombie = until(lambda: (one := about(pid, starttime)) and one.state == "Z" and one, "its end")
    assert (zombie.state_words, zombie.command) == ("dead, waits for its parent", None)
    os.waitpid(pid, 0)
    assert about(pid, starttime) is None


def test_ourselves_are_barred() -> None:
    stat = processes.read_stat(os.getpid())
    found = stat and about(*stat.key)
    assert found and found.barred == "this program itself, or what started it"


@needs_root("start a process of another user")
def test_what_another_users_process_hides_is_unknown(start: Start) -> None:
    found = about(*start(user=NOBODY_UID, extra_groups=[]))
    assert found and found.gpu_files is None
    assert (found.user, found.barred) == ("nobody", "of another user (nobody)")
