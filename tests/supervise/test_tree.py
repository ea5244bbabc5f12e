"""Who belongs to a run, in its record: from the first look to the last exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.record import codec, events, kernel
from bitwatch.record.follow import Liveness
from bitwatch.record.journal import JournalReader, JournalWriter
from bitwatch.record.samples import SampleWriter
from bitwatch.record.state import JOURNAL, SAMPLES, RankState, RunState, fold
from bitwatch.record.view import view
from bitwatch.sense import processes
from bitwatch.supervise import cleanup
from bitwatch.supervise import tree as trees
from bitwatch.supervise.reaper import Exit
from bitwatch.supervise.tree import Tree
from tests.conftest import until
from tests.sense.conftest import WITH_A_DEAD_LEADER, in_state


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A child of this process, which stands in for the supervisor, with one below it."""
    started = subprocess.Popen(["sh", "-c", "exec 3<&0; cat <&3 & wait"], stdin=subprocess.PIPE)
    yield started
    started.communicate()


def test_a_process_is_recorded_from_its_coming_to_its_end(
    tmp_path: Path, child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "SETTLE_S", 0.0)
    journal = JournalWriter(tmp_path / "journal.jsonl")
    tree = Tree(journal, SampleWriter(tmp_path / "samples"), 1)

    def look() -> set[str]:
        tree.look({child.pid: "agent"}, RunState())
        return {stat.name for stat in tree.own.values() if child.pid in (stat.pid, stat.ppid)}

    until(lambda: look() == {"sh", "cat"}, "both in one look")
    tree.sample(None)
    (below,) = [stat for stat in tree.own.values() if stat.ppid == child.pid]
    assert child.stdin
    child.stdin.close()
    seen_until = time.monotonic()
    key = next(key for key in tree.own if key[0] == child.pid)
    child.wait()
    tree.note_exit(Exit(child.pid, key[1], 0, None))
    assert tree.exit_of(key) and tree.exit_of((child.pid, key[1] + 1)) is None
    look()
    assert below.key not in tree.own and os.getpid() in [pid for pid, _ in tree.own]

    records = list(JournalReader(tmp_path / "journal.jsonl").read())
    starts = {r.pid: r for r in records if isinstance(r, events.ProcessStart)}
    assert starts[os.getpid()].role == "supervisor"
    assert (starts[child.pid].role, starts[child.pid].ppid) == ("agent", os.getpid())
    assert (starts[below.pid].role, starts[below.pid].ppid) == ("other", child.pid)
    ends = {r.pid: r for r in records if isinstance(r, events.ProcessExit)}
    assert ends[child.pid].status == 0 and ends[below.pid].status is None
    assert 0.0 < ends[below.pid].m <= ends[child.pid].m <= seen_until  # not when it was written

    (file,) = (tmp_path / "samples").iterdir()
    (sample,) = JournalReader(file).read()
    assert isinstance(sample, events.Processes)
    me = next(row for row in sample.processes if row.pid == os.getpid())
    assert me.rss_mib and me.shared_mib and me.shared_mib < 1.2 * me.rss_mib
    agent = next(row for row in sample.processes if row.pid == child.pid)
    assert (agent.role, agent.ppid) == ("agent", os.getpid())


