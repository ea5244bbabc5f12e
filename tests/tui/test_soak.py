"""Whatever is pressed, clicked and resized, in any order, while the run goes on: nothing raises,
and nothing is signalled that was not on the screen."""

from __future__ import annotations

import inspect
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual import events as textual_events
from textual.pilot import Pilot

from bitwatch.attach.others import Other
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import View
from bitwatch.tui import keys
from bitwatch.tui.app import Bitwatch
from bitwatch.tui.themes import load
from tests.attach.logs_made import clock
from tests.tui import alarms, recorded, views
from tests.tui.beside import all_kinds
from tests.tui.test_compare import other

AT_ONCE = 20  # events between two looks
NAMED = ("enter", "escape", "tab", "shift+tab", "space", "backspace", "delete", "home", "end",
         "pageup", "pagedown", "up", "down", "left", "right", "shift+left", "shift+right",
         "ctrl+c", "ctrl+p", "f1", "f3", "f4", "f5", "f6", "f9")  # fmt: skip
OPENERS = (("a",), ("a", "enter"), ("l",), ("o",), ("w",), ("s",), ("T",), ("question_mark",),
           ("1", "1"), ("3", "3"), ("4", "4"), ("4", "enter"), ("ctrl+p",))  # fmt: skip
PAGES = {"AlertsPage", "AlertInFull", "Logs", "Compare", "Why", "StacksPage", "Themes", "Help",
         "Details", "Palette"}  # fmt: skip
# Wide and tall, but never both at once: painting that many cells is most of what this would cost.
SIZES = ((60, 15), (80, 24), (120, 40), (200, 60), (20, 5), (300, 20), (1, 1))


class Soaked(Bitwatch):
    """Leaving is counted, and not done."""

    CSS_PATH = Path(inspect.getfile(Bitwatch)).with_name("bitwatch.tcss")
    left = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reached: set[str] = set()  # pages

    def detach(self) -> None:
        self.left += 1


def every_key() -> list[str]:
    """All that are bound anywhere, all letters and digits, and what else a keyboard has."""
    bound = [name for key in keys.KEYS for name in key.keys.split(",")]
    letters = [
        *string.ascii_letters,
        *string.digits,
        "full_stop",
        "comma",
        "slash",
        "plus",
        "minus",
    ]
    return sorted({*bound, *letters, *NAMED})


def key(name: str) -> textual_events.Key:
    shown = {"space": " ", "slash": "/", "full_stop": ".", "comma": ",", "plus": "+", "minus": "-"}
    return textual_events.Key(name, shown.get(name, name if len(name) == 1 else None))


def mouse(chance: random.Random, app: Bitwatch) -> list[textual_events.MouseEvent]:
    """A click, a double click, a drag, a move or a turn of the wheel, somewhere."""
    width, height = app.size
    x, y = chance.randrange(max(1, width)), chance.randrange(max(1, height))
    what = chance.choice(["click", "double", "drag", "move", "wheel"])

    def one(kind: type[textual_events.MouseEvent], x: int, y: int, button: int = 1):
        return kind(None, x, y, 0, 0, button, False, False, False, screen_x=x, screen_y=y)

    press = [one(textual_events.MouseDown, x, y), one(textual_events.MouseUp, x, y)]
    if what == "click":
        return press
    if what == "double":
        return press * 2
    if what == "drag":
        to = chance.randrange(max(1, width))
        return [press[0], one(textual_events.MouseMove, to, y), one(textual_events.MouseUp, to, y)]
    if what == "move":
        return [one(textual_events.MouseMove, x, y, 0)]
    turn = chance.choice([textual_events.MouseScrollDown, textual_events.MouseScrollUp])
    return [one(turn, x, y, 0)]


def pictures(run: RunDir, chance: random.Random) -> Iterator[tuple[View, list[Other]]]:
    """A run that goes on, comes to its end, and is begun anew; processes come, go and move."""
    live = recorded.seen(run)
    kinds = [live, views.on_l4s(), views.with_leftovers(), views.on_cpu(), views.watched(),
             views.failed(), views.preparing(), views.ended(), alarms.view()]  # fmt: skip
    while True:
        seen = chance.choice(kinds)
        rows = chance.sample(seen.processes, chance.randint(0, len(seen.processes)))
        yield msgspec.structs.replace(seen, processes=rows), chance.sample(all_kinds(), 4)


def home(folder: Path) -> RunDir:
    """A run with logs, among others that it can be compared with."""
    run = recorded.make(folder)
    for name in ("wide", "deep"):
        other(folder, name, [1 / step for step in range(1, 200)])
    run.logs(1).mkdir(parents=True, exist_ok=True)
    for rank in (0, 1):
        said = ("INFO - step", "WARNING - slow step", "INFO - step", "ERROR - lost step")
        lines = [f"{clock(n)} - {said[n % 4]} {n} {'x' * (n % 150)}" for n in range(300)]
        (run.logs(1) / f"rank{rank}.log").write_text("\n".join(lines))  # the last has no end
    return run


async def soak(run: RunDir, events_: int, seed: int) -> Soaked:
    chance = random.Random(seed)
    names = every_key()
    pieces = pictures(run, chance)
    source = recorded.Fixed(run, recorded.seen(run))
    app = Soaked(source, recorded.Remembered(), load()[0])
    shown: set[tuple[int, int]] = set()
    async with app.run_test(size=(120, 40)) as pilot:
        done = 0
        while done < events_:
            await some(app, pilot, chance, names)
            done += AT_ONCE
            app.reached.add(type(app.screen).__name__)
            view, others = next(pieces)
            shown |= {row.key for row in view.processes} | {o.key for o in others}
            shown |= {(left.pid, left.starttime) for left in view.leftovers}
            source.give(view, others=others)
            await pilot.pause()
            assert app.crash is None and app._exception is None
    assert isinstance(app.commands, recorded.Remembered)
    for _, targets in app.commands.signals:
        assert targets and set(targets) <= shown
    return app


async def some(app: Soaked, pilot: Pilot[None], chance: random.Random, names: list[str]) -> None:
    driver = app._driver
    assert driver is not None
    if chance.random() < 0.1:
        await pilot.resize_terminal(*chance.choice(SIZES))
    if chance.random() < 0.2:
        for name in ("escape", "escape", *chance.choice(OPENERS)):
            driver.process_message(key(name))
            await pilot.pause()
        app.reached.add(type(app.screen).__name__)
    for _ in range(AT_ONCE):
        if chance.random() < 0.3:
            for event in mouse(chance, app):
                driver.process_message(event)
        else:
            driver.process_message(key(chance.choice(names)))


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 8))]
)
async def test_ten_thousand_random_keys_clicks_and_resizes_raise_nothing_and_reach_every_page(
    tmp_path: Path, seed: int
) -> None:
    app = await soak(home(tmp_path), 10_000, seed)
    assert app.left > 0
    assert app.reached >= PAGES
