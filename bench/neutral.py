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
# A dot of a curve, words with single spaces between them, or lines and signs.
PIECES = re.compile(
    r"[\u2800-\u28ff]|[!-~\u00a1-\u02ff]+(?: [!-~\u00a1-\u02ff]+)*|[^ \u2800-\u28ff!-~]+"
)


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
    """With each word in its column, and each dot of a curve. Not every viewer keeps spaces at the
    ends of a text or knows how long one is to be, and fonts draw Braille as wide as they like:
    the place says it instead. What stands there is made neutral."""

    def place(match: re.Match[str]) -> str:
        before, x, between, length, after, escaped = match.groups()
        text = html.unescape(escaped).replace("\xa0", " ")
        start, cell = float(x), float(length) / max(1, len(text))
        placed = []
        for piece in PIECES.finditer(neutral_text(text)):
            shown = html.escape(piece[0]).replace(" ", "&#160;")
            placed.append(
                f'<text {before}x="{start + cell * piece.start():.1f}"{between}'
                f'textLength="{cell * len(piece[0]):.1f}"{after}>{shown}</text>'
            )
        return "".join(placed)

    return TEXT.sub(place, picture)
