"""What bitwatch itself costs: starting a command, and supervising the demo.

    python bench/overhead.py [--steps N] [--json FILE]

Times are medians, beside a bare interpreter of the same run; the supervisor's and its
sensor's CPU and memory are read from /proc while the demo trains.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes

BITWATCH = str(Path(sys.executable).parent / "bitwatch")
REPEATS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "BITWATCH_HOME": home}
        figures = {**starts(environment), **supervising(environment, arguments.steps)}
    for name, value in figures.items():
        print(f"{name:<46} {value:>10}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def starts(environment: dict[str, str]) -> dict[str, Any]:
    commands = {
        "bare interpreter": [sys.executable, "-c", ""],
        "bitwatch --help": [BITWATCH, "--help"],
        "bitwatch ls": [BITWATCH, "ls"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(REPEATS):  # interleaved, so that a slow moment hits all alike
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
            times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(values) for name, values in times.items()}
    bare = medians["bare interpreter"]
    found: dict[str, Any] = {f"{name}, ms": round(1000 * s, 1) for name, s in medians.items()}
    found |= {f"{name}, x bare": round(s / bare, 2) for name, s in medians.items() if s is not bare}
    return found


def supervising(environment: dict[str, str], steps: int) -> dict[str, Any]:
    """Share of a core and peak memory of supervisor and sensor, from the first step to the
    end of a demo run."""
    launched = subprocess.run(
        [BITWATCH, "run", "--detach", "--set", f"train.steps={steps}"],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    run = RunDir(Path(environment["BITWATCH_HOME"]) / launched.stdout.strip())
    follower = Follower(run)
    began: tuple[float, float] | None = None
    ended = (0.0, 0.0)
    peak_mib = 0.0
    count = 0
    while run.lock_is_held():
        follower.poll()
        watchers = alive(follower)
        if watchers and follower.state.ranks_of(1).get(0) and follower.state.ranks_of(1)[0].step:
            now = time.monotonic(), sum(w.cpu_ticks for w in watchers) / processes.TICKS_PER_S
            began, ended = began or now, now
            peak_mib = max(peak_mib, sum(w.rss_mib for w in watchers))
            count = max(count, len(watchers))
        time.sleep(0.1)
    assert began, "the demo reached no step"
    share = (ended[1] - began[1]) / (ended[0] - began[0])
    return {
        "supervisor and sensor, % of a core": round(100 * share, 2),
        "supervisor and sensor, peak MiB": round(peak_mib, 1),
        "processes of them seen at once": count,
        "seconds watched": round(ended[0] - began[0], 1),
    }


def alive(follower: Follower) -> list[processes.Stat]:
    roles = follower.state.journal.processes.items()
    watchers = [key for key, start in roles if isinstance(start, events.ProcessStart)
                and start.role in ("supervisor", "sensor")]  # fmt: skip
    stats = [processes.read_stat(pid) for pid, _ in watchers]
    return [s for s, key in zip(stats, watchers, strict=True) if s and s.key == key]


if __name__ == "__main__":
    main()
