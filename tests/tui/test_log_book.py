"""However one moves in logs, what is shown is a stretch of their lines."""

from __future__ import annotations

import random
from pathlib import Path

from bitwatch.attach.log_search import Troubles, Word
from bitwatch.record import rundir
from bitwatch.tui.log_book import Book
from tests.attach.logs_made import clock


def a_book(folder: Path, **logs: str) -> Book:
    run = rundir.create(folder, "demo")
    rundir.new_attempt(run)
    run.logs(1).mkdir(parents=True, exist_ok=True)
    for name, text in logs.items():
        (run.logs(1) / f"{name}.log").write_text(text)
    return Book(run, 1, 90, 20)


def search_to_its_end(book: Book) -> None:
    while book.searching.is_busy:
        book.work()


def test_any_way_of_moving_shows_a_stretch_of_the_lines_in_order(tmp_path: Path) -> None:
    dice = random.Random(7)
    lines = [f"{clock(n // 3)} step {n} {'x' * dice.randrange(200)}" for n in range(9000)]
    whose = [n // 3 % 2 for n in range(9000)]
    book = a_book(
        tmp_path,
        rank0="".join(f"{line}\n" for line, rank in zip(lines, whose, strict=True) if rank == 0),
        rank1="".join(f"{line}\n" for line, rank in zip(lines, whose, strict=True) if rank == 1),
    )
    numbers = {line.split()[3]: n for n, line in enumerate(lines)}
    moves = [
        *(lambda: book.scroll(dice.randrange(-200, 200)), lambda: book.page(dice.choice([-1, 1]))),
        *(book.first, book.follow, lambda: book.find(Word(f"step {dice.randrange(9000)}"), 1)),
        lambda: book.find(Word(f"step {dice.randrange(9000)}"), -1),
    ]
    for _ in range(60):
        dice.choice(moves)()
        search_to_its_end(book)
        shown = [numbers[line.text.split()[5]] for line in book.picture().lines]
        assert shown == list(range(shown[0], shown[0] + 20))
        assert len(book.stretch.rows) < 6000
    book.follow()
    book.wrap()
    for _ in range(40):
        before = [line.text for line in book.picture().lines]
        book.scroll(-7)
        after = [line.text for line in book.picture().lines]
        assert after[7:] == before[:13] and len(after) == 20


def test_nothing_raises_whatever_becomes_of_the_files(tmp_path: Path) -> None:
    dice = random.Random(11)
    book = a_book(tmp_path, rank0="", other="one\n")
    folder = book.folder.sources[0].pager.path.parent

    def damage() -> None:
        path = folder / f"{dice.choice(['agent', 'rank0', 'rank1', 'other'])}.log"
        kind = dice.randrange(5)
        if kind == 0:
            path.unlink(missing_ok=True)
        elif kind == 1:
            path.write_text(f"{clock(dice.randrange(999))} - ERROR - 漢字\n" * dice.randrange(50))
        elif kind == 2 and path.exists():
            path.rename(folder / "old")
        else:
            with open(path, "a") as log:
                log.write(dice.choice(["half ", "whole\n", "10%\r20%", "\x1b[31mred\n" * 30]))

    moves = [
        *(lambda: book.scroll(dice.randrange(-30, 30)), book.first, book.follow, book.wrap),
        *(lambda: book.choose_number(dice.randrange(3)), lambda: book.next_source(1)),
        *(lambda: book.find(Troubles(), -1), lambda: book.find_word(Word("whole")), book.show_raw),
        *(lambda: book.resize(dice.randrange(100), dice.randrange(30)), book.searching.cancel),
        *(lambda: book.find_again(-1), lambda: book.next_source(-1), book.work, book.work),
    ]
    for _ in range(400):
        dice.choice([dice.choice(moves), damage, book.look])()
        picture = book.picture()
        assert len(picture.lines) <= book.height
        for line in (*picture.lines, picture.bar, picture.status):
            assert line.width <= book.width and line.text.isprintable()


def words(book: Book) -> str:
    return book.picture().status.text


def test_a_last_line_without_an_end_is_found_and_counted(tmp_path: Path) -> None:
    book = a_book(
        tmp_path,
        rank0="".join(f"{clock(n)} zero {n}\n" for n in range(300)) + "Error: needle 0",
        rank1="".join(f"{clock(n)} one {n}\n" for n in range(300)) + "a needle 1",
    )
    book.find_word(Word("needle"))
    search_to_its_end(book)
    assert "2 of 2" in words(book)
    for direction, said in ((-1, "1 of 2"), (1, "2 of 2"), (1, "no further one"), (-1, "1 of 2")):
        book.find_again(direction)
        search_to_its_end(book)
        assert said in words(book)
    assert [line.text.split()[-2:] for line in book.picture().lines[-3:]] == [
        ["one", "299"],
        ["needle", "0"],
        ["needle", "1"],
    ]
    book.first()
    book.find(Troubles(), 1)
    search_to_its_end(book)
    assert "1 of 1" in words(book) and "needle 1" in book.picture().lines[-1].text
    # What was a half line when it was found is not found again when it is a whole one.
    book.choose("rank 0")
    book.find_word(Word("needle"))
    search_to_its_end(book)
    with open(book.stretch.sources[0].pager.path, "a") as log:
        log.write(" and its needle\nanother needle")
    book.searching.said = ""
    book.look()
    book.picture()
    book.find_again(1)
    search_to_its_end(book)
    assert "2 of 2" in words(book)
    book.find_again(-1)
    search_to_its_end(book)
    assert "1 of 2" in words(book)


def test_a_new_word_is_looked_for_on_the_whole_screen(tmp_path: Path) -> None:
    text = "".join(
        f"{'red' if n == 50 else 'blue' if n in (45, 55) else '-'} {n}\n" for n in range(200)
    )
    book = a_book(tmp_path, rank0=text)
    book.first()

    def find(begin: object) -> str:
        search_to_its_end(book)
        book.picture()
        hit = book.searching.hit
        return hit.row.data.decode() if hit else ""

    assert find(book.find_word(Word("red"))) == "red 50"
    assert find(book.find_word(Word("blue"))) == "blue 45"  # above the hit of the other word
    book.first()
    book.scroll(44)  # 44 to 63
    assert find(book.find(Word("blue"), -1)) == "blue 55"
    assert find(book.find_again(-1)) == "blue 45"
    book.first()
    book.scroll(50)  # its hit is not on the screen any more
    assert find(book.find_again(-1)) == "blue 55"


def test_the_end_of_a_short_log_stands_at_the_foot_where_a_long_one_was_left(
    tmp_path: Path,
) -> None:
    book = a_book(
        tmp_path,
        rank0="".join(f"{clock(n)} zero {n}\n" for n in range(1000)),
        rank1="".join(f"{clock(n)} one {n}\n" for n in range(500)),
    )
    book.picture()
    for scrolls in (False, True):
        book.choose("rank 0")
        book.follow()
        book.scroll(-50)
        book.choose("rank 1")
        if scrolls:
            book.scroll(1)
        last = book.picture().lines[-1].text
        assert last.endswith("one 499") and book.follows is scrolls


def test_a_digit_without_a_log_gets_an_answer(tmp_path: Path) -> None:
    book = a_book(tmp_path / "ranks", agent="", rank0="zero\n", rank1="one\n")
    book.choose_number(1)
    assert book.chosen == "rank 1" and not book.searching.said
    book.choose_number(9)
    assert book.chosen == "rank 1"
    assert book.picture().status.text.strip() == "there is no log of rank 9"
    plain = a_book(tmp_path / "plain", out="of a program\n")
    plain.choose_number(4)
    assert plain.picture().status.text.strip() == "there is no log 4 in the bar"


def test_keys_of_other_attempts_are_named_where_there_are_some(tmp_path: Path) -> None:
    book = a_book(tmp_path, rank0="zero\n")
    assert "follow" in book.picture().status.text
    assert "attempts" not in book.picture().status.text
    rundir.new_attempt(rundir.list_runs(tmp_path)[0])
    assert "[ ] attempts" in book.picture().status.text
