"""The pictures of the README and of docs/, from real recordings.

    python bench/screenshots.py [--run DIRECTORY] [--folder docs] [--steps N]

Without --run the demo is launched and photographed live at step N; then it is relaunched with the
correction of its plan, its curves and alerts are photographed, and a rank of it is killed, so that
its logs have something to tell. The replay is that of its record. The picture of GPUs is of a real
supervisor and sensor with a library in NVML's place, over processes that sleep, a few minutes long:
its GPUs are called stand-ins on it. The paths and the name of the machine they were taken on are
shown as a user's would be.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import scene
from neutral import Neutral, aligned
from textual.pilot import Pilot

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bitwatch import listing
from bitwatch.attach import commands
from bitwatch.attach.follow import Feed
from bitwatch.attach.replay import Refusing, Replay
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES, View
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.screens.replay import ReplayDashboard
from bitwatch.tui.themes import load
from tests.nvml.standin import NoCompiler, Standin

ROOT = Path(__file__).resolve().parent.parent
BITWATCH = str(Path(sys.executable).parent / "bitwatch")


class Picture(NamedTuple):
    name: str
    size: tuple[int, int] = (120, 38)
    theme: str = "dark"
    keys: Sequence[str] = ()


LIVE = (
    Picture("dashboard"),
    Picture("dashboard-light", theme="light"),
    Picture("dashboard-80x24", (80, 24)),
    Picture("dashboard-60x15", (60, 15)),
    Picture("why", keys=("w",)),
    Picture("relaunch", keys=("R",)),
    Picture("processes", keys=("4", "4", *["down"] * 3, "space", "down", "down", "space")),
    Picture("help", keys=("question_mark",)),
    Picture("themes", keys=("T", "down")),
)
RELAUNCHED = (
    Picture("curves", keys=("3", "3", "m", *["left"] * 5)),
    Picture("alerts", keys=("a",)),
)
BROKEN = (Picture("logs", keys=("l", "slash", *"sigkill", "enter")),)
GPUS = Picture("gpus", (120, 38), keys=("1", "1"))
REPLAY = Picture("replay", (120, 30))
ON = 150  # steps that the relaunched attempt takes
HISTORY_S = 330.0  # of the graphs of the GPUs
READ_S = 1.5  # for a page that reads in a thread of its own
SETTLE_S = 6.0  # for the short histories that only a screen itself collects


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    os.environ["COLORTERM"] = "truecolor"
    arguments.folder.mkdir(exist_ok=True)
    if arguments.run:
        run = RunDir(arguments.run.absolute())
        photograph(run, (*LIVE, *RELAUNCHED, *BROKEN), arguments.folder)
        return
    with tempfile.TemporaryDirectory() as folder:
        home, beside = Path(folder) / "demo", Path(folder) / "gpus"
        with gpus(beside) as live:
            os.environ["BITWATCH_HOME"] = str(home)
            demo(home, arguments.steps, arguments.folder)
            os.environ["BITWATCH_HOME"] = str(beside)
            if live is not None:
                photograph(live.run, (GPUS,), arguments.folder, long_enough)


def demo(home: Path, steps: int, folder: Path) -> None:
    """The demo while it trains, after its relaunch, with a rank that is killed, and then again
    from its record."""
    subprocess.run([BITWATCH, "run", "--detach"], check=True)
    (row,) = listing.rows(home)
    run = RunDir(Path(row.dir))
    try:
        trained(home, 1, steps)
        photograph(run, LIVE, folder)
        print(commands.relaunch(run, 1, "indexed"))
        trained(home, 2, trained(home, 2, 1) + ON)
        photograph(run, RELAUNCHED, folder)
        print(commands.signal(run, [rank_of(run, 1)], "KILL"))
        while listing.row(run).state not in END_STATES:
            time.sleep(1)
        photograph(run, BROKEN, folder)
    finally:
        subprocess.run([BITWATCH, "stop", row.run], check=False)
    replay = Replay(run, 60.0)
    app = Bitwatch(
        replay,
        Refusing(),
        load()[0],
        dashboard=lambda run, host, first: ReplayDashboard(replay, host, first),
    )

    async def halfway(pilot: Pilot[None]) -> None:
        replay.start()
        replay.go_on()
        replay.wish(lambda playing: playing.leap(0.9))
        replay.wish(lambda playing: playing.pause())
        await pilot.pause(SETTLE_S / 3)

    write(asyncio.run(taken(app, REPLAY, halfway)), REPLAY, folder)
    replay.close()


def trained(home: Path, attempt: int, step: int) -> int:
    """Waits until the attempt has come to this step, and says to which it has come."""
    while True:
        (row,) = listing.rows(home)
        if row.state in END_STATES and row.attempt >= attempt:
            raise SystemExit(f"the demo has ended: {row.state}: {row.note}")
        if row.attempt == attempt and row.state == "running" and row.step >= step:
            return row.step
        time.sleep(1)


def rank_of(run: RunDir, rank: int) -> tuple[int, int]:
    """Who it is."""
    follower = Follower(run)
    follower.poll()
    seen = follower.state.samples.processes
    assert seen is not None
    return next(
        (one.pid, one.starttime)
        for one in seen.processes
        if one.rank == rank and one.role == "rank"
    )


@contextlib.contextmanager
def gpus(home: Path) -> Iterator[scene.Scene | None]:
    """A real supervisor and a real sensor over processes that only sleep, and GPUs that are not
    there: they answer as those of a training do that writes a checkpoint every two minutes."""
    try:
        standin = Standin(home / "nvml", scene.RANKS, name="NVIDIA L4 stand-in")
    except NoCompiler as error:
        print(f"no picture of GPUs: {error}")
        yield None
        return
    over = threading.Event()
    with scene.scene(home, 5_000, 40, standin.environment) as live:
        thread = threading.Thread(target=busy, args=(standin, live.ranks, over))
        thread.start()
        try:
            yield live
        finally:
            over.set()
            thread.join()


def busy(standin: Standin, ranks: Sequence[int], over: threading.Event) -> None:
    noise, began = random.Random(1), time.monotonic()
    while not over.wait(1.0):
        passed_s = time.monotonic() - began
        saves = passed_s % 120 < 8
        for gpu, pid in enumerate(ranks):
            hot = gpu == 3 and passed_s > HISTORY_S / 2
            load = noise.gauss(14, 4) if saves else noise.gauss(84 if hot else 95, 3)
            held = min(15_700, 9_000 + 120 * passed_s)
            standin.set(
                gpu, write=gpu == len(ranks) - 1, processes=f"{pid}:{held:.0f}", memory_used_mib=round(held + 100),
                utilization_percent=round(min(100.0, load)), temperature_c=88 if hot else 70 + gpu,
                clock_sm_mhz=1290 if hot else 1830, reasons="0x24" if hot else "0x4",
                power_w=round(noise.gauss(38 if saves else 70, 1), 1),
            )  # fmt: skip


def long_enough(view: View) -> bool:
    """Whether the graphs of the GPUs have something to show."""
    seen = view.gpu_history.recent.values()
    return max((one.times[-1] - one.times[0] for one in seen), default=0.0) >= HISTORY_S


def photograph(
    run: RunDir,
    pictures: Sequence[Picture],
    folder: Path,
    ready: Callable[[View], object] = lambda view: True,
) -> None:
    """`ready` says whether everything is there that is to be seen."""
    for picture in pictures:
        feed = Neutral(run)
        feed.start()
        app = Bitwatch(feed, commands, load()[0], picture.theme)

        async def settled(pilot: Pilot[None], feed: Feed = feed) -> None:
            live, began = run.lock_is_held(), time.monotonic()
            while (
                feed.latest is None
                or feed.latest.filled < 1
                or not ready(feed.latest.view)
                or (live and time.monotonic() - began < SETTLE_S)
            ):
                await pilot.pause(0.1)

        write(asyncio.run(taken(app, picture, settled)), picture, folder)
        feed.close()


async def taken(app: Bitwatch, picture: Picture, settle: Callable[[Pilot[None]], Any]) -> str:
    async with app.run_test(size=picture.size) as pilot:
        await settle(pilot)
        await pilot.press(*picture.keys)
        await pilot.pause(READ_S)
        return app.export_screenshot(title="bitwatch")


def write(drawn: str, picture: Picture, folder: Path) -> None:
    (folder / f"{picture.name}.svg").write_text(aligned(drawn))
    print(folder / f"{picture.name}.svg")


if __name__ == "__main__":
    main()
