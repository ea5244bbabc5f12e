"""Saving beside the training: what is in the files, who waits, and what dies."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.conftest import PATIENCE_S, until
from tests.trainer import two_ranks
from tests.trainer.ready import Forked, free_port
from tests.trainer.test_weights import Training, counters, equal, save
from trainer import checkpoint, parallel, saving
from trainer.saving import Saver


@pytest.fixture
def training(place: parallel.Place, small: Callable[..., Any]) -> Callable[[], Training]:
    return lambda: Training(place, small(), "stop")


# ---------------------------------------------------------------------------------------
# One rank


def test_a_save_that_is_due_waits_for_the_one_under_way(
    training: Callable[[], Training],
    place: parallel.Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = training()
    it.step(1)
    saver = Saver(tmp_path, place, it.config)
    go, order, genuine = threading.Event(), [], saving.dcp.save

    def held(*arguments: Any, **keywords: Any) -> Any:
        order.append(f"begins {keywords['checkpoint_id'].name}")
        go.wait()
        genuine(*arguments, **keywords)
        order.append(f"ends {keywords['checkpoint_id'].name}")

    monkeypatch.setattr(saving.dcp, "save", held)
    saver.begin(it.model, it.optimizer, counters(1))
    assert saver.outcome() is None
    due = threading.Thread(target=saver.begin, args=(it.model, it.optimizer, counters(2)))
    due.start()
    until(lambda: not due.is_alive() or waits_in(due, "wait"), "the second to be waiting")
    go.set()
    due.join()
    saver.wait()
    assert order == [f"{verb} step-{n}" for n in (1, 2) for verb in ("begins", "ends")]
    first, second = saver.outcome(), saver.outcome()
    assert first and second and saver.outcome() is None
    assert (first.step, second.step) == (1, 2)
    assert first.bytes > 0


def waits_in(thread: threading.Thread, function: str) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == saving.__file__


def test_nothing_older_goes_before_the_new_one_is_on_the_disk(
    training: Callable[[], Training],
    place: parallel.Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = training()
    it.config.checkpoint.keep = 1
    it.step(1)
    save(it, place, tmp_path, 1)
    done, genuine = [], os.fsync

    def fsync(fd: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        assert (tmp_path / "step-1" / checkpoint.MANIFEST).exists()
        genuine(fd)
        done.append(str(path.relative_to(tmp_path)))

    monkeypatch.setattr(os, "fsync", fsync)
    save(it, place, tmp_path, 2)
    assert done == [
        "step-2/__0_0.distcp",
        "step-2/.metadata.tmp",
        "step-2",
        f"step-2/.manifest.json.{os.getpid()}",
        "step-2",
        ".",
    ]
    assert os.listdir(tmp_path) == ["step-2"]


def test_a_whole_one_of_the_same_step_stays_and_is_not_told_again(
    training: Callable[[], Training], place: parallel.Place, tmp_path: Path
) -> None:
    it = training()
    it.step(1)
    assert save(it, place, tmp_path, 1)
    before = (tmp_path / "step-1" / checkpoint.MANIFEST).stat()
    assert save(it, place, tmp_path, 1) is None
    assert (tmp_path / "step-1" / checkpoint.MANIFEST).stat() == before


def test_a_byte_that_flips_in_any_file_is_refused_by_the_files_name(
    training: Callable[[], Training], place: parallel.Place, tmp_path: Path
) -> None:
    it = training()
    it.step(1)
    it.config.checkpoint.keep = 9
    for step, name in enumerate(("", "__0_0.distcp", ".metadata", "manifest.json")):
        save(it, place, tmp_path, step)
        if name:
            victim = tmp_path / f"step-{step}" / name
            data = bytearray(victim.read_bytes())
            data[data.index(b"tokens") + 9 if name == "manifest.json" else len(data) // 2] ^= 1
            victim.write_bytes(data)
    found, passed_over = checkpoint.load(tmp_path, place, it.model, it.optimizer)
    assert found == counters(0)
    assert len(passed_over) == 3
    for text, name in zip(passed_over, ("manifest.json", ".metadata", "__0_0.distcp"), strict=True):
        assert name in text


# ---------------------------------------------------------------------------------------
# Two ranks, on gloo, without a launcher


@pytest.fixture(scope="module")
def two(
    place: parallel.Place, small: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder in which two ranks have saved, failed, and died."""
    folder = tmp_path_factory.mktemp("two")
    one = Training(place, small(), "stop")
    one.step(1)
    save(one, place, folder / "one", 1)
    surroundings = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    ranks = [Forked(two_ranks.main, folder, rank, surroundings) for rank in range(2)]
    try:
        assert [rank.wait(PATIENCE_S) for rank in ranks] == [0, -9]
    finally:
        for rank in ranks:
            rank.kill()
    return folder