def test_what_ends_before_it_is_recorded_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that runs a short command now and then does so for weeks."""
    monkeypatch.setattr(trees, "SETTLE_S", 600.0)
    journal = JournalWriter(tmp_path / "journal.jsonl")
    samples = SampleWriter(tmp_path / "samples")
    ours, theirs = Tree(journal, samples, 1), Tree(journal, samples, 1, of_ours=False)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as short:
        stat = processes.read_stat(short.pid)
        assert stat
        key = stat.key
        theirs.name({key: ("other", None, None)})
        for tree in (ours, theirs):
            tree.look({}, RunState())
            tree.sample(None)
            assert key in tree.roles and key in tree._rows
    starts = [r for r in JournalReader(journal.path).read() if isinstance(r, events.ProcessStart)]
    assert short.pid not in {start.pid for start in starts}
    for tree in (ours, theirs):
        tree.look({}, RunState())
        tree.sample(None)
        for found in (tree.roles, tree._named, tree._rows, tree._shared_of, tree._cpu):
            assert key not in found


COMPILES = "exec -a 'python -m torch._inductor.compile_worker' sleep 600"
# The second is as what a person's own training starts, in a terminal inside the run.
INSIDE = f'({COMPILES}) & setsid bash -c "{COMPILES}" & wait'


@pytest.mark.parametrize("leader", ["agent", "rank"])
def test_only_in_a_session_of_ours_is_a_role_given_by_command_line(
    tmp_path: Path, leader: str
) -> None:
    top = subprocess.Popen(["bash", "-c", INSIDE], start_new_session=True)
    tree = Tree(JournalWriter(tmp_path / "journal"), SampleWriter(tmp_path / "samples"), 1)
    state, commands = RunState(), processes.CommandLines()
    known = {top.pid: "agent"} if leader == "agent" else {}
    if leader == "rank":
        claim = RankState(pid=top.pid, starttime=kernel.starttime(top.pid) or 0)
        state.ranks[1, 0] = claim

    def both() -> tuple[processes.Stat, processes.Stat] | None:
        """The one in its session, and the other, once both show their command line."""
        tree.look(known, state)
        found = [stat for stat in tree.own.values() if stat.name == "sleep"]
        found = [stat for stat in found if trees.by_command(commands.get(stat)) != "other"]
        inside = [stat for stat in found if tree.roles[stat.key][0] == "compile worker"]
        outside = [stat for stat in found if stat not in inside]
        return (inside[0], outside[0]) if len(inside) == len(outside) == 1 else None

    try:
        mine, other = until(both, "one with a role, and one without")
        assert (mine.session, other.session) == (top.pid, other.pid)
        taken = cleanup.ours(tree.own, tree.roles)
        assert mine.key in taken and other.key not in taken
        if leader == "rank":  # whose pid means another process by now
            state.ranks[1, 0] = RankState(pid=top.pid, starttime=claim.starttime - 1)
            again = Tree(JournalWriter(tmp_path / "again"), SampleWriter(tmp_path / "samples"), 1)
            again.look({}, state)
            assert again.roles[mine.key][0] == "other"
    finally:
        for stat in processes.descendants(processes.scan(), {top.pid}):
            processes.send_signal(*stat.key, signal.SIGKILL)
        top.kill()
        top.wait()


def test_the_exit_of_another_with_its_pid_is_not_taken_for_its_own(
    tmp_path: Path, child: subprocess.Popen[bytes]
) -> None:
    tree = Tree(JournalWriter(tmp_path / "journal"), SampleWriter(tmp_path / "samples"), 1)
    tree.look({child.pid: "agent"}, RunState())
    (starttime,) = [start for pid, start in tree.own if pid == child.pid]
    child.communicate()
    tree.note_exit(Exit(child.pid, starttime + 1, 3, None))
    tree.look({}, RunState())
    records = JournalReader(tmp_path / "journal").read()
    (end,) = [record for record in records if isinstance(record, events.ProcessExit)]
    assert (end.pid, end.starttime, end.status) == (child.pid, starttime, None)


def test_nobody_knows_when_those_died_whom_only_an_earlier_supervisor_has_seen(
    tmp_path: Path,
) -> None:
    gone = events.ProcessStart(pid=4_000_000, starttime=7, role="rank", rank=0, attempt=1)
    state = RunState()
    fold(state, JOURNAL, [gone])
    tree = Tree(JournalWriter(tmp_path / "journal"), SampleWriter(tmp_path / "samples"), 1)
    tree.adopt(state)
    tree.look({}, state)
    records = JournalReader(tmp_path / "journal").read()
    (end,) = [record for record in records if isinstance(record, events.ProcessExit)]
    assert (end.pid, end.m) == (gone.pid, 0.0)


def test_a_dead_leader_is_recorded_with_how_many_threads_go_on(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WITH_A_DEAD_LEADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    until(lambda: in_state(child.pid, "Z"), "the first thread's death")
    tree = Tree(JournalWriter(tmp_path / "journal"), SampleWriter(tmp_path / "samples"), 1)
    tree.look({child.pid: "rank"}, RunState())
    tree.sample(None)
    child.communicate()
    (file,) = (tmp_path / "samples").iterdir()
    (line,) = file.read_bytes().splitlines()
    sample = codec.decode(line)
    assert isinstance(sample, events.Processes)
    rows = {row.pid: row for row in sample.processes}
    assert (rows[child.pid].state, rows[child.pid].threads_live) == ("Z", 1)
    assert rows[os.getpid()].threads_live == 0 and line.count(b"threads_live") == 1
    state = RunState()
    fold(state, SAMPLES, [sample])
    shown = {row.pid: row for row in view(state, sample.t, Liveness(supervisor=True)).processes}
    assert shown[child.pid].threads_live == 1


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("/v/python -c from multiprocessing.resource_tracker import main;main(5)", "resource tracker"),
        ("/v/python /v/site-packages/torch/_inductor/compile_worker/__main__.py --kind=fork", "compile worker"),
        ("/v/python /v/site-packages/trainer/prepare.py", "prepare"),
        ("/v/python -u /v/site-packages/trainer/train.py", "other"),
        ("/v/python -c from multiprocessing.spawn import spawn_main; spawn_main() --multiprocessing-fork", "other"),
        ("/v/python -m torch.distributed.run train.py", "other"),
    ],
)  # fmt: skip
def test_only_roles_that_nobody_claims_are_given_by_command_line(command: str, role: str) -> None:
    """A rank, a worker and an agent of ours say so themselves; another's would be mistaken."""
    assert processes.role_of_command(command) != "other"
    assert trees.by_command(command) == role
