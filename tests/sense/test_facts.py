"""What a process says of itself: its command, its tags, its user, its namespace, its GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import psutil
import pytest

from bitwatch.sense import entry, facts, processes
from bitwatch.sense.processes import Facts, Stat, Tags
from tests.conftest import until
from tests.sense.conftest import Start, in_a_fork, in_state, program, stat_of

NOBODY_UID = 65534
# In a home that is there: nobody else takes what has these tags for a leftover.
TAGS = {"BITWATCH_RUN": "amber-otter", "BITWATCH_ATTEMPT": "2", "BITWATCH_DIR": "/a b"}


@pytest.mark.parametrize(
    ("environment", "tags"),
    [
        (b"", None),
        (b"A=1\0BITWATCH_DIR=/x\0", None),
        (b"BITWATCH_RUN=\0", None),
        (b"X=BITWATCH_RUN=a\0", None),
        (b"NOT_BITWATCH_RUN=a\0", None),
        (b"BITWATCH_RUN=a\0", Tags("a", None, "")),
        (b"BITWATCH_RUN=a\0BITWATCH_RUN=b\0BITWATCH_ATTEMPT=3\0", Tags("a", 3, "")),
        (b"BITWATCH_RUN=a\0BITWATCH_ATTEMPT=-1\0", Tags("a", None, "")),
        ("BITWATCH_RUN=a\0BITWATCH_ATTEMPT=²\0".encode(), Tags("a", None, "")),
        (b"BITWATCH_RUN=a\0BITWATCH_DIR=/\xff\0", Tags("a", None, "/\udcff")),
    ],
)
def test_tags_are_found_in_any_environment(environment: bytes, tags: Tags | None) -> None:
    assert facts.find_tags(environment) == tags


def test_tags_are_certain_once_settled_and_change_with_the_program(start: Start) -> None:
    """One process: started with tags, exec'd with others, then without any, then with none."""
    again = "BITWATCH_RUN=brisk-heron BITWATCH_DIR=/b"
    shell = f"read x; exec env {again} sh -c 'read x; exec env -u BITWATCH_RUN sh -c \"read x; exec env -i cat\"'"
    child = start("sh", "-c", shell, env={**os.environ, **TAGS})
    assert child.stdin
    known = Facts()
    seen = []
    for step in range(4):
        if step:
            child.stdin.write(b"\n")
            child.stdin.flush()
        here = until(lambda: _settled_anew(known, child.pid, seen), f"program {step}")
        seen.append((here.image, known.tags(here), known.command(here).split()[0]))
    first, second = Tags("amber-otter", 2, "/a b"), Tags("brisk-heron", 2, "/b")
    assert [tags for _, tags, _ in seen] == [first, second, None, None]
    assert [command for *_, command in seen] == ["sh", "sh", "sh", "cat"]
    child.kill()
    zombie = until(lambda: in_state(child.pid, "Z"), "a zombie")
    assert known.command(zombie) == "cat", "what was known of the dead stays known"
    assert known.tags_known(zombie)
    assert not Facts().tags_known(zombie) and Facts().command(zombie) == ""


def _settled_anew(known: Facts, pid: int, seen: list) -> Stat | None:
    stat = stat_of(pid)
    waits = stat.state == "S" and stat.image not in [image for image, *_ in seen]
    waits = waits and stat.name in ("sh", "cat")  # not env, on its way
    return stat if waits and known.tags_known(stat) else None


def test_a_young_process_is_never_certain(start: Start) -> None:
    child = start("cat", env=TAGS)
    stat = program(child.pid, "cat")
    known = Facts()
    while processes.age_s(stat) < facts.SETTLE_S:
        was_known, was_settled = known.tags_known(stat), known.is_settled(stat)
        if processes.age_s(stat) < facts.SETTLE_S:
            assert not was_known and not was_settled
            assert known.command(stat) in ("", "cat")
    assert until(lambda: known.tags_known(stat), "its second second")
    assert known.tags(stat) == Tags("amber-otter", 2, "/a b")


def test_an_environment_that_a_title_was_written_over_is_unknown() -> None:
    stat = stat_of(os.getpid())
    assert facts._is_whole(b"HOME=/root\0", stat)
    assert not facts._is_whole(b"ray::IDLE\0\0\0\0", stat)
    assert not facts._is_whole(b"\0\0\0\0", stat)
    assert not facts._is_whole(b"", stat), "it has room for one, and must only be read again"


@pytest.mark.parametrize("which", ["all", "one"])
def test_nothing_is_read_of_a_process_with_a_thread_in_the_kernel(
    in_the_kernel: Callable[[str], Stat], which: str
) -> None:
    stat = in_the_kernel(which)
    assert (stat.state == "D") == (which == "all")
    if which == "all":
        assert processes.state_words(stat) == "waiting in the kernel (D)"
    with entry.opened(stat) as opened:
        assert opened.may_wait()
        with pytest.raises(OSError):
            opened.read_memory("environ", 100)
    known = Facts()
    assert known.command(stat) == "" and known.tags(stat) is None
    assert not known.tags_known(stat)
    assert processes.details(*stat.key) is None
    assert known.user(stat) == os.getuid() and known.in_our_namespace(stat) is True
    if which == "all":
        assert until(lambda: known.wchan(stat), "where it waits is told all the same")


