"""Where every rank is: asked in the background, for they may take their time to answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

from textual.content import Content
from textual.message import Message

from bitwatch.attach.stacks import RankStacks, Stacks, look
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.sense.stacks import Frame, Thread
from bitwatch.text import clock, counted, duration
from bitwatch.tui import keys
from bitwatch.tui.draw import plain
from bitwatch.tui.screens.dialog import Block, Page

ASKING = "asking the ranks …"
FRAMES = 14  # of the main thread
OTHERS = 6  # threads beside it
OURS = "/trainer/"
COLOURS = {
    "collective": "$accent",
    "busy": "$fine",
    "compile": "$fine",
    "data": "bold $warning",
    "ended": "bold $bad",
}


class StacksPage(Page):
    BINDINGS = [*keys.bindings("stacks"), keys.closing("stacks")]

    class Told(Message):
        def __init__(self, stacks: Stacks | None, trouble: str = "") -> None:
            super().__init__()
            self.stacks = stacks
            self.trouble = trouble

    def __init__(self, run: RunDir, view: Callable[[], View]) -> None:
        """`view` gives the picture of the moment: who asks again asks about what is then."""
        super().__init__("Stacks", [Block(Content.styled(ASKING, "$quiet"))])
        self._run = run
        self._view = view
        self._asking = False

    def on_mount(self) -> None:
        self.query_one(".dialog").border_subtitle = Content(
            f"{keys.name('stacks-again')} asks again · {keys.name('page-close')} closes"
        )
        self.action_again()

    def action_again(self) -> None:
        if not self._asking:
            self._asking = True
            view = self._view()
            threading.Thread(target=self._ask, args=(view,), name="stacks", daemon=True).start()

    def _ask(self, view: View) -> None:
        try:
            told = self.Told(look(self._run, view))
        except Exception as error:  # whatever it is: a sentence on the screen
            told = self.Told(None, f"the ranks cannot be asked: {error}")
        self.post_message(told)

    async def on_stacks_page_told(self, message: Told) -> None:
        self._asking = False
        if message.stacks is not None:
            blocks = text(message.stacks)
        else:
            blocks = [Block(Content.styled(plain(message.trouble), "bold $warning"))]
        await self.replace(blocks)


def text(stacks: Stacks) -> list[Block]:
    blocks = [
        Block(Content.styled(plain(stacks.text), "bold $foreground")),
        Block(Content.styled(f"asked at {clock(stacks.t)}", "$quiet")),
    ]
    for rank in stacks.ranks:
        blocks.append(Block(Content("")))
        blocks += _rank(rank)
    return blocks


def _rank(rank: RankStacks) -> list[Block]:
    wait = rank.wait
    words = [wait.kind, plain(wait.where)]
    if wait.since_s is not None:
        words.append(f"no step for {duration(wait.since_s)}")
    line = Content.assemble(
        (f"rank {wait.rank}  ", "bold $foreground"),
        (" · ".join(word for word in words if word), COLOURS.get(wait.kind, "$warning")),
    )
    facts = [f"pid {rank.pid}" if rank.pid else "", rank.state_words]
    facts += [f"wchan {plain(rank.wchan)}" if rank.wchan else "", plain(rank.why)]
    blocks = [
        Block(line),
        Block(Content.styled(" · ".join(fact for fact in facts if fact), "$quiet"), 2),
    ]
    if rank.threads:
        main, others = rank.threads[0], rank.threads[1:]
        blocks += [_frame(frame) for frame in main.frames[:FRAMES]]
        if len(main.frames) > FRAMES:
            blocks.append(_quiet(f"and {len(main.frames) - FRAMES} more frames", 4))
        if others:
            blocks.append(_quiet(f"{counted(len(others), 'more thread')}:", 2))
            blocks += [_folded(thread) for thread in others[:OTHERS]]
        if len(others) > OTHERS:
            blocks.append(_quiet(f"and {len(others) - OTHERS} more", 4))
    return blocks


def _frame(frame: Frame) -> Block:
    """Ours stand out: what lies between them is the libraries'."""
    style = "bold $foreground" if OURS in frame.file else "$quiet"
    return Block(Content.styled(_words(frame), style), 4, one_line=True)


def _folded(thread: Thread) -> Block:
    """Where it is, and what of it was not a library's to begin."""
    ours = next((frame for frame in thread.frames if OURS in frame.file), None)
    words = _words(thread.frames[0])
    if ours is not None and ours is not thread.frames[0]:
        words += f" < {_words(ours)}"
    return _quiet(words, 4)


def _words(frame: Frame) -> str:
    folder = "/".join(frame.file.split("/")[-3:])
    return plain(f"{frame.function}  {folder}:{frame.line}")


def _quiet(words: str, indent: int) -> Block:
    return Block(Content.styled(words, "$quiet"), indent, one_line=True)
