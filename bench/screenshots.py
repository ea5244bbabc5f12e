"""The pictures of the README, from a real run of the demo.

    python bench/screenshots.py [--run DIRECTORY] [--folder docs] [--steps N]

Without --run the demo is launched, photographed live at step N, and stopped. The paths of the
machine it ran on are shown as a user's would be.
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
from collections.abc import Callable
from pathlib import Path

import msgspec

from bitwatch import listing
from bitwatch.attach import commands
from bitwatch.attach.follow import Feed, Snapshot
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.themes import load

ROOT = Path(__file__).resolve().parent.parent
BITWATCH = str(Path(sys.executable).parent / "bitwatch")
PICTURES = (
    ("dashboard", (120, 38), "dark", ()),
    ("dashboard-light", (120, 38), "light", ()),
    ("dashboard-80x24", (80, 24), "dark", ()),
    ("why", (120, 38), "dark", ("w",)),
    ("relaunch", (120, 38), "dark", ("R",)),
)
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
        photograph(RunDir(arguments.run.absolute()), arguments.folder)
        return
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "BITWATCH_HOME": home}
        subprocess.run([BITWATCH, "run", "--detach"], env=environment, check=True)
        (row,) = listing.rows(Path(home))
        try:
            while row.step < arguments.steps:
                time.sleep(1)
                (row,) = listing.rows(Path(home))
                if row.state in ("failed", "lost"):
                    raise SystemExit(f"the demo has ended: {row.state}: {row.note}")
            photograph(RunDir(Path(row.dir)), arguments.folder)
        finally:
            subprocess.run([BITWATCH, "stop", row.run, "--now"], env=environment, check=False)


def photograph(run: RunDir, folder: Path) -> None:
    for name, size, theme, keys in PICTURES:
        picture = asyncio.run(taken(run, size, theme, keys))
        (folder / f"{name}.svg").write_text(picture)
        print(folder / f"{name}.svg")


async def taken(run: RunDir, size: tuple[int, int], theme: str, keys: tuple[str, ...]) -> str:
    feed = Neutral(run)
    feed.start()
    app = Bitwatch(feed, commands, load()[0], theme)
    async with app.run_test(size=size) as pilot:
        live = run.lock_is_held()
        began = time.monotonic()
        while (
            feed.latest is None
            or feed.latest.filled < 1
            or (live and time.monotonic() - began < SETTLE_S)
        ):
            await pilot.pause(0.1)
        await pilot.press(*keys)
        await pilot.pause(0.3)
        picture = app.export_screenshot(title="bitwatch")
    feed.close()
    return aligned(picture)


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
