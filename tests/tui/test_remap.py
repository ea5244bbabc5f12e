"""Other keys from the user's file: what is accepted, what is refused, and where it shows."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bitwatch import config as configuration
from bitwatch.record import events
from bitwatch.strict import ConfigError
from bitwatch.tui import keys, remap, start
from bitwatch.tui.key_names import UnknownKey, key_of, short, written
from bitwatch.tui.remedies import remedies
from bitwatch.tui.screens.confirm import ConfirmStop
from bitwatch.tui.screens.help import Help
from bitwatch.tui.screens.why import Why
from tests.tui.conftest import Open


@pytest.mark.parametrize(
    ("text", "key", "shown"),
    [
        ("S", "S", "S"),
        ("?", "question_mark", "?"),
        ("ctrl+s", "ctrl+s", "^s"),
        ("Ctrl+S", "ctrl+s", "^s"),
        ("F9", "f9", "F9"),
        ("esc", "escape", "esc"),
        ("comma", "comma", ","),
        ("full_stop", "full_stop", "."),
        ("+", "plus", "+"),
        ("shift+s", "S", "S"),
        ("shift+tab", "shift+tab", "shift+tab"),
        ("alt+k", "alt+k", "alt+k"),
        ("space", "space", "space"),
        ("é", "é", "é"),
        ("PgUp", "pageup", "pageup"),
    ],
)
def test_a_key_is_known_by_the_name_that_a_person_gives_it(text: str, key: str, shown: str) -> None:
    assert key_of(text) == key
    assert short(key) == shown
    assert key_of(written(key)) == key


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ctrl+sx", "is not the name of a key"),
        ("escpae", "did you mean escape?"),
        ("hyper+x", "is not the name of a key"),
        ("f25", "is not the name of a key"),
        ("ctrl+", "is not the name of a key"),
        ("ctrl+m", "is the same as enter to a terminal"),
        ("stop", "is not the name of a key"),
    ],
)
def test_what_is_no_key_is_said(text: str, words: str) -> None:
    with pytest.raises(UnknownKey, match=words.replace("+", r"\+").replace("?", r"\?")):
        key_of(text)


def test_every_key_of_the_table_can_be_written_as_it_is_shown() -> None:
    for key in keys.KEYS:
        for name in key.keys.split(","):
            assert key_of(written(name)) == name


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"stopp": "x"}, "keys.stopp: there is no such action; did you mean stop?"),
        ({"stop": "ctrl+sx"}, 'keys.stop: "ctrl+sx" is not the name of a key'),
        ({"stop": "x,,z"}, 'the comma itself is written "comma"'),
        (
            {"stop": "c"},
            'on the dashboard "c" belongs to clean already (end what ended attempts have',
        ),
        ({"stop": "x", "clean": "x"}, 'on the dashboard "x" belongs to clean already'),
        ({"stop": "k"}, 'in the list of processes "k" belongs to list-up already'),
        ({"list-up": "S"}, 'in the list of processes "S" belongs to stop already'),
        ({"why": "space"}, '"space" belongs to '),
        ({"theme-keep": "k"}, '"k" belongs to choice-up already'),
        ({"detach": ""}, "keys.detach: cannot be without a key"),
        ({"help": " "}, "keys.help: cannot be without a key: it is the way to the help"),
        ({"page-close": ""}, "keys.page-close: cannot be without a key"),
        ({"stop": "ctrl+q"}, "keys.stop: ctrl+q always leaves the screen"),
        ({"detach": "ctrl+c"}, "keys.detach: ctrl+c never does anything to the run"),
    ],
)
def test_what_cannot_be_is_one_sentence_with_the_file_the_id_and_the_remedy(
    wanted: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        remap.given(wanted, "/etc/mine/config.toml")
    said = str(raised.value)
    assert words in said
    assert said.startswith("/etc/mine/config.toml: keys.") and "\n" not in said


def test_the_table_as_it_is_can_be_written_into_the_file() -> None:
    same = {key.id: key.written.replace(" ", ",").replace(",,,", ",comma,") for key in keys.KEYS}
    same["sort-back"] = "comma"
    found = remap.given(same, "f")
    assert {id: set(names.split(",")) for id, names in found.items()} == {
        key.id: set(key.keys.split(",")) for key in keys.KEYS
    }


def test_two_actions_may_change_places() -> None:
    found = remap.given({"stop": "c", "clean": "S"}, "f")
    assert found == {"stop": "c", "clean": "S"}


async def test_other_keys_do_what_they_say_and_the_old_ones_nothing(stage: Open) -> None:
    async with stage(given={"stop": "ctrl+s,f12", "why": "e", "clean": ""}) as at:
        await at.press("S", "c")
        assert at.app.screen is at.dashboard and at.commands.asked == []
        for key in ("ctrl+s", "f12"):
            await at.press(key)
            assert isinstance(at.app.screen, ConfirmStop)
            await at.press("escape")
        await at.press("e")
        assert isinstance(at.app.screen, Why)
        await at.press("w")
        assert isinstance(at.app.screen, Why)
        await at.press("e")
        assert at.app.screen is at.dashboard


async def test_actions_that_change_places_do_each_what_the_other_did(stage: Open) -> None:
    async with stage(given={"stop": "c", "clean": "S"}) as at:
        await at.press("c")
        assert isinstance(at.app.screen, ConfirmStop)
        await at.press("escape", "S")
        await at.until(lambda: at.commands.asked)
        assert at.commands.asked == [("clean", at.source.run.id, 0)]


async def test_a_key_of_a_list_and_of_a_page_can_be_others_too(stage: Open) -> None:
    given = {"list-down": "ctrl+n", "page-close": "x", "cancel": "x", "help": "f2"}
    async with stage(given=given) as at:
        await at.press("4")
        first = at.dashboard.processes.selection
        await at.press("down", "j")
        assert at.dashboard.processes.selection == first
        await at.press("ctrl+n")
        assert at.dashboard.processes.selection != first
        await at.press("f2")
        assert isinstance(at.app.screen, Help)
        await at.press("escape", "q")
        assert isinstance(at.app.screen, Help)
        await at.press("x", "S", "x")
        assert at.app.screen is at.dashboard and at.commands.asked == []


async def test_other_keys_show_everywhere(stage: Open) -> None:
    given = {
        "stop": "ctrl+s", "why": "e", "detach": "X", "page-close": "z", "gpus": "5", "clean": "f7",
    }  # fmt: skip
    async with stage(120, 50, given=given) as at:
        footer = at.text().splitlines()[-1]
        assert "X detach" in footer and "^s stop" in footer and "e why" in footer
        assert "5 2 3 4 panels" in footer
        assert "[e] why" in at.text() and "[w]" not in at.text()
        assert "5 GPUs" in at.text() and "1 GPUs" not in at.text()
        await at.press("ctrl+c")
        assert any("X detaches" in toast and "^s stops" in toast for toast in at.toasts())
        await at.press("?")
        row = next(row for row in at.text().splitlines() if "Stop the run" in row)
        assert "ctrl+s" in row and " S " not in row
        assert "z closes" in at.text()
        await at.press("z")
        helps = [command.help for command in at.app.get_system_commands(at.dashboard)]
        assert any(text.startswith("ctrl+s: Stop the run") for text in helps)
        assert remedies(at.dashboard.view)["leftovers"] == ("F7", "clean up")
        bar = next(row for row in at.text().splitlines() if "[e]" in row)
        await at.pilot.click("#alerts", offset=(bar.index("[e]") + 1, 0))
        await at.until(lambda: isinstance(at.app.screen, Why))


async def test_a_sentence_of_the_record_names_the_key_that_it_is_now(stage: Open) -> None:
    alert = events.Alert(
        id="process-count",
        text="too many",
        next="look at the processes (key 4); key c ends what is left, key S stops it",
    )
    async with stage(given={"clean": "ctrl+k", "stop": "", "processes": "9"}) as at:
        at.source.give(msgspec.structs.replace(at.source.view, alerts=[alert]))
        await at.press("w")
        assert "(key 9); key ^k ends what is left, key ^p stop stops it" in at.text()


async def test_without_other_keys_a_sentence_stays_as_it_is(stage: Open) -> None:
    async with stage():
        assert keys.given() == {}
        assert keys.in_words("key c ends what is left") == "key c ends what is left"


def user_file(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("BITWATCH_HOME", str(folder / "runs"))
    own = configuration.user_file()
    own.parent.mkdir(parents=True)
    own.write_text(text)
    return own


def test_a_screen_takes_the_keys_of_the_users_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file(tmp_path, '[keys]\nstop = "ctrl+s"\n', monkeypatch)
    assert start.look().wishes.keys == {"stop": "ctrl+s"}


def test_a_screen_is_not_opened_with_a_key_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = user_file(tmp_path, '[keys]\nstop = "c"\n', monkeypatch)
    with pytest.raises(ConfigError) as raised:
        start.look()
    assert str(raised.value).startswith(f"{own}: keys.stop: ")
