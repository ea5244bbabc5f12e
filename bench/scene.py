"""A live run to look at: a real supervisor and its sensor over a tree of cheap processes.

An agent, its ranks, workers that say so of themselves, and so many others below the ranks; all
sleep on a pipe of this program and end with it, however it ends. Before them lies the long
history of an attempt that has ended.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bitwatch import config
from bitwatch.record import codec, events, kernel, rundir
from bitwatch.record.journal import JournalReader, JournalWriter
from bitwatch.record.rundir import RunDir

RANKS, WORKERS = 4, 8  # workers of each rank
ATTEMPT = 2  # the live one
SPEAK_S = 1.0  # between two step records of a rank
ENDING_S = 20.0
CLONE_PROCESS_CLOCK = 2  # of the kernel's numbers of clocks: what all threads have used

# A tree of processes that all read this program's pipe. It prints who is who, once.
TREE = """
import json, os, sys
role, count = sys.argv[1], int(sys.argv[2])
names = ["pt_data_worker from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=%d)",
         "compile_worker --workers=32 --parent=%d --read-fd=12 --write-fd=15"]
def spawn(words, executable):
    return os.posix_spawn(executable, words, os.environ)
if role == "agent":
    ranks = [spawn([sys.executable, "-S", "-c", sys.argv[4], "rank", str(share), sys.argv[3]],
                   sys.executable) for share in json.loads(sys.argv[5])]
    os.write(1, (json.dumps({"agent": os.getpid(), "ranks": ranks}) + "\\n").encode())
else:
    workers = int(sys.argv[3])
    below = [spawn([names[at >= workers] % at], "/bin/cat") for at in range(count)]
    os.write(1, (json.dumps({"rank": os.getpid(), "below": below}) + "\\n").encode())
