"""Pictures that name nothing of the machine that they were taken on: its folders are shown as a
user's would be."""

from __future__ import annotations

import html
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from bitwatch.attach.follow import Feed
from bitwatch.attach.telling import Snapshot
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View

ROOT = Path(__file__).resolve().parent.parent
TEXT = re.compile(r'<text ([^>]*?)x="([\d.]+)"([^>]*?)textLength="([\d.]+)"([^>]*)>([^<]*)</text>')


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
    return neutral_text(command)


def neutral_text(text: str) -> str:
    """Without the folders and the name of the machine that stand anywhere else."""
    home = str(Path.home())
    for environment in (Path(sys.prefix).resolve(), Path(sys.prefix)):
        text = text.replace(str(environment), f"{ROOT}/.venv")
    text = text.replace(str(ROOT), "~/bitwatch")
    text = text.replace(socket.gethostname(), "node")
    return text.replace(home, "~") if home != "/" else text


def aligned(picture: str) -> str:
    """Not every viewer keeps the spaces at the ends of a text: the place says them instead. What
    stands there is made neutral."""

    def place(match: re.Match[str]) -> str:
        before, x, between, length, after, escaped = match.groups()
        text = html.unescape(escaped).replace("\xa0", " ")
        if not text.strip():
            return ""
        cell = float(length) / len(text)
        start = float(x) + cell * (len(text) - len(text.lstrip()))
        text = neutral_text(text.strip())
        shown = html.escape(text).replace(" ", "&#160;")
        return (
            f'<text {before}x="{start:.1f}"{between}textLength="{cell * len(text):.1f}"{after}>'
            f"{shown}</text>"
        )

    return TEXT.sub(place, picture)
