"""The page of logs: merged and alone, followed and left, searched, rotated under one's eyes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bitwatch.record import rundir
from bitwatch.tui.log_lines import bar, wrapped
from bitwatch.tui.screens.logs import Logs
from tests.attach.logs_made import clock
from tests.tui.conftest import Open, Stage


def logs(at: Stage, attempt: int = 1, **texts: str) -> Path:
    folder = at.source.run.logs(attempt)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.log").write_text(text)
    return folder


def append(path: Path, text: str) -> None:
    with open(path, "a") as log:
        log.write(text)


def steps(name: str, first: int, last: int, every: int = 2) -> str:
    return "".join(f"{clock(n)} {name} step {n}\n" for n in range(first, last, every))


def shown(at: Stage) -> list[str]:
    """The lines of logs on the screen, without the frame."""
    picture = page(at).view.picture
    return [line.text for line in picture.lines] if picture else []


def last(at: Stage) -> str:
    """The last of them; of a page that has read nothing yet there is none."""
    return "".join(shown(at)[-1:])


def page(at: Stage) -> Logs:
    screen = at.app.screen
    assert isinstance(screen, Logs)
    return screen


def status(at: Stage) -> str:
    picture = page(at).view.picture
    return picture.status.text if picture else ""


def subtitle(at: Stage) -> str:
    picture = page(at).view.picture
    return picture.subtitle if picture else ""


def says(at: Stage, *words: str) -> Callable[[], bool]:
    return lambda: all(word in at.text() for word in words)


async def open_page(at: Stage) -> None:
    await at.press("l")
    await at.until(lambda: page(at).view.picture)
    await at.pilot.pause()


async def test_all_are_merged_by_time_and_one_alone_is_chosen(stage: Open) -> None:
    async with stage() as at:
        logs(
            at,
            agent=f"{clock(7)} started\n",
            rank0=steps("zero", 0, 100),
            rank1=steps("one", 1, 100),
        )
        await open_page(at)
        await at.until(says(at, "one step 99"))
        assert [line.split()[-1] for line in shown(at)] == [str(n) for n in range(64, 100)][-36:]
        assert "rank 0    2025-08-24" in at.text() and "rank 1    2025-08-24" in at.text()
        assert " all " in at.text() and "torchrun 28 B" in at.text()
        await at.press("1")
        await at.until(lambda: shown(at)[0].endswith("one step 29"))
        assert not any("zero" in line or "rank" in line for line in shown(at))
        await at.press("left")
        await at.until(lambda: shown(at)[0].endswith("zero step 28"))
        await at.press("left")
        await at.until(lambda: shown(at)[0].endswith("started"))
        await at.press("tab", "tab")
        await at.until(lambda: shown(at)[0].endswith("one step 29"))
        await at.press("a", "home")
        await at.until(lambda: "zero step 0" in shown(at)[0])
        await at.pilot.click("#log", offset=(16, 0))
        await at.until(lambda: shown(at)[0].endswith("started"))


async def test_it_follows_until_one_scrolls_up_and_says_how_much_has_come(stage: Open) -> None:
    async with stage(80, 24) as at:
        folder = logs(at, rank0=steps("a", 0, 200), rank1="")
        await open_page(at)
        await at.until(says(at, "a step 198", "at the end, follows"))
        append(folder / "rank1.log", f"{clock(1)} from the other\n")
        await at.until(lambda: "from the other" in last(at))
        await at.press("up")
        await at.until(lambda: "a step 198" in last(at))
        append(folder / "rank0.log", "more\n" * 30)
        await at.until(says(at, "30 new lines below"))
        assert "a step 198" in last(at)
        await at.press("pagedown", "down")
        await at.until(lambda: "more" in shown(at)[1])
        await at.press("f")
        await at.until(lambda: "follows" in subtitle(at) and "more" in last(at))
        append(folder / "rank0.log", "half a line")
        await at.until(lambda: "half a line" in last(at))
        append(folder / "rank0.log", " is whole\nand the last")
        await at.until(lambda: "and the last" in last(at))
        assert "half a line is whole" in shown(at)[-2]
        page(at).view.post_message(page(at).view.Scrolled(-3))
        await at.until(lambda: "does not follow" in subtitle(at))


async def test_logs_that_come_later_are_shown_and_a_folder_may_be_empty(stage: Open) -> None:
    async with stage(80, 24) as at:
        folder = at.source.run.logs(1)
        for path in folder.glob("*.log") if folder.exists() else []:
            path.unlink()
        await at.press("l")
        await at.until(says(at, "nothing has been printed yet"))
        logs(at, rank0="hello\n")
        await at.until(says(at, "hello"))
        logs(at, rank1="here too\n")
        await at.until(lambda: [line[:6] for line in shown(at)] == ["rank 0", "rank 1"])
        assert [line.split()[2:] for line in shown(at)] == [["hello"], ["here", "too"]]


async def test_search_goes_to_the_nearest_marks_it_and_counts(stage: Open) -> None:
    async with stage(80, 24) as at:
        text = [f"{clock(n)} line {n}" for n in range(3000)]
        for number in (10, 1500, 2500):
            text[number] += " Needle"
        logs(at, rank0="\n".join(text) + "\n", rank1=f"{clock(1600)} needle of one\n")
        await open_page(at)
        await at.press("slash", *"needle", "enter")
        await at.until(lambda: "4 of 4" in status(at))
        assert any("line 2500 Needle" in line for line in shown(at))
        reverse = [
            text
            for line in page(at).view.picture.lines  # type: ignore[union-attr]
            for text, role in line.spans
            if role == "reverse accent"
        ]
        assert reverse == ["Needle"]
        for keys, where, said in (
            ("N", "needle of one", "3 of 4"),
            ("N", "line 1500", "2 of 4"),
            ("n", "needle of one", "3 of 4"),
            ("n", "line 2500", "4 of 4"),
        ):
            await at.press(keys)
            await at.until(lambda said=said: said in status(at))  # type: ignore[misc]
            assert any(where in line for line in shown(at))
        await at.press("n")
        await at.until(lambda: "no further one below" in status(at))
        await at.press("home", "slash", *"Needle", "enter")
        await at.until(lambda: "1 of 3" in status(at))
        await at.press("slash", *"nowhere", "enter")
        await at.until(lambda: "is in none of these logs" in status(at))
        await at.press("escape")
        await at.until(lambda: "/ search" in status(at))
        await at.press("escape")
        assert at.app.screen is at.dashboard


async def test_letters_that_are_typed_into_the_search_are_no_keys(stage: Open) -> None:
    async with stage(80, 24) as at:
        logs(at, rank0="q l w\n")
        await open_page(at)
        await at.press("slash", *"qlw?0", "left", "backspace")
        assert page(at).view.entry.text == "qlw?"
        await at.press("escape")
        assert page(at).view.entry.text == "" and not page(at).view.entry.editing
        await at.press("n")
        await at.until(lambda: "/ asks for a word" in status(at))


async def test_e_goes_from_error_to_error(stage: Open) -> None:
    async with stage(80, 24) as at:
        quiet = "".join(f"{clock(n)} fine\n" for n in range(500))
        logs(
            at,
            rank0=quiet + f"{clock(500)} - ERROR - the disk is full\n{clock(501)} fine\n",
            rank1=f"{clock(600)} fine\nTraceback (most recent call last):\nValueError: no\n",
        )
        await open_page(at)
        await at.press("E")
        await at.until(lambda: "3 of 3" in status(at) and "ValueError" in at.text())
        await at.press("home", "e")
        await at.until(lambda: "1 of 3" in status(at))
        assert any("disk is full" in line for line in shown(at))
        roles = {
            role
            for line in page(at).view.picture.lines  # type: ignore[union-attr]
            for text, role in line.spans
            if "disk is full" in text
        }
        assert roles == {"bad"}


async def test_long_lines_are_cut_wrapped_or_scrolled(stage: Open) -> None:
    async with stage(60, 15) as at:
        logs(at, rank0="".join(f"{letter * 70}END\n" for letter in "abcdefghij"))
        await open_page(at)
        await at.until(lambda: last(at).endswith("…"))
        await at.press(">", ">")
        await at.until(lambda: last(at).endswith("END"))
        await at.press("w")
        await at.until(lambda: last(at).strip("j") == "END")
        assert shown(at)[-2] == "j" * page(at).view.size.width
        top = shown(at)[0]
        await at.press("up")
        await at.until(lambda: shown(at)[1] == top)
        await at.press("w")
        await at.until(lambda: last(at).endswith("…"))


async def test_a_bar_is_shown_as_it_ended_and_raw_on_demand(stage: Open) -> None:
    async with stage(80, 24) as at:
        logs(at, rank0=" 10%|#   |\r 50%|##  |\r100%|####|\nopen 1/9\ropen 2/9")
        await open_page(at)
        await at.until(lambda: shown(at) == ["100%|####|", "open 2/9"])
        await at.press("r")
        await at.until(lambda: shown(at)[1] == "open 1/9\\ropen 2/9")
        assert shown(at)[0].split("\\r") == [" 10%|#   |", " 50%|##  |", "100%|####|"]


async def test_brackets_go_to_the_logs_of_other_attempts(stage: Open) -> None:
    async with stage(80, 24) as at:
        logs(at, rank0="of the first\n")
        await open_page(at)
        await at.press("]")
        await at.until(lambda: "there is no attempt after this one" in status(at))
        rundir.new_attempt(at.source.run)
        logs(at, 2, rank0="of the second\n")
        await at.press("]")
        await at.until(says(at, "of the second", "attempt 2 of 2"))
        await at.press("slash", *"of", "enter")
        await at.until(lambda: "1 of 1" in status(at))
        await at.press("[")
        await at.until(says(at, "of the first", "attempt 1 of 2", "1 found"))
        assert "of the second" not in at.text()


async def test_rotated_truncated_deleted_and_unreadable_logs_are_sentences(stage: Open) -> None:
    async with stage(110, 24) as at:
        folder = logs(at, rank0=steps("old", 0, 60), rank1="one\n")
        await open_page(at)
        (folder / "rank0.log").rename(folder / "rank0.log.1")
        await at.until(says(at, "was deleted or moved away"))
        logs(at, rank0="the new file\n")
        await at.until(says(at, "the new file"))
        assert "old step 58" in at.text() and "moved away" not in at.text()
        await at.press("slash", *"file", "enter")
        await at.until(lambda: "1 of 1" in status(at))
        (folder / "rank0.log").write_text("cut\n")
        await at.until(lambda: "none of these" in status(at))
        (folder / "rank2.log").write_bytes(bytes(range(256)) * 64)
        os.mkfifo(folder / "rank3.log")
        await at.until(says(at, "is a binary file", "and 1 more"))
        await at.press("3")
        await at.until(says(at, "is a pipe, not a log file"))
        await at.press("home", "pageup", "pagedown", "end", "w", "e", "n", "q")
        assert at.app.screen is at.dashboard


async def test_where_no_line_has_a_time_the_page_says_so(stage: Open) -> None:
    async with stage(80, 24) as at:
        logs(at, rank0="a\n" * 40, rank1="b\n" * 40)
        await open_page(at)
        await at.until(says(at, "order between ranks is not known here"))
        await at.press("0")
        await at.until(lambda: "not known" not in at.text() and "/ search" in status(at))
        assert set(shown(at)) == {"a"}


async def test_a_large_log_is_paged_and_searched_without_being_read(stage: Open) -> None:
    async with stage(80, 24) as at:
        folder = logs(at, rank1="other\n")
        block = "".join(f"{clock(n % 80_000)} line {n}\n" for n in range(40_000)).encode()
        with open(folder / "rank0.log", "wb") as log:
            log.write(b"the needle\n" + block)
            log.seek(200 << 20)  # of which the disk holds little
            log.write(b"\n" + block + b"the end\n")
        await open_page(at)
        await at.press("0")
        await at.until(lambda: last(at) == "the end")
        await at.press(*["pageup"] * 5)
        await at.until(lambda: len(shown(at)) == 20 and last(at).endswith(" line 39905"))
        await at.press("slash", *"needle", "enter")
        await at.until(lambda: "no further one below" in status(at))
        await at.press("N")
        await at.until(lambda: shown(at)[0] == "the needle")
        await at.until(lambda: "1 of 1" in status(at))
        rows = page(at).view.picture
        assert rows is not None and len(rows.lines) == 20
        await at.press("home")
        await at.until(lambda: shown(at)[1].endswith(" line 0"))


@pytest.mark.parametrize(("width", "all_there"), [(90, True), (40, False), (12, False)])
def test_the_bar_of_sources_keeps_the_chosen_one_in_sight(width: int, all_there: bool) -> None:
    names = [("all", "9.9 GiB"), *((f"rank {n}", "1.2 GiB") for n in range(4))]
    for chosen in range(len(names)):
        line, places = bar(names, chosen, width)
        assert line.width <= width
        begin, _ = next((a, b) for a, b, number in places if number == chosen)
        assert line.text[begin:].startswith(names[chosen][0][: width - begin])
        assert (len(places) == len(names)) == all_there or width == 40


def test_wrapped_lines_hold_every_character_once() -> None:
    for text in ("", "abc" * 30, "漢字" * 20 + "a", "e\u0301" * 40):
        parts = wrapped(text, 7)
        assert "".join(text[begin:end] for begin, end in parts) == text