def test_of_a_dead_leader_the_live_threads_tell(leaderless: Stat) -> None:
    known = Facts()
    until(lambda: known.tags_known(leaderless), "its second second")
    assert known.tags(leaderless) is None
    assert "threading.Thread" in known.command(leaderless)
    assert known.user(leaderless) == os.getuid()
    assert known.in_our_namespace(leaderless) is True


def test_another_process_with_the_same_pid_is_not_asked(start: Start) -> None:
    stat = program(start("cat", env=TAGS).pid, "cat")
    other = stat._replace(starttime=stat.starttime - 1)
    known = Facts()
    assert known.command(other) == "" and known.tags(other) is None
    assert not known.tags_known(other)
    assert known.in_our_namespace(other) is None
    assert known.gpu_files(other) == []


def test_of_the_gone_nothing_is_known(start: Start) -> None:
    child = start("cat")
    stat = stat_of(child.pid)
    child.kill()
    child.wait()
    known = Facts()
    assert (known.user(stat), known.in_our_namespace(stat)) == (facts.NOBODY, None)
    assert (known.command(stat), known.tags(stat), known.tags_known(stat)) == ("", None, False)
    assert (known.shared_mib(stat), known.wchan(stat), known.gpu_files(stat)) == (None, "", [])


def test_memory_and_the_place_of_waiting_are_the_kernels(start: Start) -> None:
    stat = program(start("cat").pid, "cat")
    known = Facts()
    until(lambda: in_state(stat.pid, "S") and "read" in known.wchan(stat), "a cat in its read")
    seen = psutil.Process(stat.pid).memory_info().shared / 2**20
    assert known.shared_mib(stat) == pytest.approx(seen, rel=0.5) and seen > 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_users_process_is_seen_and_its_secrets_are_not(start: Start) -> None:
    theirs = start("cat", env=TAGS, user=NOBODY_UID, extra_groups=[])
    mine = program(start("cat", env=TAGS).pid, "cat")
    stat = program(theirs.pid, "cat")
    assert Facts().user(stat) == NOBODY_UID and Facts().user(mine) == 0
    assert Facts().gpu_files(stat) == [], "only this user's processes are looked through"

    def seen_by_nobody() -> list[object]:
        os.setgroups([])
        os.setresgid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
        os.setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
        known = Facts()
        now = stat_of(mine.pid)
        return [known.command(now), known.user(now), known.tags(now), known.tags_known(now),
                known.in_our_namespace(now), known.gpu_files(now), known.wchan(now), now.env_start,
                processes.details(*now.key) is not None]  # fmt: skip

    command, user, tags, certain, here, gpus, wchan, env_start, has_details = in_a_fork(
        seen_by_nobody
    )
    assert (command, user) == ("cat", 0)
    assert (tags, certain) == (None, False), "unreadable is not untagged"
    assert here is True, "by the pids in its status, the namespace itself being closed"
    assert (gpus, wchan, env_start) == ([], "", 0)
    assert has_details


def _isolated(*flags: str) -> list[str]:
    """The words that start a program in namespaces of its own, or a skip."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    words = ["unshare", *([] if os.getuid() == 0 else ["--user", "--map-root-user"]), *flags]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip(f"{' '.join(words)} is not permitted here")
    return words


def test_a_process_in_another_pid_namespace_is_told_apart(start: Start) -> None:
    outside = start(*_isolated("--pid", "--fork"), "cat")
    inside = until(
        lambda: [
            stat
            for stat in processes.descendants(processes.scan(), {outside.pid})
            if stat.name == "cat"
        ],
        "a cat in a namespace of its own",
    )[0]
    assert Facts().in_our_namespace(inside) is False
    assert Facts().in_our_namespace(stat_of(outside.pid)) is True
    with entry.opened(inside) as opened:
        assert facts._depth("status", opened.folder) == 1 + facts._depth("/proc/self/status")


def test_the_gpus_that_a_process_holds_are_among_its_files(start: Start) -> None:
    """A device file of a GPU in a /dev of its own."""
    script = (
        "mount -t tmpfs none /dev && : >/dev/nvidia0 && : >/dev/nvidiactl && : >/dev/other &&"
        " exec cat 3</dev/nvidia0 4</dev/nvidia0 5</dev/nvidiactl 6</dev/other"
    )
    child = start(*_isolated("--mount"), "sh", "-c", script)
    stat = program(child.pid, "cat")
    assert Facts().gpu_files(stat) == ["/dev/nvidia0", "/dev/nvidiactl"]
    assert Facts().gpu_files(stat_of(os.getpid())) == []
