"""A list to choose from, for all pages that have one."""

from __future__ import annotations

import contextlib

from textual.widgets import OptionList


class Options(OptionList):
    """Textual moves by a page through lines that it counts only when it draws: before that, and
    in a terminal of no height, there is nowhere to go."""

    def action_page_up(self) -> None:
        with contextlib.suppress(KeyError):
            super().action_page_up()

    def action_page_down(self) -> None:
        with contextlib.suppress(KeyError):
            super().action_page_down()
