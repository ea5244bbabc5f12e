"""The pictures of the README and of docs/, from real recordings.

    python bench/screenshots.py [--run DIRECTORY] [--folder docs] [--steps N]

Without --run the demo is launched, photographed live at step N, and stopped; the replay is that
of its record. The picture of GPUs is of a real supervisor and sensor with a library in NVML's
place, over processes that sleep: its GPUs are called stand-ins on it. The paths of the machine they
were taken on are shown as a user's would be.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import scene
from textual.pilot import Pilot

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bitwatch import listing
from bitwatch.attach import commands
from bitwatch.attach.follow import Feed, Snapshot
from bitwatch.attach.replay import Refusing, Replay
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
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


PICTURES = (
    Picture("dashboard"),
    Picture("dashboard-light", theme="light"),
    Picture("dashboard-80x24", (80, 24)),
    Picture("dashboard-60x15", (60, 15)),
    Picture("why", keys=("w",)),
    Picture("relaunch", keys=("R",)),
    Picture("curves", keys=("3", "3", "m", *["left"] * 12)),
    Picture("processes", keys=("4", "4")),
    Picture("logs", keys=("l",)),
    Picture("alerts", keys=("a",)),
    Picture("help", keys=("question_mark",)),
    Picture("themes", keys=("T", "down")),
)
GPUS = Picture("gpus", (120, 30), keys=("1", "1"))
REPLAY = Picture("replay", (120, 30))
SAMPLES = 25
SETTLE_S = 6.0  # for the short histories that only a screen itself collects
TEXT = re.compile(r'<text ([^>]*?)x="([\d.]+)"([^>]*?)textLength="([\d.]+)"([^>]*)>([^<]*)</text>')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--folder", type=Path, default=ROOT / "docs")
    parser.add_argument("--steps", type=int, default=160)
    arguments = parser.parse_args()
    os.environ["COLORTERM"] = "truecolor"
    arguments.folder.mkdir(exist_ok=True)
    if arguments.run:
        photograph(RunDir(arguments.run.absolute()), PICTURES, arguments.folder)
        return
    with tempfile.TemporaryDirectory() as home:
        os.environ["BITWATCH_HOME"] = home
        demo(Path(home), arguments.steps, arguments.folder)
    with tempfile.TemporaryDirectory() as home:
        os.environ["BITWATCH_HOME"] = home
        gpus(Path(home), arguments.folder)


def demo(home: Path, steps: int, folder: Path) -> None:
    """The demo while it trains, and then again from its record."""
    subprocess.run([BITWATCH, "run", "--detach"], check=True)
    (row,) = listing.rows(home)
    try:
        while row.step < steps:
            time.sleep(1)
            (row,) = listing.rows(home)
            if row.state in ("failed", "lost"):
                raise SystemExit(f"the demo has ended: {row.state}: {row.note}")
        photograph(RunDir(Path(row.dir)), PICTURES, folder)
    finally:
        subprocess.run([BITWATCH, "stop", row.run], check=False)
    replay = Replay(RunDir(Path(row.dir)), 60.0)
    app = Bitwatch(
        replay,
        Refusing(),
        load()[0],
        dashboard=lambda run, host, first: ReplayDashboard(replay, host, first),
    )

    async def halfway(pilot: Pilot[None]) -> None:
        replay.start()
        replay.go_on()
        replay.wish(lambda playing: playing.leap(0.6))
        replay.wish(lambda playing: playing.pause())
        await pilot.pause(SETTLE_S / 3)

    write(asyncio.run(taken(app, REPLAY, halfway)), REPLAY, folder)
    replay.close()


def gpus(home: Path, folder: Path) -> None:
    """A real supervisor and a real sensor over processes that only sleep, and GPUs that are not
    there."""
    try:
        standin = Standin(home / "nvml", scene.RANKS, name="NVIDIA L4 stand-in")
    except NoCompiler as error:
        print(f"no picture of GPUs: {error}")
        return
    with scene.scene(home, 5_000, 40, standin.environment) as live:
        follower = Follower(live.run)
        follower.poll()
        told = follower.state.journal.processes.values()
        for start in told:
            if start.role == "rank" and start.rank is not None:
                standin.set(start.rank, processes=f"{start.pid}:15700")
        photograph(live.run, (GPUS,), folder, sampled)


def sampled(view: View) -> bool:
    """Whether the graphs of the GPUs have something to show."""
    seen = view.gpu_history.recent.values()
    return max((len(recent.times) for recent in seen), default=0) >= SAMPLES


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
        await pilot.pause(0.5)
        return app.export_screenshot(title="bitwatch")


def write(drawn: str, picture: Picture, folder: Path) -> None:
    (folder / f"{picture.name}.svg").write_text(neutral_text(aligned(drawn)))
    print(folder / f"{picture.name}.svg")


class Neutral(Feed):
    """A feed whose pictures name no folder of the machine that they were taken on."""

    def listen(self, told: Callable[[Snapshot], object]) -> None:
        super().listen(lambda snapshot: told(neutral(snapshot, self.run)))


def neutral(snapshot: Snapshot, run: RunDir) -> Snapshot:
    seen: View = snapshot.view
    rows = [
        msgspec.structs.replace(row, command=_neutral(row.command, run)) for row in seen.processes
    ]
    return msgspec.structs.replace(snapshot, view=msgspec.structs.replace(seen, processes=rows))


def _neutral(command: str, run: RunDir) -> str:
    command = command.replace(str(run.path.parent), "~/.local/state/bitwatch/runs")
    return command.replace(str(ROOT), "~/bitwatch")


def neutral_text(picture: str) -> str:
    """Without the folders of the machine that stand anywhere else."""
    home = str(Path.home())
    return picture.replace(str(ROOT), "~/bitwatch").replace(home, "~") if home != "/" else picture


def aligned(picture: str) -> str:
    """Not every viewer keeps the spaces at the ends of a text: the place says them instead."""

    def place(match: re.Match[str]) -> str:
        before, x, between, length, after, escaped = match.groups()
        text = html.unescape(escaped).replace("\xa0", " ")
        if not text.strip():
            return ""
        cell = float(length) / len(text)
        start = float(x) + cell * (len(text) - len(text.lstrip()))
        text = text.strip()
        shown = html.escape(text).replace(" ", "&#160;")
        return (
            f'<text {before}x="{start:.1f}"{between}textLength="{cell * len(text):.1f}"{after}>'
            f"{shown}</text>"
        )

    return TEXT.sub(place, picture)


if __name__ == "__main__":
    main()
