"""Two ranks that save while they train, for test_saving: what they saw, as JSON.

Their folder holds a checkpoint of one rank in `one`. Ends with rank 1 killed in the middle of a
save.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from bitwatch import config as configuration
from tests.trainer.conftest import make_small
from tests.trainer.test_weights import Training, counters, equal
from trainer import agreement, checkpoint, parallel, saving
from trainer.failures import Failed
from trainer.saving import Saver


def drawn() -> list[float]:
    return torch.rand(4).tolist()


class Scenes:
    """One after the other on both ranks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = make_small(parallel={"ranks": 2}, checkpoint={"keep": 1})
        self.place = parallel.start(configuration.Parallel(ranks=2, device="cpu"))
        self.facts: dict[str, Any] = {}
        parallel.seed_rank(1, self.place)

    def loaded(self, name: str) -> Training:
        other = Training(self.place, self.config, "stop")
        found, passed_over = checkpoint.load(
            self.folder / name, self.place, other.model, other.optimizer
        )
        assert found and not passed_over
        return other

    def grow_from_one_rank(self) -> None:
        """Rank 1 did not exist: its generators are its own."""
        own = torch.get_rng_state()
        self.loaded("one")
        self.facts["generators kept"] = torch.equal(torch.get_rng_state(), own)

    def save_both_ways(self) -> None:
        it = Training(self.place, self.config, "stop")
        it.step(1)
        then = it.values()
        self.config.checkpoint.asynchronous = False
        Saver(self.folder / "waiting", self.place, self.config).begin(
            it.model, it.optimizer, counters(1)
        )
        self.facts["whole when it waits"] = len(checkpoint.whole(self.folder / "waiting"))

        self.config.checkpoint.asynchronous = True
        saver = Saver(self.folder / "beside", self.place, self.config)
        go, genuine = threading.Event(), saving.dcp.save

        def held(*arguments: Any, **keywords: Any) -> Any:
            go.wait()
            return genuine(*arguments, **keywords)

        saving.dcp.save = held
        at = counters(1)
        saver.begin(it.model, it.optimizer, at)
        at.tokens, after = 10**9, drawn()
        it.step(2)
        it.step(3)
        self.facts["moved on"] = not equal(it.values(), then)
        self.facts["whole before it may write"] = len(checkpoint.whole(self.folder / "beside"))
        go.set()
        saver.wait()
        saving.dcp.save = genuine
        saved, again = saver.outcome(), saver.outcome()
        self.facts["told"] = [bool(saved), bool(again)]
        if saved:
            self.facts["paused less than it took"] = 0 < saved.paused_s <= saved.seconds
        self.facts["tokens"] = checkpoint.manifest_of(self.folder / "beside/step-1").counters.tokens
        for name in ("beside", "waiting"):
            self.facts[f"{name}: as it was"] = equal(self.loaded(name).values(), then)
            self.facts[f"{name}: draws on"] = drawn() == after
        self.facts["draws"] = after

    def fail_on_rank_1(self) -> None:
        """As the training's loop does it, until all have heard."""
        it = self.loaded("beside")
        saver = Saver(self.folder / "beside", self.place, self.config)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        if self.place.rank == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        saver.begin(it.model, it.optimizer, counters(2))
        step = 2
        try:
            while True:
                word = agreement.Word(save_failed=bool(saver.trouble))
                pending = agreement.say(word, self.place.control)
                it.step(step := step + 1)
                self.facts["told of it"] = saver.outcome() is not None
                if pending.heard().save_failed:
                    saver.fail()
        except Failed as error:
            self.facts["failed"] = [str(error), step]
        try:
            saver.wait()
        except Failed as error:
            self.facts["also when waited for"] = str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.facts["after the failure"] = sorted(os.listdir(self.folder / "beside"))

    def die_before_the_manifest(self) -> None:
        it = self.loaded("beside")
        saver = Saver(self.folder / "beside", self.place, self.config)
        if self.place.rank == 1:
            saving._hash_own = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        saver.begin(it.model, it.optimizer, counters(3))
        try:
            saver.wait()
        except RuntimeError as error:
            self.facts["alone"] = [type(error).__name__, saver.trouble]
        self.facts["wreckage"] = sorted(os.listdir(self.folder / "beside/step-3"))


def main(folder: Path, rank: int, surroundings: dict[str, str]) -> None:
    os.environ.update(surroundings, RANK=str(rank), LOCAL_RANK=str(rank))
    scenes = Scenes(folder)
    scenes.grow_from_one_rank()
    scenes.save_both_ways()
    scenes.fail_on_rank_1()
    (folder / f"facts{scenes.place.rank}.json").write_text(json.dumps(scenes.facts))
    scenes.die_before_the_manifest()
    (folder / "survivor.json").write_text(json.dumps(scenes.facts))
    sys.stdout.flush()
    os._exit(0)  # not by way of torch's handlers, which would wait for the dead
