"""The benches run to their end and say what they promise; nothing here judges a time."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parents[2] / "bench"
PATIENCE_S = 240.0  # against hangs only


def run(script: str, folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """A bench's JSON and what it printed."""
    file = folder / "figures.json"
    done = subprocess.run(
        [sys.executable, str(BENCH / script), "--json", str(file), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_bytes()), done.stdout


@pytest.mark.long
def test_the_loops_that_are_compared_train_the_same_model_on_the_same_text(
    tmp_path: Path,
) -> None:
    figures, printed = run("train.py", tmp_path, "--quick", "--ranks", "1", "--sharding", "as-is")
    losses = [
        figures[f"1 rank: {loop}, mean loss of the last 10 steps"]
        for loop in ("plain", "sharded", "ours")
    ]
    assert max(losses) - min(losses) < 2e-4, losses
    assert losses[0] < 0.9 * math.log(2), "nothing was learned"
    for ratio in ("ours / sharded", "sharded / plain", "ours / plain"):
        assert figures[f"1 rank: {ratio}"] > 0
        assert f"1 rank: {ratio}" in printed
    assert 0 < figures["a step record, us (median)"] <= figures["a step record, us (p95)"]


def test_accelerate_is_asked_for_in_one_sentence_where_it_is_missing() -> None:
    if importlib.util.find_spec("accelerate"):
        pytest.skip("accelerate is installed")
    ask = "import train; print(train.loops_of(2), train.MISSING)"
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=BENCH, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("(['sharded', 'ours'], {'2 ranks: accelerate-fsdp2': 'left out'")
    assert "'.[bench]'" in done.stdout


@pytest.mark.long
def test_the_gpu_bench_measures_the_model_and_the_trainer_and_invents_nothing_on_a_cpu(
    tmp_path: Path,
) -> None:
    figures, printed = run("gpu.py", tmp_path, "--device", "cpu", "--tiny")
    assert figures["device"]["peak_tflops"] is None
    assert figures["ceiling"]["best_tflops"] > 0
    first, *others = figures["rows"]
    assert first["tokens_per_s"] > 0
    assert first["mfu_percent"] is None and first["used_gib"] is None
    assert first["products_of_ceiling_percent"] > 0
    assert first["loss"] == pytest.approx(math.log(2), abs=0.05), "no step was taken, or many"
    assert [row["micro_batch"] for row in others] == [2]
    assert figures["trainer, demo"]["tokens_per_s"] > 0
    assert figures["trainer, demo"]["last_loss"] < math.log(2)
    assert "targets: products_of_ceiling_percent at least 75" in printed


def test_plans_of_every_kind_are_timed_with_their_corrections(tmp_path: Path) -> None:
    words = ("--shards", "40", "--ranks", "4", "--workers", "2", "--repeats", "2")
    figures, printed = run("plan.py", tmp_path, *words)
    assert len(figures) == 9
    incident, *others = figures.values()
    assert incident["corrections"] == ["indexed", "reshard", "fewer-workers", "more-files"]
    assert incident["times_incident"] == 1
    for name, row in figures.items():
        assert 0 < row["median_ms"] <= row["slowest_ms"]
        assert name in printed
    assert "auto: 43 shards, 4 row groups each" in figures
    assert any("indexed" in row["corrections"] for row in others)


@pytest.mark.long
def test_logs_of_every_kind_are_read_in_little_memory(tmp_path: Path) -> None:
    figures, printed = run("foreign_log.py", tmp_path, "--quick")
    assert len(figures) == 5
    for name, row in figures.items():
        assert name in printed
        assert 0 < row["peak_mib"] < 300
        assert row["passed"] >= row["said"]
    assert figures["nothing but steps, torchtitan"]["said"] == 20_000
    assert figures["one line without an end"]["said"] == 0
    assert "targets for 200 MB" in printed


@pytest.mark.long
def test_watching_is_measured_by_process_and_everything_that_was_started_ends(
    tmp_path: Path,
) -> None:
    words = ("--live", "--steps", "3000", "--processes", "60", "--windows", "2", "--seconds", "1")
    figures, printed = run("screen.py", tmp_path, *words, "--keys", "7")
    parts = [figures[f"{name}, % of a core"] for name in ("supervisor", "viewer")]
    assert all(0 < share < 100 for share in parts), figures
    assert sum(parts) <= figures["all of bitwatch, % of a core"] + 0.2
    assert figures["nvitop"].startswith("left out")
    hangs = "NVML hangs" if shutil.which("cc") else "no GPU"
    assert figures[f"key to paint, 100 records/s, {hangs}, ms (p95)"] > 0
    assert figures["keys pressed"] >= 7 and "keys pressed" in printed
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert figures["run"] not in left
