"""How fast the log of a training that bitwatch did not launch is read.

    python bench/foreign_log.py [--megabytes N] [--quick] [--json FILE]

Logs are made: ordinary lines with a step now and then, nothing but steps of a known trainer,
nothing but steps of an unknown one, progress bars that are one line of the file, and one line
without an end. Each is read twice by a process of its own: the newest lines, as a screen wants
them first, and all of it, as a report does. Seconds are processor time, and wall time beside
it; memory is the most that the process ever held.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bitwatch.attach.dialects import Listener
from bitwatch.attach.log_file import LogFile, pieces

NEWEST_BYTES = 256 << 10
STEP_EVERY = 50  # lines of the mixed log
TARGETS = {"first_ms": 3000.0, "whole_s": 20.0, "peak_mib": 300.0}


def mixed(at: int) -> str:
    stamp = f"2025-08-24 07:{at // 60_000 % 60:02d}:{at // 1000 % 60:02d},{at % 1000:03d}"
    if at % 10_000 == 0:
        return f"{stamp} [WARNING] the connection was lost, and is tried again\n"
    if at % STEP_EVERY == 0:
        return f"{stamp} [INFO] step {at // STEP_EVERY} | loss=3.214 | lr=2.5e-4 | 12,345 tok/s\n"
    return f"{stamp} [INFO] fetched part {at} of the text in 0.3 s, nothing else to say\n"


def known(at: int) -> str:
    stamp = f"2025-08-24 07:{at // 60_000 % 60:02d}:{at // 1000 % 60:02d},{at % 1000:03d}"
    return (
        f"[rank0]:[titan] {stamp} - root - INFO - step: {at:2}  loss:  3.24405  grad_norm:  0.8319"
        "  memory:  9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%\n"
    )


def unknown(at: int) -> str:
    return f"epoch 1 step {at}/9999999 | loss=3.214 | lr=2.5e-4 | 12,345 tok/s\n"


def bars(at: int) -> str:
    end = "\n" if at % 100_000 == 99_999 else ""
    step = at % 100_000
    return f"\r {step // 1000:3}%|###       | {step}/100000 [00:10<00:10,  4.90it/s, loss=2.1]{end}"


def endless(at: int) -> str:
    return "0123456789abcdef" * 64


KINDS: dict[str, Callable[[int], str]] = {
    "ordinary lines, a step in 50": mixed,
    "nothing but steps, torchtitan": known,
    "nothing but steps, of nobody we know": unknown,
    "progress bars": bars,
    "one line without an end": endless,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="2 MB each: that it works")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(measure(arguments.read)))
        return
    figures = {}
    megabytes = 2 if arguments.quick else arguments.megabytes
    print(
        f"{'':<38}{'first ms':>9}{'whole s':>9}{'wall s':>8}{'MB/s':>7}{'lines':>9}{'said':>9}{'MiB':>6}"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "training.log"
        for name, line in KINDS.items():
            make(path, line, megabytes)
            command = [sys.executable, __file__, "--read", str(path)]
            row = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            figures[name] = row
            print(
                f"{name:<38}{row['first_ms']:>9.0f}{row['whole_s']:>9.1f}{row['wall_s']:>8.1f}"
                f"{row['mb_per_s']:>7.1f}{row['passed']:>9,}{row['said']:>9,}{row['peak_mib']:>6.0f}"
            )
    print(
        f"targets for 200 MB: the newest lines in {TARGETS['first_ms']:.0f} ms, all in"
        f" {TARGETS['whole_s']:.0f} s, at most {TARGETS['peak_mib']:.0f} MiB"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def make(path: Path, line: Callable[[int], str], megabytes: int) -> None:
    with open(path, "w", newline="") as file:
        for block in blocks(line, megabytes * 1_000_000):
            file.write(block)


def blocks(line: Callable[[int], str], size: int) -> Iterator[str]:
    at = written = 0
    while written < size:
        block = "".join(line(at + more) for more in range(10_000))
        at += 10_000
        written += len(block)
        yield block


def measure(path: Path) -> dict[str, Any]:
    begin = time.process_time()
    log = LogFile(path, NEWEST_BYTES)
    Listener().hear(log.new())
    first_ms = 1000 * (time.process_time() - begin)
    log.close()
    size = path.stat().st_size
    listener = Listener()
    passed = said = 0
    begin, wall = time.process_time(), time.monotonic()
    for lines in pieces(path, 0, size, listener.sieve(size)):
        passed += len(lines)
        said += len(listener.hear(lines))
    whole_s = time.process_time() - begin
    return {
        "first_ms": first_ms,
        "whole_s": whole_s,
        "wall_s": time.monotonic() - wall,
        "mb_per_s": size / 1e6 / max(whole_s, 1e-9),
        "passed": passed,
        "said": said,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    main()