@pytest.fixture
def facts(two: Path) -> list[dict[str, Any]]:
    return [json.loads((two / f"facts{rank}.json").read_text()) for rank in range(2)]


def test_the_files_hold_their_step_although_training_went_on(facts: list[dict[str, Any]]) -> None:
    for own in facts:
        assert own["moved on"]
        assert own["whole before it may write"] == 0
        assert own["beside: as it was"]
        assert own["tokens"] == counters(1).tokens


def test_what_is_saved_beside_is_what_is_saved_by_waiting(facts: list[dict[str, Any]]) -> None:
    for own in facts:
        assert own["whole when it waits"] == 1
        assert own["waiting: as it was"]


def test_every_rank_draws_on_where_it_was(facts: list[dict[str, Any]]) -> None:
    assert facts[0]["draws"] != facts[1]["draws"]
    for own in facts:
        assert own["beside: draws on"] and own["waiting: draws on"]


def test_a_rank_that_did_not_exist_keeps_its_own_generators(facts: list[dict[str, Any]]) -> None:
    assert [own["generators kept"] for own in facts] == [False, True]


def test_rank_0_alone_tells_of_a_checkpoint_and_once(facts: list[dict[str, Any]]) -> None:
    assert [own["told"] for own in facts] == [[True, False], [False, False]]
    assert facts[0]["paused less than it took"]


def test_a_save_that_fails_on_one_rank_ends_all_alike(facts: list[dict[str, Any]]) -> None:
    cause, _ = facts[0]["failed"]
    assert facts[1]["failed"] == facts[0]["failed"]
    assert "step-2: rank 1: " in cause
    assert "File too large" in cause
    for own in facts:
        assert own["also when waited for"] == cause
        assert not own["told of it"]


def test_a_save_that_fails_costs_no_older_one_and_leaves_nothing(
    facts: list[dict[str, Any]],
) -> None:
    for own in facts:
        assert own["after the failure"] == ["step-1"]


def test_what_a_killed_rank_leaves_is_wreckage_and_the_one_before_is_loaded(
    two: Path, training: Callable[[], Training], place: parallel.Place
) -> None:
    own = json.loads((two / "survivor.json").read_text())
    kind, trouble = own["alone"]
    assert kind in trouble  # the other is told, and does not wait for ever
    assert {".metadata", "__0_0.distcp", "__1_0.distcp"} <= set(own["wreckage"])
    assert checkpoint.MANIFEST not in own["wreckage"]
    it = training()
    found, _ = checkpoint.load(two / "beside", place, it.model, it.optimizer)
    assert found == counters(1)
    assert torch.rand(4).tolist() == own["draws"]  # rank 0's, under another number of ranks
    other = training()
    checkpoint.load(two / "waiting", place, other.model, other.optimizer)
    assert equal(it.values(), other.values())
    # A save of the same step takes its place, and a later one sweeps up.
    it.config.checkpoint.keep = 1
    save(it, place, two / "beside", 4)
    assert os.listdir(two / "beside") == ["step-4"]
