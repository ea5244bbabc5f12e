"""What `bitwatch report` takes on much evidence: the record of a week, and a long log.

    python bench/report.py [--steps N] [--ranks W] [--journal-mb N] [--log-mb N] [--json FILE]

A million steps of four ranks and a journal of 30 MB, the most that it may grow in a week; a log
of 200 MB. Each is the whole command with `--json`, once: seconds by the clock, seconds of the
processor, and its largest memory. Writing the evidence is not measured, and it is deleted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bitwatch.record import codec, events, rundir

RECORD_S, LOG_S = 10.0, 30.0  # at most
BEGAN = 1_700_000_000.0
STEP_S = 0.6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--journal-mb", type=float, default=30.0)
    parser.add_argument("--log-mb", type=float, default=200.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bitwatch-bench-") as folder:
        home = Path(folder) / "runs"
        record = week(home, arguments.steps, arguments.ranks, arguments.journal_mb)
        figures = {"the record of a week": measure(home, record)}
        log = long_log(Path(folder) / "training.log", arguments.log_mb)
        figures["a long log"] = measure(home, log)
    print(f"{'':<24}{'MB':>8}{'seconds':>9}{'processor':>11}{'MiB':>7}{'entries':>9}")
    for name, row in figures.items():
        print(
            f"{name:<24}{row['mb']:>8,.0f}{row['seconds']:>9.1f}{row['processor_s']:>11.1f}"
            f"{row['memory_mib']:>7,.0f}{row['entries']:>9}"
        )
    print(f"targets: {RECORD_S:.0f} s for the record, {LOG_S:.0f} s for 200 MB of log")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(home: Path, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bitwatch", "report", str(path), "--json"]
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, env=os.environ | {"BITWATCH_HOME": str(home)})
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, command
        out.seek(0)
        report = json.load(out)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {
        "mb": sum(file.stat().st_size for file in files) / 1e6,
        "seconds": seconds,
        "processor_s": usage.ru_utime + usage.ru_stime,
        "memory_mib": usage.ru_maxrss / 1024,
        "entries": len(report["timeline"]),
    }


def week(home: Path, steps: int, ranks: int, journal_mb: float) -> Path:
    """A run that ended without a word: minutes, workers that come and go, alerts, steps."""
    run = rundir.create(home, "week")
    rundir.new_attempt(run)
    with open(run.journal, "wb") as file:
        for first in (
            events.RunStarted(run=run.id, name="week", t=BEGAN),
            events.AttemptStarted(steps=2 * steps, ranks=ranks, workers=4, t=BEGAN),
        ):
            file.write(codec.encode(first))
        number = 0
        while file.tell() < journal_mb * 1e6:
            number += 1
            for record in minute(number, ranks):
                file.write(codec.encode(record))
    for rank in range(ranks):
        with open(run.rank(1, rank), "wb") as file:
            for step in range(1, steps + 1):
                file.write(codec.encode(step_of(rank, step)))
    return run.path


def minute(number: int, ranks: int) -> list[events.Record]:
    t, rank = BEGAN + 60.0 * number, number % ranks
    command = "python -c from multiprocessing.spawn import spawn_main"
    who = {"pid": 1000 + number % 30_000, "starttime": number, "role": "worker", "rank": rank}
    found: list[events.Record] = [
        events.Minute(processes=21, cpu_percent=12.5, rss_mib=1234.5, t=t),
        events.ProcessStart(attempt=1, command=command, t=t, **who),
        events.ProcessExit(t=t + 50, **who),
    ]
    if number % 50 == 0:
        alert = events.Alert(id="data-starved", text=f"rank {rank} waits", attempt=1, t=t)
        alert.cleared = number % 100 == 0
        found.append(alert)
    return found


def step_of(rank: int, step: int) -> events.Step:
    return events.Step(
        rank=rank, step=step, tokens=step * 4096, loss=0.4 + 1 / step, bits_per_byte=4.5,
        learning_rate=1e-3, grad_norm=0.4, step_s=STEP_S, data_s=0.01, tokens_per_s=18_000.0,
        t=BEGAN + step * STEP_S, m=step * STEP_S,
    )  # fmt: skip


def long_log(path: Path, log_mb: float) -> Path:
    step = 0
    with open(path, "w") as file:
        file.write("number of parameters: 123.59M\n")
        while file.tell() < log_mb * 1e6:
            lines = range(step, step + 1000)
            file.writelines(
                f"iter {n}: loss {0.4 + 1 / (n + 1):.4f}, time 130.11ms, mfu 1.20%\n" for n in lines
            )
            step += 1000
    return path


if __name__ == "__main__":
    main()
