"""What looking at all processes costs among 2,000, beside psutil and nvitop.

    python bench/scan.py [--processes N] [--seconds N] [--run] [--json FILE]

Processor time of each way of looking, as the median of turns that go round, so that a slow
moment hits all alike. nvitop is asked only for its view of the host, and is left out where
it cannot be imported. Then a supervisor's second: what it does with a tree of its own, once a
second, by its own processor time; with --run also a real one that supervises the demo.

The crowd are `cat`s that read a pipe of this program: however it ends, they end with it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from bitwatch.attach.others import Others
from bitwatch.record.journal import JournalWriter
from bitwatch.record.rundir import RunDir
from bitwatch.record.samples import SampleWriter
from bitwatch.record.state import RunState
from bitwatch.sense.processes import Key, Scanner, read_stat, scan
from bitwatch.supervise.tree import Tree

OWN = 20  # processes of a tree that is looked at every second
REPEATS = 9
FIELDS = ["pid", "ppid", "name", "status", "create_time", "cpu_times", "memory_info"]
FIRST, AGAIN, SECOND, WHOLE = (
    "ours: all, for the first time",
    "ours: all, again",
    "ours: a tree of 20, and who is there",
    "ours: all, again, with command lines and users",
)
AROUND = "a viewer's: who is beside the live attempt"
PSUTIL_FIRST, PSUTIL, PSUTIL_WHOLE = (
    "psutil: the same fields, for the first time",
    "psutil: the same fields, again",
    "psutil: again, with command lines and users",
)
NVITOP = "nvitop: snapshots of the host processes"
RATIOS = [
    ("all, for the first time: psutil / ours", PSUTIL_FIRST, FIRST),
    ("all, again: psutil / ours", PSUTIL, AGAIN),
    ("command lines and users too: psutil / ours", PSUTIL_WHOLE, WHOLE),
    ("psutil again / ours of a tree", PSUTIL, SECOND),
    ("nvitop / ours with command lines and users", NVITOP, WHOLE),
]
MISSING = "left out: nvitop is not installed here"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2000, help="how many there shall be")
    parser.add_argument("--seconds", type=int, default=30, help="that a supervisor is watched")
    parser.add_argument("--run", action="store_true", help="watch a real supervisor too")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--supervise", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.supervise:
        print(supervise(arguments.seconds))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    with crowd(max(0, arguments.processes - len(scan()) - OWN)) as root:
        figures = {"processes": len(scan()), **looks(root)}
        figures["a supervisor's second, % of a core"] = ask_supervisor(arguments.seconds)
        if arguments.run:
            figures |= real_supervisor()
    for name, value in figures.items():
        print(f"{name:<52} {value:>10}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


@contextlib.contextmanager
def crowd(count: int) -> Iterator[Key]:
    """So many cheap processes and a tree of OWN, whose root is returned. At the end, or when
    their starting is interrupted, all are gone."""
    reading, writing = os.pipe()  # the writing end is this program's alone
    stdin = [(os.POSIX_SPAWN_DUP2, reading, 0)]
    cats = f"exec 3<&0; i=1; while [ $i -lt {OWN} ]; do cat <&3 & i=$((i+1)); done; wait"
    pids: list[int] = []
    try:
        pids.append(os.posix_spawnp("sh", ["sh", "-c", cats], os.environ, file_actions=stdin))
        for _ in range(count):
            pids.append(os.posix_spawnp("cat", ["cat"], os.environ, file_actions=stdin))
        root = read_stat(pids[0])
        assert root, "the root of the tree has ended"
        seen = Scanner()
        while len(seen.look([root.key]) and seen.own) < OWN:
            time.sleep(0.05)
        yield root.key
    finally:
        os.close(writing)  # whoever is no child of ours ends by this
        os.close(reading)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)  # not reaped yet: it means nobody else
        for pid in pids:
            os.waitpid(pid, 0)


def looks(root: Key) -> dict[str, Any]:
    """Milliseconds of processor time of each way of looking, and how many times ours."""
    whole, second, viewer = Scanner(), Scanner(), Others(RunDir(Path("/proc/self/no/run")))
    ways: dict[str, Callable[[], object]] = {
        FIRST: lambda: Scanner().look(),
        AGAIN: lambda: whole.look(everything=True),
        SECOND: lambda: second.look([root]),
        WHOLE: lambda: [
            (whole.command(stat), whole.user(stat)) for stat in whole.look(everything=True).values()
        ],
        AROUND: lambda: viewer.look(RunState()),
        PSUTIL_FIRST: psutil_for_the_first_time,
        PSUTIL: lambda: [process.info for process in psutil.process_iter(FIELDS)],
        PSUTIL_WHOLE: lambda: [
            process.info for process in psutil.process_iter([*FIELDS, "cmdline", "uids"])
        ],
    }
    if importlib.util.find_spec("nvitop"):
        ways[NVITOP] = nvitop_snapshots()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS + 1):
        for name, look in ways.items():
            began = time.process_time()
            look()
            times[name].append(1000 * (time.process_time() - began))
    # The first turn fills what ours and psutil keep.
    ms = {name: statistics.median(values[1:]) for name, values in times.items()}
    found: dict[str, Any] = {f"{name}, ms": round(value, 2) for name, value in ms.items()}
    if NVITOP not in ways:
        found[NVITOP] = MISSING
    return found | {
        name: round(ms[theirs] / ms[ours], 1) for name, theirs, ours in RATIOS if theirs in ms
    }


def psutil_for_the_first_time() -> object:
    psutil.process_iter.cache_clear()
    return [process.info for process in psutil.process_iter(FIELDS)]


def nvitop_snapshots() -> Callable[[], object]:
    """What nvitop reads of each process that uses a GPU, asked here of all: its own code, with
    a GPU in name only."""
    import nvitop

    class NoGpu:
        index = 0

        def is_mig_device(self) -> bool:
            return False

        def memory_total(self) -> Any:
            return nvitop.NA

    gpu = NoGpu()
    kept: dict[int, Any] = {}  # as its own loop keeps them

    def look() -> object:
        found = []
        for pid in psutil.pids():
            with contextlib.suppress(psutil.Error):
                process = kept[pid] = nvitop.GpuProcess(pid, gpu)
                found.append(process.host_snapshot())
        return found

    return look


def ask_supervisor(seconds: int) -> float:
    """In a process of its own, whose processor time is only that."""
    command = [sys.executable, __file__, "--supervise", "--seconds", str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return round(float(done.stdout), 2)


def supervise(seconds: int) -> float:
    """Percent of a core that looking at a tree of OWN and recording it takes once a second."""
    with tempfile.TemporaryDirectory() as folder, crowd(0):
        journal = JournalWriter(Path(folder) / "journal.jsonl")
        tree = Tree(journal, SampleWriter(Path(folder) / "samples"), 1)
        state = RunState()
        tree.look({}, state)
        assert len(tree.own) == 1 + OWN, tree.own
        time.sleep(4.0)  # by then each of the tree is recorded
        began_s, began = time.process_time(), time.monotonic()
        for second in range(1, seconds + 1):
            tree.look({}, state)
            tree.sample(None)
            time.sleep(max(0.0, began + second - time.monotonic()))
        return 100 * (time.process_time() - began_s) / (time.monotonic() - began)


def real_supervisor() -> dict[str, Any]:
    import overhead

    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "BITWATCH_HOME": home}
        found = overhead.supervising(environment, 200)
    return {f"the demo's {name}": value for name, value in found.items()}


if __name__ == "__main__":
    main()
