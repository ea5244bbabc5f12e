"""How fast sequences of 256 bytes arrive: indexed, as the stream gives them, and as a map of
`datasets` does, beside the plain memory map that nothing can beat.

    python bench/data.py [--mb N] [--json FILE]

One generated text, one process that asks for 64 sequences at a time as a training step does,
repetitions in turns so that a slow moment hits all alike. Starting workers is not measured:
the clock runs from the first step's arrival to the end of the epoch, or for SECONDS. On a
machine with other work only the second column can be trusted: sequences per second of
processor time, of all processes together, everything included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bitwatch import config as configuration
from bitwatch.record import rundir
from trainer import prepare
from trainer.data import sharing, source
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.index import Index
from trainer.data.indexed import IndexedBlocks, permutation
from trainer.data.stream import PackedRows

SEQUENCE_BYTES = 256
STEP = 64  # sequences
SECONDS = 2.0  # longest measurement
REPEATS = 7
REFERENCE = "memory map, a step at a time"
MAP_BATCH = 1000  # rows, what `datasets` takes by default
WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "bit",
    "transformer",
    "model",
    "sense",
    "sensibility",
    "pride",
    "prejudice",
    "é",
    "中文",
]

Steps = Generator[int, None, None]  # sequences of each step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=256, help="size of the text")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.mb)
    walls, cpus = figures["sequences_per_s"], figures["sequences_per_cpu_s"]
    print(f"{'':<40}{'per second':>12} {'x map':>7}{'per CPU second':>16} {'x map':>7}")
    for name, wall in walls.items():
        row = f"{name:<40}{wall:>12,} {wall / walls[REFERENCE]:>7.3f}"
        if name in cpus:
            row += f"{cpus[name]:>16,} {cpus[name] / cpus[REFERENCE]:>7.3f}"
        print(row)
    for name, value in figures["other"].items():
        print(f"{name:<46} {value:>12}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(folder: Path, megabytes: int) -> dict[str, Any]:
    data = configuration.Data(source=str(write_corpus(folder, megabytes)), sharding="indexed")
    data.cache = str(folder / "cache")
    config = configuration.load(configuration.bundled("configs/demo.toml"))
    config.data = data
    began = time.perf_counter()
    index = prepare.prepare(config, lambda *_: None, lambda: None)
    prepared_s = time.perf_counter() - began

    began = time.perf_counter()
    mapped = map_dataset(data, folder / "mapped.arrow")
    mapped_s = time.perf_counter() - began

    run = rundir.create(folder / "runs", "bench")
    contenders: dict[str, Callable[[], Steps]] = {
        REFERENCE: lambda: raw(index, STEP),
        "memory map, 4,096 at a time": lambda: raw(index, 4096),
        "indexed, no workers": lambda: indexed(index, run, 0),
        "indexed, 2 workers": lambda: indexed(index, run, 2),
        "as-is, no workers": lambda: as_is(data, run, 0),
        "as-is, 2 workers": lambda: as_is(data, run, 2),
        "datasets map, mapped before, permuted": lambda: read_mapped(mapped),
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    cpu_rates: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(REPEATS):
        for name, start in contenders.items():
            wall, cpu = rate(start)
            rates[name].append(wall)
            cpu_rates[name].append(cpu)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    medians["datasets map, mapping it once"] = len(mapped) / mapped_s
    fastest_map = max(rate for name, rate in medians.items() if name.startswith("datasets"))
    return {
        "sequences_per_s": {name: round(value) for name, value in medians.items()},
        "sequences_per_cpu_s": {
            name: round(statistics.median(values)) for name, values in cpu_rates.items()
        },
        "spread": {name: [round(min(v)), round(max(v))] for name, v in rates.items()},
        "other": {
            "text, MB": round(index.about.bytes / 1e6, 1),
            "preparing it, s": round(prepared_s, 2),
            "indexed without workers, x datasets map": round(
                medians["indexed, no workers"] / fastest_map, 1
            ),
            "indexed with 2 workers, x datasets map": round(
                medians["indexed, 2 workers"] / fastest_map, 1
            ),
        },
    }


def write_corpus(folder: Path, megabytes: int) -> Path:
    """Parquet files of rows of some 600 bytes, like articles cut into paragraphs."""
    random = np.random.default_rng(1)
    words = np.array(WORDS)
    corpus = folder / "corpus"
    corpus.mkdir()
    some = [" ".join(words[random.integers(0, len(words), 100)]) for _ in range(5000)]
    rows = megabytes * 1_000_000 // (sum(len(row.encode()) + 1 for row in some) // len(some))
    for number in range(4):
        chosen = random.integers(0, len(some), rows // 4)
        # A number in each row, or parquet would hold every text once.
        text = [f"{i} {some[i]} {k}" for k, i in enumerate(chosen)]
        pq.write_table(
            pa.table({"text": text}), corpus / f"{number}.parquet", row_group_size=20_000
        )
    return corpus


def rate(start: Callable[[], Steps]) -> tuple[float, float]:
    """Sequences a second, after the first step; and a second of CPU, from the start."""
    before_s = cpu_s()
    steps = start()
    first = next(steps)
    began, count = time.perf_counter(), 0
    for sequences in steps:
        count += sequences
        if time.perf_counter() - began > SECONDS:
            break
    wall_s = time.perf_counter() - began
    steps.close()  # its workers end, and their time is known
    return count / wall_s, (first + count) / (cpu_s() - before_s)


def cpu_s() -> float:
    """Of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


