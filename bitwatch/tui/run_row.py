"""A run in one line of a list, for a person who looks for one. Pure."""

from __future__ import annotations

from textual.content import Content

from bitwatch.attach.choose import Choice
from bitwatch.record.view import END_STATES
from bitwatch.text import duration, number
from bitwatch.tui.draw import clip, fit, plain
from bitwatch.tui.widgets.header import STATE_ROLES, STATE_SHAPES

STATE, STEP, LOSS, AGE = 12, 17, 13, 15  # cells of the columns
NAME_LEAST = 24  # "2026-11-29-", a name, "-7f3a"
COLOURS = {"fine": "$fine", "warning": "$warning", "bad": "$bad", "accent": "$accent"}


def row(choice: Choice, width: int) -> Content:
    """Its name is what it is known by: where there is little room the loss goes first, then the
    step, then its age."""
    colour = COLOURS.get(STATE_ROLES[choice.state], "$quiet")
    step = f"{choice.step:,}" if choice.step else ""
    if choice.steps:
        step = f"{choice.step:,}/{choice.steps:,}"
    loss = f"loss {number(choice.loss, 4)}" if choice.loss is not None else ""
    ago = f"{duration(choice.age_s)} ago" if choice.age_s is not None else ""
    left = width - STATE - NAME_LEAST
    ago, left = (f"{ago:>{AGE}}", left - AGE) if left >= AGE else ("", left)
    step, left = (f"{step:>{STEP}}", left - STEP) if left >= STEP else ("", left)
    loss, left = (f"{loss:>{LOSS}}", left - LOSS) if left >= LOSS else ("", left)
    name = max(1, NAME_LEAST + left)
    over = choice.state in END_STATES
    return Content.assemble(
        (f"{STATE_SHAPES.get(choice.state, '●')} {choice.state:<10}", colour),
        (fit(clip(plain(choice.id), name), name), "$quiet" if over else "bold $foreground"),
        (f"{step}{loss}", "$foreground"),
        (ago, "$quiet"),
    )