sys.stdin.read()
"""


class Scene(NamedTuple):
    """`processes`: all below the agent."""

    run: RunDir
    environment: dict[str, str]
    supervisor: int
    sensor: int | None
    ranks: list[int]
    processes: list[int]


@contextlib.contextmanager
def scene(
    home: Path,
    steps: int,
    processes: int,
    nvml: Mapping[str, str] | None = None,
    speak_s: float = SPEAK_S,
) -> Iterator[Scene]:
    """So many `steps` before the live attempt, whose tree has so many `processes`. `nvml`: what
    leads to a driver's library, in the environment; without it there is no GPU. `speak_s`: how
    often the ranks write a step."""
    environment = {**os.environ, **(nvml or {}), "BITWATCH_HOME": str(home)}
    for name in ("COLUMNS", "LINES"):  # of the terminal that the bench runs in
        environment.pop(name, None)
    environment["TERM"], environment["COLORTERM"] = "xterm-256color", "truecolor"
    run = write_run(home, steps)
    with (
        tree(processes) as who,
        speaking(run, steps, who, speak_s),
        supervised(run, environment) as pid,
    ):
        yield Scene(run, environment, pid, sensor_of(run, pid), list(who["ranks"]), who["below"])


def write_run(home: Path, steps: int) -> RunDir:
    """An attempt with so many steps that was stopped, and the folders of the next one."""
    run = rundir.create(home, f"live{steps}")
    now = time.time()
    with contextlib.closing(JournalWriter(run.journal)) as journal:
        journal.write(events.RunStarted(run=run.id, name="bench", t=now - steps))
        for attempt in (1, ATTEMPT):
            rundir.new_attempt(run)
            settings = config.bundled("configs/demo.toml").read_text()
            settings = settings.replace("ranks = 2", f"ranks = {RANKS}")
            settings = settings.replace("batch = 8", f"batch = {4 * RANKS}")
            run.config(attempt).write_text(f"{settings}\n[watch]\nmax_processes = 10000\n")
        first = started(1, steps, now - steps)
        journal.write(first)
        journal.write(events.AttemptEnded(attempt=1, state="stopped", step=steps, t=now - 60))
    with open(run.rank(1, 0), "wb") as file:
        file.write(codec.encode(events.Phase(name="train", t=now - steps)))
        for step in range(1, steps + 1):
            file.write(codec.encode(record(step, now - 60 - steps + step)))
    return run


def started(attempt: int, steps: int, t: float) -> events.AttemptStarted:
    return events.AttemptStarted(
        attempt=attempt, steps=2 * steps, ranks=RANKS, workers=WORKERS, device="cuda", t=t
    )


def record(step: int, t: float) -> events.Step:
    loss = 0.3 + 0.4 * math.exp(-step / 20_000) + 0.01 * math.sin(step * 0.7)
    return events.Step(
        step=step,
        tokens=4096 * step,
        loss=loss,
        bits_per_byte=loss * 11.54,
        learning_rate=0.0005,
        grad_norm=0.3 + 0.01 * math.sin(step * 0.3),
        step_s=1.0 + 0.05 * math.sin(step),
        data_s=0.01,
        tokens_per_s=4096.0 / (1.0 + 0.05 * math.sin(step)),
        allocated_mib=14_540.0,
        reserved_mib=15_360.0,
        peak_mib=15_020.0,
        t=t,
        m=t,
    )


@contextlib.contextmanager
def tree(processes: int) -> Iterator[dict[str, Any]]:
    """So many processes: pids of the agent, the ranks and each rank's workers. They are gone at
    the end, or when their starting is interrupted."""
    below = max(RANKS * WORKERS, processes - RANKS - 1)
    shares = [below // RANKS + (at < below % RANKS) for at in range(RANKS)]
    words = [sys.executable, "-S", "-c", TREE, "agent", "0", str(WORKERS), TREE, json.dumps(shares)]
    agent = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert agent.stdout
        told = [json.loads(agent.stdout.readline()) for _ in range(1 + RANKS)]
        found = next(each for each in told if "agent" in each)
        of_ranks = {each["rank"]: each["below"] for each in told if "rank" in each}
        found["workers"] = {rank: below[:WORKERS] for rank, below in of_ranks.items()}
        found["below"] = [*of_ranks, *(pid for below in of_ranks.values() for pid in below)]
        yield found
    finally:
        agent.stdin.close()  # type: ignore[union-attr]
        try:
            agent.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            os.killpg(agent.pid, signal.SIGKILL)  # its leader is not reaped: it means ours
            agent.wait()


@contextlib.contextmanager
def speaking(run: RunDir, steps: int, who: dict[str, Any], speak_s: float) -> Iterator[None]:
    """The record of the live attempt, as its launch and its ranks write it."""
    with contextlib.closing(JournalWriter(run.journal)) as journal:
        journal.write(started(ATTEMPT, steps, time.time()))
        journal.write(start_of(who["agent"], "agent"))
    writers = []
    for rank, pid in enumerate(who["ranks"]):
        writers.append(JournalWriter(run.rank(ATTEMPT, rank)))
        writers[-1].write(start_of(pid, "rank", rank))
        writers[-1].write(events.Phase(name="train"))
        for worker, reader in enumerate(who["workers"][pid]):
            path = run.reader(ATTEMPT, rank, "train", worker, "0")
            with contextlib.closing(JournalWriter(path)) as writer:
                writer.write(reader_of(reader, rank, worker))
    over = threading.Event()

    def speak() -> None:
        step = steps
        while not over.wait(speak_s):
            step += 1
            for writer in writers:
                writer.write(record(step, time.time()))

    thread = threading.Thread(target=speak)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for writer in writers:
            writer.close()


def start_of(pid: int, role: str, rank: int | None = None) -> events.ProcessStart:
    starttime = kernel.starttime(pid) or 0
    return events.ProcessStart(
        pid=pid, starttime=starttime, role=role, rank=rank, attempt=ATTEMPT, command="python"
    )


def reader_of(pid: int, rank: int, worker: int) -> events.Reader:
    starttime, now = kernel.starttime(pid) or 0, time.time() + 1e6  # it never falls silent
    shards: list[int | str] = [rank * WORKERS + worker]
    return events.Reader(
        rank=rank, worker=worker, pid=pid, starttime=starttime, shards=shards, rows=1000,
        samples=4000, bytes=1 << 20, state="waiting", moved=now,
    )  # fmt: skip


@contextlib.contextmanager
def supervised(run: RunDir, environment: dict[str, str]) -> Iterator[int]:
    """The supervisor takes the attempt over, as it does that of one that has died."""
    module = "bitwatch.supervise.supervisor"
    words = [sys.executable, "-m", module, str(run.path), str(ATTEMPT), "adopt", "bench", ""]
    with open(run.supervisor_log, "ab") as log:
        process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stderr=log, start_new_session=True
        )
    try:
        until(lambda: run.lock_is_held() or process.poll() is not None, "a supervisor")
        if process.poll() is not None:
            raise SystemExit(f"the supervisor has ended: {run.supervisor_log.read_text()}")
        yield process.pid
    finally:
        process.kill()  # it would end the tree, which ends by itself, and so do the sensors
        process.wait()


def sensor_of(run: RunDir, supervisor: int) -> int | None:
    """A machine without a GPU has none."""
    reader = JournalReader(run.journal)
    roles: dict[int, str] = {}

    def sampled() -> bool:
        for each in reader.read():
            if isinstance(each, events.ProcessStart):
                roles[each.pid] = each.role
        return supervisor in roles and any(run.samples.iterdir())

    until(sampled, "the supervisor to record itself")
    sensors = [pid for pid, role in roles.items() if role == "sensor" and kernel.starttime(pid)]
    return sensors[-1] if sensors else None


def until(condition: Any, what: str, limit_s: float = 20.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {limit_s:.0f} s in vain for {what}")
        time.sleep(0.05)


def cpu_s(pid: int) -> float:
    """What all threads of a process have used, to the nanosecond, those that ended too."""
    return time.clock_gettime((~pid << 3) | CLONE_PROCESS_CLOCK)


@contextlib.contextmanager
def in_terminal(
    words: list[str], environment: dict[str, str], columns: int, lines: int
) -> Iterator[int]:
    """A program in a pseudo-terminal that only takes its bytes."""
    import pexpect

    child = pexpect.spawn(words[0], words[1:], env=environment, dimensions=(lines, columns))
    over = threading.Event()

    def take() -> None:
        with contextlib.suppress(OSError):
            while not over.is_set():
                if select.select([child.child_fd], [], [], 0.2)[0] and not os.read(
                    child.child_fd, 1 << 16
                ):
                    return

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield child.pid
    finally:
        child.send("q")
        with contextlib.suppress(pexpect.TIMEOUT):
            until_ended(child)
        over.set()
        child.close(force=True)


def until_ended(child: Any, limit_s: float = 5.0) -> None:
    deadline = time.monotonic() + limit_s
    while child.isalive() and time.monotonic() < deadline:
        time.sleep(0.05)
