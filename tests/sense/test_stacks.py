"""Processes are asked where they are, and none is harmed by the question."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from bitwatch.sense import processes, stacks
from bitwatch.sense.places import wait_of
from bitwatch.sense.stacks import Look, Target
from tests.conftest import PATIENCE_S, alive, until
from tests.sense.conftest import Start, in_state, stat_of

# As a rank does it, and then waits as one waits for a dataloader worker.
ASKED = """
import sys, queue, threading
from trainer import stacks
if sys.argv[1] != "-":
    stacks.answer_as_rank(sys.argv[1])
nothing = queue.Queue()
threading.Thread(target=nothing.get, daemon=True).start()
def waits():
    print(flush=True)
    sys.stdin.read()
waits()
"""
# Works for a tick or two at a time, and sleeps as long.
AT_WORK = """
import time
print(flush=True)
while True:
    end = time.process_time() + 0.015
    while time.process_time() < end: pass
    time.sleep(0.015)
"""
WORKER = """
import os, sys, signal
from trainer import stacks
stacks.answer_as_rank(sys.argv[1])
pid = os.fork()
if not pid:
    stacks.answer_as_worker(3)
    print(flush=True)
    while True: signal.pause()
print(pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an answer may come late, and stop in the middle of it."""
    monkeypatch.setattr(stacks, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(stacks, "STILL_S", 0.3)


def target(child: subprocess.Popen[bytes], path: Path | None, rank: int = 0) -> Target:
    return Target(rank, *stat_of(child.pid).key, path)


def rests(pid: int) -> bool:
    """Whether all its threads sleep."""
    tasks = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return {text.rpartition(")")[2].split()[0] for text in tasks} == {"S"}


def test_a_process_that_waits_tells_where(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "stacks" / "rank0.txt"
    child = start(str(path), code=ASKED)
    until(lambda: rests(child.pid), "both its threads to wait")
    for _ in range(2):  # the second answer is another one, in the same file
        (look,) = stacks.ask([target(child, path)])
        assert [thread.frames[0].function for thread in look.threads] == ["waits", "wait"]
        assert look.threads[0].frames[-1].function == "<module>"
        assert (look.state, look.why, look.works) == ("S", "", False)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().count("Current thread") == 2
    assert child.poll() is None
    wait = wait_of(look)
    assert (wait.kind, wait.where) == ("other", "waits (<string>:10)")


def test_no_process_is_signalled_that_cannot_answer(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "rank.txt"
    deaf, halted = start("-", code=ASKED), start(str(path), code=ASKED)
    gone = start(str(path), code=ASKED)
    asked = [target(child, path, rank) for rank, child in enumerate((deaf, halted, gone))]
    foreign = asked[0]._replace(path=None, barred=stacks.READ_ONLY, rank=3)
    halted.send_signal(signal.SIGSTOP)
    until(lambda: in_state(halted.pid, "T"), "it to stop")
    gone.kill()
    gone.wait()
    looks = stacks.ask([*asked, foreign])
    assert [look.why for look in looks] == [
        stacks.NO_HANDLER,
        stacks.STOPPED,
        stacks.ENDED,
        stacks.READ_ONLY,
    ]
    assert [wait_of(look).kind for look in looks] == ["unknown", "stopped", "ended", "unknown"]
    assert deaf.poll() is None and alive(stat_of(deaf.pid).key)
    assert path.read_text() == ""
    assert not processes.read_stat(halted.pid) or in_state(halted.pid, "T")


def test_one_that_must_not_be_asked_is_at_work_when_it_uses_a_processor(start: Start) -> None:
    busy = start("-", code=AT_WORK)
    asked = target(busy, None)._replace(barred=stacks.READ_ONLY)
    until(lambda: stat_of(busy.pid).cpu_ticks, "it to have worked")

    def asleep() -> Look | None:
        """What was found when it was not seen on a processor, as it mostly is not."""
        (look,) = stacks.ask([asked])
        return look if look.state == "S" and look.works else None

    look = until(asleep, "it to sleep for a moment")
    assert look.works and look.why == stacks.READ_ONLY
    assert wait_of(look).kind == "busy"


def test_a_process_that_waits_in_the_kernel_is_not_waited_for(in_the_kernel: object) -> None:
    stat = in_the_kernel("all")  # type: ignore[operator]
    (look,) = stacks.ask([Target(0, *stat.key, Path("/nowhere"))])
    assert look.why == stacks.IN_KERNEL
    assert wait_of(look).kind == "kernel"


def test_a_forked_worker_answers_in_a_file_of_its_own(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "rank2.txt"
    rank = start(str(path), code=WORKER)
    worker = until(
        lambda: next(iter(processes.descendants(processes.scan(), {rank.pid})), None), "a worker"
    )
    own = tmp_path / "rank2-worker3.txt"
    until(own.exists, "its file")
    until(lambda: stacks.handles(worker, signal.SIGUSR1), "its handler")
    (look,) = stacks.ask([Target(2, *worker.key, own)])
    assert look.threads[0].frames[0].function == "<module>"
    assert path.read_text() == ""


def test_a_file_that_cannot_be_made_leaves_no_handler(start: Start, tmp_path: Path) -> None:
    (tmp_path / "stacks").write_text("in the way")
    path = tmp_path / "stacks" / "rank0.txt"
    child = start(str(path), code=ASKED)
    (look,) = stacks.ask([target(child, path)])
    assert look.why == stacks.NO_HANDLER


def test_a_full_file_begins_anew(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "rank0.txt"
    path.write_bytes(b"x" * (stacks.FILE_BYTES + 1))
    child = start(str(path), code=ASKED)
    (look,) = stacks.ask([target(child, path)])
    assert len(look.threads) == 2
    assert path.stat().st_size < 10_000


def test_what_stands_in_the_file_is_read_as_it_may_be() -> None:
    evil = 'Thread 0x1 (most recent call first):\n  File "/a", line 9 in f\n\x1b[2J\n'
    torn = (
        'Current thread 0x2 (most recent call first):\n  File "/b", line ??? in g\n  File "/c", li'
    )
    threads = stacks.parse(evil + torn)
    assert [thread.name for thread in threads] == ["0x2", "0x1"]
    assert threads[0].frames == (stacks.Frame("/b", 0, "g"),)
    many = "".join(f"Thread {hex(n)} (most recent call first):\n" for n in range(10_000))
    assert stacks.parse(many + "\0" * 1000) == ()
    endless = "Thread 0x1 (most recent call first):\n" + '  File "/a", line 9 in f\n' * 10_000
    assert len(stacks.parse(endless)[0].frames) == stacks.MOST_FRAMES
    assert wait_of(Look(Target(0, 1, 1, None), "S", stacks.parse(endless))).kind == "other"
