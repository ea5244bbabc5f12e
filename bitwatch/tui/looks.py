"""How the application looks and what its keys are: themes, the user's keys, help, the palette,
the way to the shell and back, and what of it the next attach begins with. It knows nothing of
runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from textual import events, on
from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.errors import NoWidget
from textual.screen import Screen
from textual.theme import Theme

from bitwatch import config as configuration
from bitwatch.tui import keys, terminal
from bitwatch.tui.actions import actions
from bitwatch.tui.kept import Keeping, Kept, Value
from bitwatch.tui.themes import DEFAULT, load, variables_of
from bitwatch.tui.where import scopes


class Wishes(NamedTuple):
    """What the user's file says of the screen, and how that was left last. `theme` is empty where
    the file names none; `keys` are Textual's names by id."""

    theme: str = ""
    keys: Mapping[str, str] = {}
    keeping: Keeping | None = None


class Looks(App[None]):
    """The part of the application that is about the screen itself."""

    COMMAND_PALETTE_BINDING = keys.UNBOUND  # the table has it
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, themes: Sequence[Theme], theme: str, wishes: Wishes) -> None:
        super().__init__()
        keys.use(wishes.keys)
        self.set_keymap(keys.given())
        self.wishes = wishes
        self.chosen_theme = wishes.keeping.before.theme if wishes.keeping else ""
        for name in list(self.available_themes):
            if name != self.theme:
                self.unregister_theme(name)
        before = self.theme
        for each in themes:
            self.register_theme(each)
        self.theme = theme or DEFAULT
        if before not in {each.name for each in themes}:
            self.unregister_theme(before)

    def on_unmount(self) -> None:
        keys.use({})

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variables_of(self.current_theme)

    def complain(self, about_themes: Sequence[str]) -> None:
        """In one toast: the page of themes has every sentence."""
        key = keys.name("theme")
        words = f"{len(about_themes)} themes are not right: {key} says why"
        if about_themes:
            said = words if len(about_themes) > 1 else about_themes[0]
            self.notify(said, severity="warning", timeout=8, markup=False)

    # -- the mouse --------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """What has been taken away stands on the screen until the next layout. Textual asks it for
        the place of its parent, to select text there, and it has none any more."""
        if isinstance(event, events.MouseDown | events.MouseMove) and not event.is_forwarded:
            with contextlib.suppress(NoWidget):
                widget, _ = self.screen.get_widget_at(event.x, event.y)
                if widget.parent is None:
                    widget.suppress_click()  # nor is its release one on what was pressed before
                    return
        await super().on_event(event)

    # -- the shell below --------------------------------------------------------------------

    def action_suspend_process(self) -> None:
        if self._driver is None or not self._driver.can_suspend:
            return
        if not terminal.suspend():
            words = f"no shell lies below to bring the screen back; {keys.name('detach')} leaves it"
            self.notify(words, timeout=6, markup=False)

    @on(Driver.SignalResume)
    def _paint_anew(self) -> None:
        """The shell has had the terminal: nothing that was painted is there any more."""
        self.refresh(layout=True)

    # -- what the next attach begins with ---------------------------------------------------

    def standing(self) -> tuple[str, dict[str, dict[str, Value]]]:
        """What fills the screen, and how each panel stands; as it was, where there is none."""
        before = self.wishes.keeping.before if self.wishes.keeping else Kept()
        return before.maximised, before.panels

    def keep(self) -> None:
        if self.wishes.keeping is not None:
            self.wishes.keeping.note(Kept(self.chosen_theme, *self.standing()))

    # -- themes -----------------------------------------------------------------------------

    def take_theme(self, name: str | None) -> None:
        """From now on; the next time too, unless the user's file names another one."""
        if name is None:
            return
        self.theme = self.chosen_theme = name
        self.keep()
        if self.wishes.theme not in ("", name):
            file = configuration.user_file()
            words = f'for now: {file} names the theme "{self.wishes.theme}" for the next time'
            self.notify(words, timeout=6, markup=False)

    def action_themes(self) -> None:
        """As the files are now: whoever writes one sees it here, or what is wrong with it."""
        from bitwatch.tui.screens.themes import Themes

        found, complaints = load()
        for each in found:
            self.register_theme(each)
        self.clear_notifications()  # what a toast says of them stands on the page, and in its way
        self.push_screen(Themes(found, complaints), self.take_theme)

    # -- help and palette -------------------------------------------------------------------

    def action_help(self) -> None:
        """Of the place where one is; the same key closes it."""
        from bitwatch.tui.screens.help import Help

        if isinstance(self.screen, Help):
            self.pop_screen()
        else:
            self.push_screen(Help(scopes(self.screen)))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield from actions(self, screen)
        for name in self.available_themes:
            change = partial(self.take_theme, name)
            yield SystemCommand(f"Theme: {name}", "Change the colours", change)

    def action_command_palette(self) -> None:
        from bitwatch.tui.screens.over import Palette

        if not any(isinstance(screen, Palette) for screen in self.screen_stack):
            self.push_screen(Palette())
