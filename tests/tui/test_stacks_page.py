"""The page of stacks: who keeps the others waiting, and the frames of every rank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.attach.stacks import RankStacks, Stacks, look
from bitwatch.attach.telling import Snapshot
from bitwatch.record import events, rundir
from bitwatch.record.view import ProcessRow, View
from bitwatch.sense import stacks
from bitwatch.sense.stacks import Frame, Thread
from bitwatch.tui.screens.stacks import StacksPage, text
from tests.conftest import PATIENCE_S, until
from tests.supervise.standins import Key, Standins, rank_says
from tests.tui.conftest import Open, Stage

# A rank that waits in what looks like its dataloader.
RANK = """
import sys
from trainer import stacks
stacks.answer_as_rank(sys.argv[1])
source = "def _try_get_data(): print(flush=True); sys.stdin.read()"
exec(compile(source, "/lib/torch/utils/data/dataloader.py", "exec"))
_try_get_data()
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an answer may come late, and stop in the middle of it."""
    monkeypatch.setattr(stacks, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(stacks, "STILL_S", 0.3)


@pytest.fixture
def standins() -> Iterator[Standins]:
    made = Standins()
    yield made
    made.end_all()


def stalled(at: Stage, standins: Standins) -> tuple[View, Key]:
    """The recorded run, with a rank 1 that lives and waits."""
    view = at.dashboard.view
    run = at.source.run
    view.state, view.ranks = "stalled", 2
    words = RANK.replace("sys.argv[1]", repr(str(run.stacks(view.attempt, 1))))
    key = standins.start(words, stdin=-1)
    run.rank(view.attempt, 1).unlink()
    rank_says(run, 1, events.ProcessStart(pid=key[0], starttime=key[1]), attempt=view.attempt)
    return view, key


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_s_shows_where_the_ranks_are(
    stage: Open, standins: Standins, size: tuple[int, int]
) -> None:
    async with stage(*size) as at:
        view, key = stalled(at, standins)
        at.dashboard.take(Snapshot(view, at.dashboard.shown.now))  # type: ignore[union-attr]
        await at.pilot.pause()
        assert "s stacks" in at.text()
        await at.press("s")
        await at.until(lambda: "rank 1 waits in DataLoader queue.get" in at.text())
        await at.press("pagedown")
        await at.until(lambda: f"pid {key[0]}" in at.text())
        assert "_try_get_data  utils/data/dataloader.py:1" in at.text()
        standins.end(key)
        await at.press("r")
        await at.until(lambda: "ranks 0, 1 have ended" in at.text())
        await at.press("escape")
        assert at.app.screen is at.dashboard


async def test_s_is_no_word_of_the_footer_while_the_run_moves(stage: Open) -> None:
    async with stage() as at:
        assert "s stacks" not in at.text()
        await at.press("s")
        assert isinstance(at.app.screen, StacksPage)


def test_a_foreign_training_is_looked_at_and_not_signalled(
    standins: Standins, tmp_path: Path
) -> None:
    run = rundir.create(tmp_path, "foreign")
    key = standins.start()  # the signal would end it
    row = ProcessRow(pid=key[0], starttime=key[1], ppid=1, role="rank", rank=0, state="S")
    view = View(foreign=True, attempt=1, ranks=1, state="stalled", processes=[row])
    until(lambda: look(run, view).ranks[0].wait.kind == "unknown", "it to sleep")
    assert look(run, view).ranks[0].why == stacks.READ_ONLY
    assert standins.started[0].poll() is None
    assert "no rank of attempt 1 runs" in look(run, View(state="done", attempt=1)).text
    assert "no rank has said a word" in look(run, View(state="starting", attempt=1, ranks=2)).text


def test_evil_words_of_a_stack_are_harmless_and_many_are_folded() -> None:
    evil = Frame("/x/\x1b[2Jevil.py", 3, "[bold]f\n")
    threads = tuple(Thread(str(n), (evil,) * 40) for n in range(20))
    wait = events.Wait(0, "other", "\x1b[31m", 94.0)
    rank = RankStacks(wait, 7, "sleeping", "futex", "", threads)
    shown = [block.text.plain for block in text(Stacks("who\x1b[2J", 0.0, (rank,)))]
    assert not any("\x1b" in line or "\n" in line for line in shown)
    assert "no step for 1 m 34 s" in " ".join(shown)
    assert any("and 26 more frames" in line for line in shown)
    assert any("19 more threads" in line for line in shown)
    assert len(shown) < 40
