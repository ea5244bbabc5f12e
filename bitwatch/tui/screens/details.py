"""Everything about one process: asked for in the background, for it may take its time."""

from __future__ import annotations

import shlex
import threading
import time

from textual.content import Content
from textual.message import Message

from bitwatch.attach.details import About, about
from bitwatch.text import clock, duration, size
from bitwatch.tui import keys
from bitwatch.tui.draw import plain
from bitwatch.tui.rows import Row
from bitwatch.tui.screens.dialog import Block, Page

WIDTH = 14
COMMAND_MOST = 3000  # characters; more is a program that was handed over, not a command
ASKING = "asking /proc …"
OUTSIDE = "Only the driver of the GPU knows it: nothing of it can be seen from here."
ENDED = "It has ended."
WAITS = (
    "It has ended, or it waits in the kernel (D): whoever asks more of it would wait with it, "
    "until what it waits for answers."
)


class Details(Page):
    BINDINGS = [keys.closing("details")]

    class Told(Message):
        def __init__(self, about: About | None, trouble: str = "") -> None:
            super().__init__()
            self.about = about
            self.trouble = trouble

    def __init__(self, row: Row) -> None:
        process = row.process
        first = said(ASKING, "$quiet") if process.starttime else said(OUTSIDE, "bold $warning")
        super().__init__(f"Process {process.pid}", [*seen(row), first])
        self._row = row

    def on_mount(self) -> None:
        if self._row.process.starttime:
            threading.Thread(target=self._ask, name="details", daemon=True).start()

    def _ask(self) -> None:
        process = self._row.process
        try:
            told = self.Told(about(process.pid, process.starttime))
        except Exception as error:  # whatever it is: a sentence on the screen
            told = self.Told(None, f"nothing can be known of it: {error}")
        self.post_message(told)

    async def on_details_told(self, message: Told) -> None:
        if message.about is not None:
            blocks = [*seen(self._row), *text(message.about, self._row)]
        else:
            waits = self._row.process.state == "D"
            words = plain(message.trouble) or (WAITS if waits else ENDED)
            told = plain(self._row.process.command[:COMMAND_MOST])
            blocks = [*seen(self._row), said(words, "bold $warning"), said(told, "$quiet")]
        await self.replace(blocks)


def said(words: str, style: str) -> Block:
    return Block(Content.styled(f"\n{words}", style))


def seen(row: Row) -> list[Block]:
    """What the panel knows already."""
    blocks = [Block(Content.styled(row.role, "bold $foreground"))]
    if row.barred:
        blocks.append(
            Block(Content.styled(f"cannot be signalled: {plain(row.barred)}", "$warning"))
        )
    if row.other and (row.other.proof or row.other.why):
        proof = f"{plain(row.other.proof)}: " if row.other.proof else ""
        blocks.append(Block(Content.styled(proof + plain(row.other.why), "$quiet")))
    return blocks


def text(about: About, row: Row) -> list[Block]:
    """What is not known is not mentioned."""
    pairs = [
        ("state", about.state_words),
        ("waits in", about.wchan),
        ("user", about.user),
        ("parent", _parent(about)),
        ("session", _session(about)),
        ("started", _started(about)),
        ("run", _run(about)),
        ("run folder", about.run_directory),
        ("works in", about.directory),
        ("threads", _number(about.threads)),
        ("open files", _number(about.open_files)),
        ("open GPUs", ", ".join(about.gpu_files) if about.gpu_files else None),
        ("GPU memory", _mib(row.gpu_mib)),
        ("processor", _processor(about)),
        ("memory", _memory(("resident", about.rss_mib))),
        ("", _memory(("its alone", about.unique_mib), ("its share", about.proportional_mib))),
        ("in swap", _mib(about.swap_mib or None)),
        ("disk", _disk(about)),
    ]
    blocks = [Block(Content(""))]
    for name, value in pairs:
        if value:
            words = Content.assemble((f"{name:<{WIDTH}}", "$quiet"), (plain(value), "$foreground"))
            blocks.append(Block(words))
    # Last, for it may be of any length.
    blocks.append(Block(Content.styled("command", "$quiet")))
    blocks.append(Block(Content(command(about.command or [])), 2))
    return blocks


def command(words: list[str]) -> str:
    """Its words, quoted where one holds spaces or signs."""
    line = shlex.join(words) if words else "not to be read"
    if len(line) > COMMAND_MOST:
        more = len(line) - COMMAND_MOST
        return f"{plain(line[:COMMAND_MOST])} … and {more:,} more characters"
    return plain(line)


def _parent(about: About) -> str | None:
    if about.parent_pid is None:
        return None
    return f"{about.parent_pid} {about.parent_name or ''}".rstrip()


def _session(about: About) -> str | None:
    if about.session is None:
        return None
    return f"{about.session}, its own" if about.session == about.pid else str(about.session)


def _started(about: About) -> str | None:
    if about.created is None:
        return None
    return f"{clock(about.created)}, {duration(max(0.0, time.time() - about.created))} ago"


def _run(about: About) -> str | None:
    if not about.run:
        return None
    return f"{about.run}, attempt {about.attempt}" if about.attempt else about.run


def _number(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _mib(value: float | None) -> str | None:
    return None if value is None else size(value * 2**20)


def _processor(about: About) -> str | None:
    if about.user_s is None and about.system_s is None:
        return None
    return f"{duration(about.user_s)} in programs, {duration(about.system_s)} in the kernel"


def _memory(*named: tuple[str, float | None]) -> str | None:
    known = [f"{_mib(mib)} {name}" for name, mib in named if mib is not None]
    return ", ".join(known) or None


def _disk(about: About) -> str | None:
    if about.read_bytes is None and about.written_bytes is None:
        return None
    return f"{size(about.read_bytes)} read, {size(about.written_bytes)} written"