# ---------------------------------------------------------------------------------------
# Contenders


def raw(index: Index, size: int) -> Steps:
    text = index.sequences(SEQUENCE_BYTES)
    order = permutation(len(text), 1, 0)
    for begin in range(0, len(order) - size + 1, size):
        text.take(order[begin : begin + size], axis=0)
        yield size


def indexed(index: Index, run: rundir.RunDir, workers: int) -> Steps:
    desk = Desk(run.path, 1, 0, "indexed")
    stream = IndexedBlocks(index, SEQUENCE_BYTES, STEP, 0, 1, 1, desk, workers=workers)
    yield from take(Feed(stream, configuration.Data(source="", workers=workers), STEP, False))


def as_is(data: configuration.Data, run: rundir.RunDir, workers: int) -> Steps:
    rows = sharing.share(sharing.open_rows(source.training(data), "text"), 0, 1, 0, 1)
    stream = PackedRows(rows, "text", SEQUENCE_BYTES, STEP, Desk(run.path, 1, 0, "as-is"))
    yield from take(Feed(stream, configuration.Data(source="", workers=workers), STEP, False))


def take(feed: Feed) -> Steps:
    try:
        while feed.take() is not None:
            yield STEP
    finally:
        feed.close()
    assert not feed.trouble, feed.trouble


def map_dataset(data: configuration.Data, path: Path) -> datasets.Dataset:
    """The text of each batch of rows end to end, cut into sequences by numpy."""

    def pack(batch: dict[str, list[str]]) -> dict[str, np.ndarray]:
        text = np.frombuffer("\n".join([*batch["text"], ""]).encode(), np.uint8)
        count = len(text) // SEQUENCE_BYTES
        return {"bytes": text[: count * SEQUENCE_BYTES].reshape(count, SEQUENCE_BYTES)}

    rows = datasets.Dataset.from_parquet(
        list(source.training(data).files), cache_dir=str(path.parent / "datasets")
    )
    return rows.map(
        pack,
        batched=True,
        batch_size=MAP_BATCH,
        remove_columns=["text"],
        cache_file_name=str(path),
        load_from_cache_file=False,
    )


def read_mapped(mapped: datasets.Dataset) -> Steps:
    """As a DataLoader with a batch sampler would ask for it."""
    arrays = mapped.with_format("numpy")
    order = permutation(len(arrays), 1, 0)
    for begin in range(0, len(order) - STEP + 1, STEP):
        arrays[order[begin : begin + STEP]]["bytes"]
        yield STEP


if __name__ == "__main__":
    main()
