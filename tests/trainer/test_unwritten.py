"""A training whose record may not grow: it goes on, is called so, and stops with a checkpoint."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.view import View, view
from bitwatch.supervise import stopping
from tests.conftest import until
from tests.trainer.conftest import Launched

pytestmark = pytest.mark.slow

BLANK = b" " * 4095 + b"\n"  # no reader takes it for a record
ROOM_BYTES = 2 << 20  # more than a checkpoint of the small model takes


def test_a_rank_that_may_not_write_trains_on_and_says_so(
    launch: Callable[..., Launched], small: Callable[..., object]
) -> None:
    """A limit on the size of files does what a quota does, to the longest file alone."""
    launched = launch(small(train={"steps": 10**6}))
    run, follower = launched.run, Follower(launched.run)

    def seen(*, supervisor: bool = True) -> View:
        follower.poll()
        live = msgspec.structs.replace(follower.liveness(), supervisor=supervisor)
        return view(follower.state, time.time(), live)

    launched.await_that(lambda: launched.of(events.Step))
    path = run.rank(1, 0)
    with open(path, "ab") as file:
        file.write(BLANK * (ROOM_BYTES // len(BLANK)))
    pid, room = launched.of(events.ProcessStart)[0].pid, path.stat().st_size
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, hard))
    until(lambda: 0 in seen().unwritten, "the rank to say that it cannot write")
    begun = seen().step
    until(lambda: seen().step > begun + 20, "the training to go on")
    assert seen().state == "running"
    assert seen().alerts[0].text.startswith("rank 0 cannot write its records (File too large)")
    assert f"{path}: File too large: what cannot be written from now on" in launched.log()

    stopping.ask(run, 1, "me")
    assert launched.wait() == 0, launched.log()
    ended = seen(supervisor=False)
    assert (ended.state, ended.last_words[0].state) == ("stopped", "stopped")
    assert ended.step == ended.checkpoints[-1].step > begun + 20
    assert Path(ended.checkpoints[-1].path, "manifest.json").exists()
    assert os.path.getsize(path) == room
