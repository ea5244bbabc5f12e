"""How fast the screen is, measured through a pseudo-terminal as a person sees it.

    python bench/screen.py [--json FILE] [--steps N] [--repeats N]
    python bench/screen.py --live [--nvitop PATH] [--json FILE] [--steps N]

First paint of `attach` on runs with 100,000 and 1,000,000 step records, the time until the
whole history is drawn and the memory then, and from a key to its effect while 100 records a
second arrive: once alone, once while a long history is still being read. With --live instead
what watching a live run costs, with GPUs and many processes: see beside.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import beside
import pexpect
from terminal import BITWATCH, SIZE, Screen

from bitwatch.record import codec, events, rundir
from bitwatch.record.journal import JournalReader, JournalWriter
from bitwatch.record.rundir import RunDir

BEGAN = 1_700_000_000.0
RECORDS_PER_S = 100
TURNS, TURN_S = 6, 12.0  # with and without a viewer beside a real training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--training", action="store_true", help="also beside a real demo (CPU!)")
    parser.add_argument("--live", action="store_true", help="what watching costs, by process")
    parser.add_argument("--nvitop", metavar="PATH", help="the program to run beside it")
    parser.add_argument("--processes", type=int, default=500)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=12.0, help="of each window")
    arguments = parser.parse_args()
    sys.setswitchinterval(0.0002)  # the clock's thread must not wait for pyte's
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if arguments.live:
            a = arguments
            live = beside.watching(home, a.steps, a.processes, a.nvitop, a.windows, a.seconds)
            live |= beside.keys(home / "keys", a.keys)
            tell(live, a.json)
            return
        for steps in sorted({100_000, arguments.steps}):
            figures |= opening(write_run(home, steps), steps, arguments.repeats)
        figures |= keys(write_run(home, 10_000, over=False), arguments.keys)
        if arguments.training:
            figures |= training(home / "real")
    tell(figures, arguments.json)


def tell(figures: dict[str, Any], file: Path | None) -> None:
    for name, value in figures.items():
        print(f"{name:<58} {value:>10}")
    if file:
        file.write_text(json.dumps(figures, indent=2) + "\n")


# ---------------------------------------------------------------------------------------
# What is measured


def opening(run: RunDir, steps: int, repeats: int) -> dict[str, Any]:
    newest = f"{steps:,}/{steps:,}"
    first, whole, pressed, memory = [], [], [], []
    for _ in range(repeats):
        with Screen(run) as screen:
            first.append(screen.until(lambda s: newest in s and "palette" in s, since=screen.began))
            slow = []
            while not screen.done_reading():
                slow.append(screen.press("y"))
            whole.append(time.perf_counter() - screen.began)
            pressed += slow
            memory.append(screen.memory_mib())
            screen.leave()
    found = {
        f"{steps:,} steps: first paint, s (median)": round(statistics.median(first), 2),
        f"{steps:,} steps: first paint, s (worst)": round(max(first), 2),
        f"{steps:,} steps: whole history, s (median)": round(statistics.median(whole), 2),
        f"{steps:,} steps: memory, MiB": round(max(memory)),
    }
    if len(pressed) > 3:
        found[f"{steps:,} steps: key to paint meanwhile, ms (p95)"] = _p95(pressed)
    return found


def keys(run: RunDir, presses: int) -> dict[str, Any]:
    """`y` redraws the whole curve and writes a word: the slowest key there is."""
    with held(run), Screen(run) as screen:
        screen.until(lambda s: "RUNNING" in s)
        screen.until(lambda _: screen.done_reading())
        times = []
        for _ in range(presses):
            time.sleep(0.03)
            times.append(screen.press("y"))
        cpu = screen.cpu_percent(5.0)
        began = time.perf_counter()
        screen.leave()
        left = time.perf_counter() - began
    return {
        f"key to paint, {RECORDS_PER_S} records/s, ms (median)": round(
            1000 * statistics.median(times), 1
        ),
        f"key to paint, {RECORDS_PER_S} records/s, ms (p95)": _p95(times),
        "CPU of the viewer meanwhile, % of a core": cpu,
        "from q to the shell, s": round(left, 2),
    }


def training(home: Path) -> dict[str, Any]:
    """Step times of the demo, in turns with a viewer and without one."""
    environment = {**os.environ, "BITWATCH_HOME": str(home)}
    many = ["--set", "train.steps=100000", "--set", "train.log_every=1"]
    done = subprocess.run(
        [BITWATCH, "run", "--detach", *many], env=environment, check=True, stdout=subprocess.PIPE
    )
    run = RunDir(home / done.stdout.decode().strip())
    times: dict[bool, list[float]] = {True: [], False: []}
    reader = JournalReader(run.rank(1, 0))
    try:
        while len(_step_times(reader)) < 1:
            time.sleep(1)
        for turn in range(TURNS):
            watched = turn % 2 == 0
            with unseen(run) if watched else nullcontext():
                time.sleep(3)
                reader.read()
                time.sleep(TURN_S)
                times[watched] += _step_times(reader)
    finally:
        subprocess.run([BITWATCH, "stop", run.id, "--now"], env=environment, check=False)
    return {
        f"step {'with' if watched else 'without'} a viewer, ms (median of {len(found)})": round(
            1000 * statistics.median(found), 1
        )
        for watched, found in times.items()
    }


@contextmanager
def unseen(run: RunDir) -> Iterator[None]:
    """A viewer in a terminal that only takes its bytes: understanding them, as `Screen` does,
    costs more than the viewer itself, and belongs to the other end of a connection."""
    environment = {**os.environ, "BITWATCH_HOME": str(run.path.parent), "TERM": "xterm-256color"}
    child = pexpect.spawn(
        BITWATCH, ["attach", run.id], env=environment, dimensions=(SIZE[1], SIZE[0])
    )

    def take() -> None:
        with suppress(OSError):
            while os.read(child.child_fd, 1 << 16):
                pass

    threading.Thread(target=take, daemon=True).start()
    try:
        yield
    finally:
        child.send("q")
        child.close(force=True)


def _step_times(reader: JournalReader) -> list[float]:
    return [r.step_s for r in reader.read() if isinstance(r, events.Step) and r.step_s]


def _p95(seconds: list[float]) -> float:
    return round(1000 * sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1], 1)


# ---------------------------------------------------------------------------------------
# Runs to look at


def write_run(home: Path, steps: int, over: bool = True) -> RunDir:
    run = rundir.create(home, f"steps{steps}")
    rundir.new_attempt(run)
    journal = JournalWriter(run.journal)
    shape = {"steps": steps if over else 10 * steps, "ranks": 1, "workers": 2, "log_every": 1}
    journal.write(events.RunStarted(run=run.id, name="bench", t=BEGAN))
    journal.write(events.AttemptStarted(**shape, device="cpu", stall_s=1e12, t=BEGAN))
    if over:
        journal.write(events.AttemptEnded(state="done", step=steps, t=BEGAN + steps))
        journal.write(events.RunEnded(state="done", t=BEGAN + steps))
    with open(run.rank(1, 0), "wb") as file:
        file.write(codec.encode(events.Phase(name="train")))
        for step in range(1, steps + 1):
            file.write(codec.encode(record(step)))
    return run


def record(step: int) -> events.Step:
    loss = 0.3 + 0.4 * math.exp(-step / 20_000) + 0.01 * math.sin(step * 0.7)
    return events.Step(
        step=step,
        tokens=4096 * step,
        loss=loss,
        bits_per_byte=loss * 11.54,
        learning_rate=0.0005,
        grad_norm=0.3333333,
        step_s=0.01,
        data_s=0.0001,
        tokens_per_s=409_600.0,
        t=BEGAN + step,
        m=float(step),
    )


@contextmanager
def held(run: RunDir) -> Iterator[None]:
    """The run looks live: its lock is held, and it gets its records."""
    lock = rundir.Lock(run)
    over = threading.Event()

    def write() -> None:
        writer = JournalWriter(run.rank(1, 0))
        step = 10_001
        while not over.wait(1 / RECORDS_PER_S):
            writer.write(record(step))
            step += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        lock.release()


if __name__ == "__main__":
    main()
