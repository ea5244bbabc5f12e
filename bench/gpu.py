"""What one GPU reaches with our trainer, and whether its memory is predicted.

    python bench/gpu.py [--json FILE] [--budget-s 420] [--device cpu --tiny]

Its ceiling in matrix products of the model's shapes; then steps of the 1.21B model on one
rank, with our sharding, loss and optimiser, over compile, micro-batch and activation
checkpointing; then our trainer itself. What matters most comes first, each figure is printed
and written as soon as it is known, and what the budget does not allow is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import launched

from bitwatch import config as configuration
from bitwatch.record import rundir

STEPS = Path(__file__).resolve().parent / "gpu_steps.py"
TRAINER_S = 60.0  # that our trainer is given, each time
NEEDS_ANEW = 75  # exit status of the steps' process: the next row wants a fresh one
OVERRUN_S = 20.0  # that a row may take longer than the budget before it is killed
TINY = {"d_model": 64, "heads": 1, "layers": 2, "feedforward": 256, "context": 256}
TARGETS = {
    "products_of_ceiling_percent": "at least 75",
    "mfu_percent": "at least 55",
    "predicted_over_used": "0.9 to 1.1",
}
COLUMNS = {  # title and width by figure
    "micro_batch": ("batch", 5), "activation_checkpointing": ("checkpointing", 13),
    "compile": ("compile", 7), "tokens_per_s": ("tokens/s", 9), "mfu_percent": ("MFU %", 6),
    "products_of_ceiling_percent": ("products, % of ceiling", 22),
    "allocated_gib": ("tensors, GiB", 12), "predicted_allocated_gib": ("predicted", 9),
    "predicted_over_allocated": ("ratio", 6),
    "used_gib": ("all, GiB", 9), "predicted_gib": ("predicted", 9), "predicted_over_used": ("ratio", 6),
}  # fmt: skip

Figures = dict[str, Any]


class Row(NamedTuple):
    micro_batch: int
    activation_checkpointing: str
    compile: bool


# What matters most first.
GRID = [
    Row(16, "none", False), Row(16, "none", True), Row(8, "none", False), Row(8, "none", True),
    Row(32, "none", False), Row(16, "full", False), Row(16, "selective", False),
    Row(32, "full", False), Row(32, "selective", False), Row(32, "none", True),
    Row(16, "selective", True), Row(16, "full", True), Row(32, "selective", True),
    Row(32, "full", True), Row(8, "selective", False), Row(8, "full", False),
    Row(8, "selective", True), Row(8, "full", True),
]  # fmt: skip
TINY_GRID = [Row(2, "none", False), Row(2, "full", False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--budget-s", type=float, default=420.0)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a small model, to try the bench")
    arguments = parser.parse_args()
    device, tiny = arguments.device, arguments.tiny
    bench = Bench(arguments.json, time.monotonic() + arguments.budget_s)
    bench.steps(TINY_GRID if tiny else GRID, device, tiny)
    demo = configured("demo", device, tiny)
    demo.train.steps, demo.train.warmup, demo.train.log_every, demo.train.eval_steps = 30, 5, 5, 5
    bench.trainer("demo", demo)
    if not tiny:
        large = configured("1b21", device, tiny, GRID[0])
        large.train.log_every = 5
        bench.trainer("1b21", large, records=6)
    print("targets:", "; ".join(f"{name} {wanted}" for name, wanted in TARGETS.items()))


def configured(name: str, device: str, tiny: bool, row: Row | None = None) -> configuration.Config:
    """On one rank, with bundled text. Raises ConfigError where this version refuses a row."""
    changes = [
        f'parallel.device="{device}"', "parallel.ranks=1", 'data.source="bundled:austen"',
        'data.sharding="indexed"',
    ]  # fmt: skip
    if tiny:
        changes += [f"model.{key}={value}" for key, value in TINY.items()]
    if row:
        changes += [
            f"train.batch={row.micro_batch}", f"train.micro_batch={row.micro_batch}",
            f'parallel.activation_checkpointing="{row.activation_checkpointing}"',
            f"parallel.compile={str(row.compile).lower()}",
        ]  # fmt: skip
    config = configuration.load(configuration.bundled(f"configs/{name}.toml"), changes)
    if tiny:
        config.model.expected_parameters = None
    return config


class Bench:
    """Runs the parts one after the other, each in processes of its own, and keeps the figures.

    This process never uses the GPU: what it held would be missing there.
    """

    def __init__(self, file: Path | None, deadline: float) -> None:
        self.figures: Figures = {"targets": TARGETS, "rows": []}
        self._file, self._deadline = file, deadline

    def steps(self, rows: list[Row], device: str, tiny: bool) -> None:
        """The ceiling, and steps of the model. A row that breaks its process costs only itself."""
        remaining, heard = list(rows), True
        while remaining and heard:
            time_s = self._deadline - time.monotonic() - 2 * TRAINER_S * (not tiny)
            wanted = {
                "rows": remaining, "device": device, "tiny": tiny, "time_s": time_s,
                "ceiling": self.figures.get("ceiling"),
            }  # fmt: skip
            heard = False
            with started([sys.executable, str(STEPS), json.dumps(wanted)], time_s) as child:
                for line in child.stdout or ():
                    heard = True
                    for name, value in json.loads(line).items():
                        if name == "row":
                            remaining.pop(0)
                        self.tell(name, value)
                status = child.wait()
            if status not in (0, NEEDS_ANEW) and remaining:
                row = remaining.pop(0)._asdict()
                self.tell("row", row | {"error": f"its process ended with status {status}"})

    def trainer(self, name: str, config: configuration.Config, records: int | None = None) -> None:
        """Our trainer to its end, or until so many step records are there."""
        left_s, where = self._deadline - time.monotonic(), f"trainer, {name}"
        if left_s < TRAINER_S / 2:
            return self.tell(where, {"left_out": "no time is left"})
        try:
            with launched.training(
                config, on_cpu=config.parallel.device == "cpu", threads=1
            ) as training:
                if records:
                    training.reach(records, left_s)
                else:
                    training.finish(left_s)
        except RuntimeError as error:
            return self.tell(where, {"error": str(error)})
        counted = training.steps[2:]  # the first ones are of one step, and of a cold start
        self.tell(
            where,
            {
                "tokens_per_s": round(statistics.median(s.tokens_per_s or 0 for s in counted)),
                "waiting_for_data_percent": percent(
                    sum(s.data_s or 0 for s in counted) / sum(s.step_s or 1 for s in counted)
                ),
                "mfu_percent": percent(counted[-1].mfu),
                "last_loss": training.steps[-1].loss,
            },
        )

    def tell(self, name: str, value: Figures) -> None:
        """Prints a figure, and writes all there are: what is cut off later leaves them."""
        if name == "row":
            if not self.figures["rows"]:
                print("  ".join(f"{title:>{width}}" for title, width in COLUMNS.values()))
            self.figures["rows"].append(value)
            print(line_of(value), flush=True)
        else:
            self.figures[name] = value
            words = ", ".join(f"{key} {shown(each)}" for key, each in value.items())
            print(f"{name}: {words}", flush=True)
        if self._file:
            rundir.write_whole(self._file, json.dumps(self.figures, indent=2).encode() + b"\n")


@contextlib.contextmanager
def started(command: list[str], time_s: float) -> Iterator[subprocess.Popen[str]]:
    """A process whose lines are read as they come; killed when it overruns its time."""
    environment = {
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",  # as a run is launched
        **os.environ,
        **launched.rank_environment(0, 1, launched.free_port()),
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        clock = threading.Timer(max(1.0, time_s + OVERRUN_S), child.kill)
        clock.start()
        try:
            yield child
        finally:
            clock.cancel()
            child.kill()


def line_of(row: Figures) -> str:
    why = row.get("error") or row.get("left_out")
    parts = [f"{shown(row.get(key)):>{width}}" for key, (_, width) in COLUMNS.items()]
    return "  ".join(parts[:3]) + f"  {why}" if why else "  ".join(parts)


def shown(value: Any) -> str:
    return (
        "n/a"
        if value is None
        else f"{value:,}"
        if isinstance(value, int | float) and not isinstance(value, bool)
        else str(value)
    )


def percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)


if __name__ == "__main__":
    main()
