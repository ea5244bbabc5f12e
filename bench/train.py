"""What our training loop costs beside others on the same model, text and optimiser.

    python bench/train.py [--json FILE] [--quick] [--rounds N] [--steps N] [--ranks 1 2]
                          [--sharding MODE]

On a CPU in float32, one thread a rank. In rounds of turns, so that a slow moment hits all
alike: on one rank a plain PyTorch loop (no FSDP2, no distribution), the same loop over the
model as we shard it, and our trainer as a run launches it; on two, Hugging Face accelerate as
well. Ratios are medians over the rounds. What a record costs is measured by itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import launched

from bitwatch import config as configuration
from bitwatch.record import rundir
from trainer import telemetry

LOOPS = Path(__file__).resolve().parent / "loops.py"
LIMIT_S = 600.0  # of one turn; only a hang takes longer
LOG_EVERY = 10
LOOPS_AND_OURS = {  # by ranks
    1: ("plain", "sharded", "ours"),
    2: ("sharded", "ours", "accelerate-fsdp2", "accelerate-ddp"),
}
MISSING = (
    "accelerate is not installed and is left out; "
    "python -m pip install --constraint constraints.txt '.[bench]' brings it"
)
LEFT_OUT = "left out"
TARGETS = {
    "ours / sharded": "< 1.02",
    "ours / accelerate-fsdp2, tokens/s": "> 1",
    "a step record, us (p95)": "< 100",
}
QUICK = (
    "model.d_model=32", "model.heads=1", "model.layers=2", "model.feedforward=64",
    "model.context=128",
)  # fmt: skip

Figures = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Turn:
    """One training: what a step took, without the first ones, and its mean losses."""

    step_s: list[float]
    cpu_s: float
    losses: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="a small model, one short round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--steps", type=int, default=110, help=f"of a turn; the first {LOG_EVERY} do not count"
    )
    parser.add_argument("--ranks", type=int, nargs="+", choices=LOOPS_AND_OURS, default=[1, 2])
    parser.add_argument(
        "--sharding", default="indexed", help="how ours reads; as-is reads in the others' order"
    )
    arguments = parser.parse_args()
    rounds, steps = (1, 3 * LOG_EVERY) if arguments.quick else (arguments.rounds, arguments.steps)
    changes = QUICK if arguments.quick else ()
    figures = records(2_000 if arguments.quick else 20_000)
    for ranks in arguments.ranks:
        config = configured(ranks, steps, arguments.sharding, changes)
        figures |= compare(config, rounds)
        if arguments.json:  # what is cut off later leaves what there is
            arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    for name, value in figures.items():
        targets = [target for part, target in TARGETS.items() if name.endswith(part)]
        print(f"{name:<62} {value:>14} {' '.join(targets):>7}".rstrip())
    if LEFT_OUT in figures.values():
        print(MISSING)


def configured(
    ranks: int, steps: int, sharding: str, changes: Sequence[str]
) -> configuration.Config:
    """The demo, without pauses, in the only precision that is the same in all loops."""
    return configuration.load(
        configuration.bundled("configs/demo.toml"),
        [
            f"parallel.ranks={ranks}", 'parallel.precision="fp32"', 'parallel.device="cpu"',
            f"train.steps={steps}", f"train.log_every={LOG_EVERY}", "train.eval_every=0",
            "train.warmup=10", f'data.sharding="{sharding}"', 'data.validation=""',
            "data.workers=1", *changes,
        ],
    )  # fmt: skip


# ---------------------------------------------------------------------------------------
# A step, ours and others'


def compare(config: configuration.Config, rounds: int) -> Figures:
    ranks = config.parallel.ranks
    loops = list(LOOPS_AND_OURS[ranks])
    left_out: Figures = {}
    if importlib.util.find_spec("accelerate") is None:
        left_out = {f"{ranks} ranks: {name}": MISSING for name in loops if "accelerate" in name}
        loops = [name for name in loops if "accelerate" not in name]
    turns: dict[str, list[Turn]] = {name: [] for name in loops}
    for number in range(rounds):
        first = number % len(loops)
        for name in loops[first:] + loops[:first]:
            turns[name].append(ours(config) if name == "ours" else theirs(name, config))
            step_ms = 1000 * statistics.median(turns[name][-1].step_s)
            print(
                f"round {number + 1} of {rounds}, {ranks} ranks: {name} {step_ms:.1f} ms a step",
                file=sys.stderr,
            )
    return told(f"{ranks} rank{'s' * (ranks > 1)}", turns, config) | left_out


def loops_of(ranks: int) -> tuple[list[str], Figures]:
    """What is compared on so many ranks, and what cannot be: accelerate is not always there."""
    loops = list(LOOPS_AND_OURS[ranks])
    if importlib.util.find_spec("accelerate"):
        return loops, {}
    without = [name for name in loops if not name.startswith("accelerate")]
    return without, {f"{ranks} ranks: {n}": LEFT_OUT for n in loops if n not in without}


def ours(config: configuration.Config) -> Turn:
    with launched.training(config, on_cpu=True, threads=1) as training:
        training.finish(LIMIT_S)
    counted = [n for n, record in enumerate(training.steps) if record.step > LOG_EVERY]
    # Not with the last record: a checkpoint had begun when it was seen.
    first, last = counted[0] - 1, counted[-2]
    steps = training.steps[last].step - training.steps[first].step
    return Turn(
        step_s=[training.steps[n].step_s or 0.0 for n in counted],
        cpu_s=(training.cpu_s[last] - training.cpu_s[first]) / steps,
        losses=[training.steps[n].loss or 0.0 for n in counted],
    )


def theirs(name: str, config: configuration.Config) -> Turn:
    with tempfile.TemporaryDirectory() as folder:
        file, result = Path(folder) / "config.toml", Path(folder) / "result.json"
        file.write_text(configuration.dump(config))
        words = [name, str(file), str(result)]
        launched.ranks(LOOPS, words, config.parallel.ranks, threads=1, limit_s=LIMIT_S)
        windows = json.loads(result.read_bytes())[1:]
    return Turn(
        step_s=[window["step_s"] for window in windows],
        cpu_s=statistics.mean(window["cpu_s"] for window in windows),
        losses=[window["loss"] for window in windows],
    )


def told(where: str, turns: dict[str, list[Turn]], config: configuration.Config) -> Figures:
    tokens = config.train.batch * config.model.context
    figures: Figures = {}
    for name, of_loop in turns.items():
        step_s = statistics.median(s for turn in of_loop for s in turn.step_s)
        figures[f"{where}: {name}, ms a step"] = round(1000 * step_s, 2)
        figures[f"{where}: {name}, tokens/s"] = round(tokens / step_s)
        figures[f"{where}: {name}, mean loss of the last {LOG_EVERY} steps"] = round(
            of_loop[-1].losses[-1], 4
        )

    def ratio(name: str, a: str, b: str, of: Callable[[Turn], float], over: str = "") -> None:
        if a in turns and b in turns:
            each = [of(x) / of(y) for x, y in zip(turns[a], turns[b], strict=True)]
            figures[f"{where}: {name}{over}"] = round(statistics.median(each), 3)
            figures[f"{where}: {name}{over}, rounds"] = f"{min(each):.3f} - {max(each):.3f}"

    def step_s(turn: Turn) -> float:
        return statistics.median(turn.step_s)

    ratio("ours / sharded", "ours", "sharded", step_s)
    ratio("ours / sharded", "ours", "sharded", lambda turn: turn.cpu_s, ", CPU time")
    ratio("sharded / plain", "sharded", "plain", step_s)
    ratio("ours / plain", "ours", "plain", step_s)
    for other in ("accelerate-fsdp2", "accelerate-ddp"):
        ratio(f"ours / {other}, tokens/s", other, "ours", step_s)
        ratio(f"ours / {other}", "ours", other, lambda turn: turn.cpu_s, ", CPU time")
    return figures


# ---------------------------------------------------------------------------------------
# A record


def records(count: int) -> Figures:
    """What a step record costs the rank that writes it, as trainer/train.py does."""
    rates = telemetry.Rates(
        tokens_a_step=2048, bits_a_byte=8, flops_a_token=6.4e6, peak_flops=989e12
    )
    times = []
    with tempfile.TemporaryDirectory() as home:
        run = rundir.create(Path(home), "records")
        log = telemetry.Telemetry(run, rundir.new_attempt(run), rank=0)
        for step in range(count):
            window = telemetry.Window(steps=LOG_EVERY, losses=[0.5 + step / count] * LOG_EVERY)
            began = time.perf_counter()
            record = window.told(
                rates, rank=0, step=step, tokens=step * 2048, learning_rate=1e-3, grad_norm=0.7,
                allocated_mib=15_000.0, reserved_mib=16_000.0, skipped=0,
            )  # fmt: skip
            log.write(record)
            times.append(1e6 * (time.perf_counter() - began))
        log.ended("done")
    times.sort()
    return {
        "a step record, us (median)": round(statistics.median(times), 1),
        "a step record, us (p95)": round(times[int(0.95 * len(times))], 1),
    }


if __name__ == "__main__":
    main()
