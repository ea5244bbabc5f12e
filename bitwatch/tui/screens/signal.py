"""The question before a signal: to whom, what that means, and which. It is about the identities
that were chosen when it opened; what has become of their rows meanwhile does not matter."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from bitwatch.attach.signals import SIGNALS
from bitwatch.text import counted
from bitwatch.tui import keys
from bitwatch.tui.screens.over import Over
from bitwatch.tui.signal_words import words
from bitwatch.tui.targets import Target, name_cells
from bitwatch.tui.widgets.options import Options

CANCEL = "cancel"
LISTED = 200  # processes that are named; a person does not read more
NAME_CELLS = 10


class SignalDialog(Over[str | None]):
    """Dismissed with the name of the signal, or None. Cancel is where the cursor is."""

    BINDINGS = keys.bindings("dialog", "choice")
    AUTO_FOCUS = "#signals"

    def __init__(self, targets: Sequence[Target], *, training: bool = False) -> None:
        """`training`: the ranks take steps, and no stop has been asked for."""
        super().__init__(classes="page")
        self._training = training
        self._meant = [target for target in targets if not target.barred]
        self._barred = [target for target in targets if target.barred]

    def compose(self) -> ComposeResult:
        number = len(self._meant)
        with Vertical(classes="dialog signal") as dialog:
            title = f"Signal {counted(number, 'process')}"
            if self._barred:
                title += f", {len(self._barred)} left alone"
            dialog.border_title = Content(title if number else "Nothing here can be signalled")
            cancels = keys.name("cancel")
            dialog.border_subtitle = Content(
                f"enter chooses · {cancels} cancels · tab: the processes"
            )
            with VerticalScroll(id="targets"):
                for text, indent in self._text():
                    line = Static(text, classes="" if indent == 2 else "line")
                    line.styles.padding = (0, 0, 0, indent)
                    yield line
            yield Options(*self._options(), id="signals", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0

    def _options(self) -> list[Option]:
        options = [Option(Content.styled("Cancel", "bold"), id=CANCEL)]
        for name, _ in SIGNALS if self._meant else ():
            does = words(name, self._meant, training=self._training)
            told = f"\n{'':{NAME_CELLS}}".join(does)
            options.append(
                Option(Content.assemble((f"{name:<{NAME_CELLS}}", "bold"), told), id=name)
            )
        return options

    def _text(self) -> list[tuple[Content, int]]:
        """Those for whom it means the same together."""
        groups: dict[str, list[Target]] = {}
        for target in self._meant:
            groups.setdefault(target.means, []).append(target)
        lines: list[tuple[Content, int]] = []
        cells = name_cells(self._meant[:LISTED])
        left = LISTED
        for means, targets in groups.items():
            for target in targets[: max(0, left)]:
                lines.append((_named(target, cells), 0))
            left -= len(targets)
            lines.append((Content.styled(means, "$warning"), 2))
        if left < 0:
            lines.append((Content(f"and {-left} more"), 0))
        if self._barred:
            lines.append((Content.styled("Left alone", "bold $quiet"), 0))
        for target in self._barred[:LISTED]:
            barred = (target.name, "$quiet"), (f": {target.barred}", "$foreground")
            lines.append((Content.assemble(*barred), 2))
        return lines

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(None if event.option_id == CANCEL else event.option_id)

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if by > 0 else options.action_cursor_up()

    def action_cancel(self) -> None:
        self.dismiss(None)


def _named(target: Target, cells: int) -> Content:
    name = f"{target.name:<{cells}}"
    return Content.assemble((name, "bold $foreground"), (f"  {target.command}", "$quiet"))
