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
