"""A reader that is stopped, one that blocks for ever in a read, and one that is killed: each is
named, in the journal and in the last word, with its rank, its shard and since when."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch.record import events
from bitwatch.record.follow import Follower
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from bitwatch.text import clock
from tests.conftest import Shell, until

pytestmark = pytest.mark.slow

FILES, ROWS = 4, 400  # of 16 bytes, a sequence each: an epoch of about 200 steps
SHARD = "shard part-1.parquet[0:1]"


def train_readers(run: RunDir) -> list[events.Reader]:
    follower = Follower(run)
    follower.poll()
    return [reader for reader in follower.state.readers_of(1) if reader.loader == "train"]


def alerts(run: RunDir, id: str) -> list[events.Alert]:
    return [r for r in read_all(run.journal)[0] if isinstance(r, events.Alert) and r.id == id]


def test_readers_that_are_held_up_or_killed_are_named(shell: Shell) -> None:
    texts = [shell.folder / f"part-{number}.parquet" for number in range(FILES)]
    for text in texts:
        pq.write_table(pa.table({"text": [f"row {row:011}" for row in range(ROWS)]}), text)
    shell.launch(
        f"data.source={shell.folder}/part-*.parquet",
        "data.validation=",
        "data.sharding=reshard",
        "train.steps=100000",
    )
    shell.reach(10)
    run = RunDir(Path(shell.one()["dir"]))
    by_shard = {reader.shards[0]: reader for reader in train_readers(run)}
    assert set(by_shard) == {f"{text.name}[0:1]" for text in texts}

    # Stopped by a signal, and let go on.
    halted = by_shard["part-2.parquet[0:1]"]
    os.kill(halted.pid, signal.SIGSTOP)
    who = f"rank {halted.rank} worker {halted.worker}"
    halt = f"{who} is stopped by a signal, at shard part-2.parquet[0:1];"

    def of_halt() -> list[events.Alert]:
        """Readers of a busy machine may be called slow before and after it, by the same alert."""
        return [alert for alert in alerts(run, "data-starved") if alert.text.startswith(halt)]

    alert = until(of_halt, "the alert of a stopped reader")[0]
    os.kill(halted.pid, signal.SIGCONT)
    assert alert.next == f"kill -CONT {halted.pid} lets it go on"
    until(
        lambda: (last := alerts(run, "data-starved")[-1]).cleared or last not in of_halt(),
        "the alert to clear",
    )

    # The next epoch opens a file that has become a pipe into which nobody writes.
    texts[1].unlink()
    os.mkfifo(texts[1])
    reached = time.time()
    stuck = until(lambda: _stuck(run, reached), "a reader to be stuck in the pipe")
    alert = until(lambda: _raised(run, reached), "its alert")
    who = f"rank {stuck.rank} worker {stuck.worker}"
    since = clock(stuck.moved)
    assert alert.text.startswith(f"{who} has been in one read of {SHARD} since {since}; ")
    assert alert.evidence == [
        f"{who} has been in one read of {SHARD} since {since} (pid {stuck.pid})"
    ]
    print(f"named {alert.t - stuck.moved:.1f} s after its last movement")

    # And is killed there.
    os.kill(stuck.pid, signal.SIGKILL)
    row = until(lambda: (row := shell.one())["state"] == "failed" and row, "the run to have failed")
    words = [r for r in read_all(run.rank(1, stuck.rank))[0] if isinstance(r, events.RankEnded)]
    said = (
        rf"(rank {stuck.rank}: data: )?worker {stuck.worker} of rank {stuck.rank} "
        rf"\(pid {stuck.pid}\), reading {re.escape(SHARD)}, was killed by SIGKILL at \d\d:\d\d:\d\d"
    )
    assert re.fullmatch(said, words[-1].cause), words[-1].cause
    ended = [r for r in read_all(run.journal)[0] if isinstance(r, events.AttemptEnded)]
    assert re.fullmatch(said, ended[-1].cause), ended[-1].cause
    assert row["state"] == "failed"
    (died, *_) = alerts(run, "worker-died")
    assert f"worker {stuck.worker} of rank {stuck.rank} (pid {stuck.pid})" in died.text
    assert "was killed by SIGKILL at" in died.text
    assert [line for line in died.evidence if line.startswith(f"rank {stuck.rank}'s log: ")]


def _stuck(run: RunDir, since: float) -> events.Reader | None:
    for reader in train_readers(run):
        late = reader.moved > since and time.time() - reader.moved > 3
        if reader.shard == SHARD.split()[1] and reader.state == "reading" and late:
            return reader
    return None


def _raised(run: RunDir, since: float) -> events.Alert | None:
    late = [alert for alert in alerts(run, "data-starved") if alert.t > since]
    return next((alert for alert in late if SHARD in alert.text), None)
