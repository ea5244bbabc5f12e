"""A training is found by any of its processes, and nothing else is taken for one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from bitwatch.sense import training
from bitwatch.sense.processes import Stat
from bitwatch.sense.training import NoTraining, Training
from bitwatch.sense.training_facts import TrainingFacts
from tests.conftest import until
from tests.sense.conftest import Start, in_state
from tests.sense.families import Families, children, families, found, of_role, refusal

__all__ = ["families"]

NOBODY_UID = 65534
# Two ranks for each of its trainings, each of which has another address.
SWEEP = """
import os, subprocess, sys
for number in range(int(sys.argv[1])):
    for rank in range(2):
        named = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": f"{os.environ['PORT']}{number}"}
        subprocess.Popen([sys.executable, "train.py", "0"], env={**os.environ, **named})
os.wait()
"""
ACCELERATE = "import subprocess, sys; subprocess.run([sys.executable, 'train.py', '1'])"


def test_any_process_of_a_launched_training_finds_all_of_it(families: Families) -> None:
    shell = families.start("bash", "-c", '"$0" torchrun 2 2; true', sys.executable)
    by_shell = found(shell.pid, ranks=2, workers=4)

    agent, *rest = by_shell.members
    ranks, workers = of_role(by_shell, "rank"), of_role(by_shell, "worker")
    assert agent.role == "agent"
    assert agent.stat.key == by_shell.root
    assert agent.stat.ppid == shell.pid
    assert {member.role for member in rest} == {"rank", "worker"}
    assert {(one.rank, one.local_rank, one.world_size) for one in ranks} == {(0, 0, 2), (1, 1, 2)}
    assert sorted((one.rank, one.worker) for one in workers) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    rank_of = {one.stat.pid: one.rank for one in ranks}
    assert all(rank_of[one.stat.ppid] == one.rank for one in workers)
    assert by_shell.ranks == 2
    assert by_shell.directory == str(families.folder)
    assert "torchrun 2 2" in by_shell.command
    assert f"pid {agent.stat.pid} is torchrun, which launches trainings" in by_shell.evidence
    for member in by_shell.members:
        same = training.of(member.stat.pid)
        assert (same.root, len(same.members)) == (by_shell.root, 7)


def test_ranks_whose_launcher_was_killed_are_found_by_each_of_their_processes(
    families: Families,
) -> None:
    launched = families.torchrun(2, 1)
    before = found(launched.pid, ranks=2, workers=2)
    launched.kill()
    launched.wait()

    for member in before.members[1:]:
        after = training.of(member.stat.pid)
        assert {one.stat.key for one in after.members} == {
            one.stat.key for one in before.members[1:]
        }
        (first,) = (one for one in of_role(after, "rank") if one.rank == 0)
        assert after.root == first.stat.key
        assert after.ranks == 2
        assert "no launcher of them is there" in after.evidence


def test_workers_whose_rank_was_killed_stay_in_its_training(families: Families) -> None:
    launched = families.torchrun(2, 2)
    before = found(launched.pid, ranks=2, workers=4)
    victim = next(one for one in of_role(before, "rank") if one.rank == 1)
    orphans = [one for one in of_role(before, "worker") if one.rank == 1]
    # The launcher would end when it saw a rank end: it is stopped, as a busy one would be.
    os.kill(launched.pid, signal.SIGSTOP)
    os.kill(victim.stat.pid, signal.SIGKILL)
    until(lambda: in_state(victim.stat.pid, "Z"), "the death of the rank")

    after = training.of(orphans[0].stat.pid)

    assert after.root == before.root
    assert {one.stat.key for one in orphans} <= {
        one.stat.key for one in of_role(after, "worker") if one.rank == 1
    }


def test_trainings_that_had_the_same_address_one_after_the_other_are_two(
    families: Families,
) -> None:
    roots = []
    for _ in range(2):
        launched = families.torchrun(1, 0)
        rank = found(launched.pid).members[1].stat
        until(lambda: TrainingFacts().has_torch(rank), "torch in its memory")  # noqa: B023
        launched.kill()
        launched.wait()
        roots.append(rank.key)

    assert [training.of(pid).root for pid, _ in roots] == roots
    assert all(len(training.of(pid).members) == 1 for pid, _ in roots)


@pytest.mark.parametrize(("trainings", "launcher_is_root"), [(1, True), (2, False)])
def test_a_program_that_starts_ranks_launches_one_training_or_is_part_of_none(
    families: Families, trainings: int, launcher_is_root: bool
) -> None:
    (families.folder / "sweep.py").write_text(SWEEP)
    sweep = families.python("sweep.py", str(trainings))
    size = 3 if launcher_is_root else 2  # processes of each training

    def seen() -> list[Training]:
        pids = {sweep.pid, *(stat.pid for stat in children(sweep.pid))}
        ours = [one for one in training.all_here() if one.root[0] in pids]
        whole = [one for one in ours if len(one.members) == size]
        return whole if len(whole) == len(ours) == trainings else []

    found_ = until(seen, "all of its trainings")

    assert {one.root[0] == sweep.pid for one in found_} == {launcher_is_root}
    assert [len(of_role(one, "rank")) for one in found_] == [2] * trainings


def test_a_worker_without_any_rank_is_no_training(families: Families) -> None:
    alone = families.python("train.py", "1", stdout=subprocess.PIPE)
    (worker,) = of_role(found(alone.pid, workers=1), "worker")
    alone.kill()
    alone.wait()

    assert refusal(worker.stat.pid) == (
        f"pid {worker.stat.pid} is a worker without a training: its rank has ended"
    )


def test_one_program_is_a_training_when_it_has_torch_and_workers(families: Families) -> None:
    alone = families.python("train.py", "2")

    looked = found(alone.pid, workers=2)

    assert looked.root[0] == alone.pid
    assert [one.rank for one in of_role(looked, "rank")] == [0]
    assert looked.ranks == 1
    pids = ", ".join(str(one.stat.pid) for one in of_role(looked, "worker"))
    shown = f"processes that load data or compute for it are below it: pid {pids}"
    assert shown in looked.evidence
    assert training.of(of_role(looked, "worker")[1].stat.pid).root == looked.root


def test_the_one_process_of_a_launcher_that_sets_no_variables_is_rank_0(
    families: Families,
) -> None:
    (families.folder / "accelerate").write_text(ACCELERATE)
    launched = families.python("accelerate", "launch")

    looked = found(launched.pid, workers=1)

    assert [(one.role, one.rank, one.worker) for one in looked.members] == [
        ("agent", None, None),
        ("rank", 0, None),
        ("worker", 0, 0),
    ]


def test_torch_alone_makes_no_training(families: Families) -> None:
    alone = families.python("train.py", "0", stdout=subprocess.PIPE)
    assert alone.stdout and alone.stdout.readline()

    assert "has loaded torch, but has no GPU open, no dataloader workers" in refusal(alone.pid)
    assert alone.pid not in {one.root[0] for one in training.all_here()}


def test_a_log_alone_makes_no_training(families: Families) -> None:
    with (families.folder / "out.log").open("wb") as log:
        alone = families.python("train.py", "0", "--no-torch", stdout=log)
    until((families.folder / "out.log").read_bytes, "its first line")

    assert refusal(alone.pid) == f"pid {alone.pid} is Python on train.py, and has not loaded torch"


def test_a_notebook_is_no_training_whatever_it_has(families: Families) -> None:
    kernel = families.python("-m", "ipykernel_launcher", "2", "--log", stdout=subprocess.PIPE)
    assert kernel.stdout and kernel.stdout.readline()

    assert refusal(kernel.pid) == f"pid {kernel.pid} is a Jupyter kernel, which is no training"
    assert kernel.pid not in {one.root[0] for one in training.all_here()}


def test_ranks_that_a_program_has_forked_are_told_by_their_connections(
    families: Families,
) -> None:
    parent = families.python("train.py", "0", "2", "--log")

    looked = found(parent.pid, ranks=2)

    assert [one.role for one in looked.members] == ["agent", "rank", "rank"]
    assert [one.rank for one in looked.members] == [None, 0, 1]
    assert looked.ranks == 2


def test_who_reads_what_a_training_prints_finds_it(families: Families) -> None:
    tee = families.start("tee", "kept.txt", stdin=subprocess.PIPE)
    launched = families.torchrun(1, 0, stdout=tee.stdin)
    assert tee.stdin
    tee.stdin.close()
    found(launched.pid)

    looked = until(lambda: (it := training.of(tee.pid)).logs and it, "the file of tee")

    assert looked.root[0] == launched.pid
    assert looked.evidence[-1] == f"pid {tee.pid} is tee, and reads what it prints"
    assert looked.logs[0].path == str(families.folder / "kept.txt")


def test_above_several_trainings_each_is_named(families: Families) -> None:
    shell = families.start(
        "bash", "-c", '"$0" torchrun 1 0 & "$0" train.py 1 & wait', sys.executable
    )
    until(lambda: len(children(shell.pid)) == 4, "both to have begun")
    until(lambda: "several trainings below it" in _said(shell.pid), "both to be seen")

    said = _said(shell.pid)

    roots = [one.root[0] for one in training.all_here()]
    assert said.startswith(f"pid {shell.pid} is bash, a shell, with several trainings below it")
    assert all(str(pid) in said for pid in roots if pid in {s.pid for s in children(shell.pid)})


def _said(pid: int) -> str:
    try:
        training.of(pid)
    except NoTraining as refused:
        return str(refused)
    return ""


def test_what_a_dead_training_has_left_is_none_of_the_next_one_at_its_address(
    families: Families,
) -> None:
    """Neither has a launcher that tells: the ranks know each other by their variables alone."""
    rank = 'WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT "$0" train.py 0'
    dead = families.start("bash", "-c", f"RANK=1 {rank} & wait", sys.executable)
    until(lambda: len(children(dead.pid)) == 1, "the first training")
    (stale,) = children(dead.pid)
    until(lambda: TrainingFacts().has_torch(stale), "torch in its memory")
    dead.kill()
    dead.wait()
    next_one = families.start("bash", "-c", f"RANK=0 {rank} & RANK=1 {rank} & wait", sys.executable)
    until(
        lambda: [TrainingFacts().has_torch(one) for one in children(next_one.pid)] == [True, True],
        "the next training, with torch in its memory",
    )
    zero = children(next_one.pid)[0]

    looked = found(zero.pid, ranks=2)

    assert {one.stat.pid for one in of_role(looked, "rank")} == {
        one.pid for one in children(next_one.pid)
    }
    assert {one.stat.pid for one in found(stale.pid).members} == {stale.pid}


def test_what_is_no_process_of_ours_is_refused_with_what_it_is(
    start: Start, in_the_kernel: Callable[[str], Stat]
) -> None:
    shell = start("bash", "-c", "read line; true")
    ended = start("true")
    until(lambda: in_state(ended.pid, "Z"), "its end")
    waits = in_the_kernel("all")
    gone = start("true")
    gone.wait()

    assert refusal(shell.pid) == f"pid {shell.pid} is bash, a shell: nothing of it runs torch"
    assert refusal(ended.pid) == f"pid {ended.pid} is dead and waits for its parent"
    assert refusal(gone.pid) == f"there is no process {gone.pid}"
    assert "waits in the kernel (D)" in refusal(waits.pid)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_is_refused_by_the_name_of_the_user(start: Start) -> None:
    theirs = start("cat", user=NOBODY_UID, extra_groups=[])

    assert refusal(theirs.pid) == (
        f"pid {theirs.pid} is of another user (nobody): cat, not to be watched"
    )


def test_a_run_of_our_own_is_refused_with_its_directory(families: Families) -> None:
    directory = f"{families.folder}/mine"  # of a home that is there: nobody else cleans up here
    tags = {"BITWATCH_RUN": "mine", "BITWATCH_ATTEMPT": "1", "BITWATCH_DIR": directory}
    launched = families.torchrun(1, 1, variables=tags)
    until(lambda: len(children(launched.pid)) == 2, "its rank and its worker")

    with pytest.raises(NoTraining, match="belongs to run mine of bitwatch") as refused:
        training.of(children(launched.pid)[0].pid)

    assert refused.value.run_directory == directory
    assert launched.pid not in {one.root[0] for one in training.all_here()}


def test_all_trainings_here_are_listed_newest_first_and_looked_at_again(
    families: Families,
) -> None:
    older = families.torchrun(1, 1)
    found(older.pid, workers=1)
    newer = families.python("train.py", "1")
    found(newer.pid, workers=1)
    facts = TrainingFacts()

    def ours() -> list[int]:
        pids = [one.root[0] for one in training.all_here(facts)]
        return [pid for pid in pids if pid in (older.pid, newer.pid)]

    assert ours() == [newer.pid, older.pid]
    newer.kill()
    newer.wait()
    assert ours() == [older.pid]


def test_what_ends_during_the_look_is_left_out(families: Families) -> None:
    class Late(TrainingFacts):
        """Everything ends between the list of processes and the look at each."""

        def look(self, *arguments: Any, **keywords: Any) -> dict[int, Stat]:
            table = super().look(*arguments, **keywords)
            families.end()
            return table

    pid = families.torchrun(2, 2).pid
    found(pid, ranks=2, workers=4)

    with pytest.raises(NoTraining, match=f"no process {pid}"):
        training.of(pid, Late())
    assert pid not in {one.root[0] for one in training.all_here()}
