"""Pages of a log, forwards and backwards, are exactly the file's lines; so are several as one."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from bitwatch.attach.log_levels import text_of
from bitwatch.attach.log_merge import Stretch, around, beginning, ending
from bitwatch.attach.log_pages import PIECE_BYTES, Pager, Row
from bitwatch.attach.log_search import Counted, Direction, Hit, Troubles, Word, nearest
from bitwatch.attach.log_sources import Source
from tests.attach.logs_made import clock, written


def opened(path: Path) -> Pager:
    pager = Pager(path)
    pager.look()
    return pager


def all_after(pager: Pager, place: int, most: int) -> list[Row]:
    rows: list[Row] = []
    while found := pager.after(place, most):
        rows += found
        place = found[-1].end
    return rows


def all_before(pager: Pager, place: int, most: int) -> list[Row]:
    rows: list[Row] = []
    while found := pager.before(place, most):
        rows = found + rows
        place = found[0].begin
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_pages_forwards_and_backwards_are_exactly_the_lines(tmp_path: Path, seed: int) -> None:
    content = written(random.Random(seed))
    path = tmp_path / "rank0.log"
    path.write_bytes(content)
    pager = opened(path)
    rows = all_after(pager, 0, 7)
    assert rows == all_before(pager, pager.end, 5) == all_after(pager, 0, 100_000)
    assert b"".join(content[row.begin : row.end] for row in rows) == content[: pager.end]
    rest = pager.rest()
    assert (rest.data if rest else b"") == content[pager.end :]
    lines = [line for line in content[: pager.end].split(b"\n") if len(line) < PIECE_BYTES]
    shown = {row.data for row in rows}
    assert all(line in shown for line in lines[:-1])
    assert max((row.end - row.begin for row in rows), default=0) <= 2 * PIECE_BYTES
    begins = {row.begin for row in rows}
    for _ in range(300):
        byte = random.Random(seed).randrange(max(1, pager.end))
        begin = pager.begin_of(byte)
        assert begin in begins and begin == max(at for at in begins if at <= byte)


def test_a_character_that_a_piece_would_cut_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    path.write_text("x" + "漢" * 20_000 + "\n", encoding="utf-8")
    pager = opened(path)
    for rows in (all_after(pager, 0, 2), all_before(pager, pager.end, 2)):
        assert "".join(row.data.decode() for row in rows) == "x" + "漢" * 20_000
        assert len(rows) > 5


def test_a_page_costs_the_same_wherever_it_is_in_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    with open(path, "wb") as file:
        file.write(b"first\n")
        file.seek(1 << 34)  # 16 GiB without an end of a line, of which the disk holds nothing
        file.write(b"\nlast\n")
    pager, reads = opened(path), Reads()
    pager.read = reads.counted(pager)  # type: ignore[method-assign]
    assert [row.data for row in pager.before(pager.end, 1)] == [b"last"]
    assert len(pager.before(pager.end, 40)) == 40
    assert len(pager.after(0, 40)) == 40
    middle = pager.begin_of(1 << 33)
    assert len(pager.after(middle, 40)) == len(pager.before(middle, 40)) == 40
    assert reads.bytes < 8 << 20
    assert text_of(pager.after(middle, 1)[0].data) == "(8.0 KiB of zeros)"


class Reads:
    def __init__(self) -> None:
        self.bytes = 0

    def counted(self, pager: Pager):  # type: ignore[no-untyped-def]
        read = pager.read

        def reads(begin: int, length: int) -> bytes:
            self.bytes += length
            return read(begin, length)

        return reads


def test_a_file_that_grows_is_cut_or_is_another_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rank0.log"
    path.write_text("one\ntw")
    pager = opened(path)
    assert (pager.end, pager.rest()) == (4, Row(b"tw", 4, 6, whole=False))
    with open(path, "a") as file:
        file.write("o\n")
    pager.look()
    assert [row.data for row in pager.after(0, 9)] == [b"one", b"two"]
    assert pager.rest() is None
    path.write_text("1\n")
    pager.look()
    assert ([row.data for row in pager.after(0, 9)], pager.renewed) == ([b"1"], 1)
    path.rename(path.with_suffix(".old"))
    pager.look()
    assert "was deleted or moved away" in pager.trouble
    path.write_text("the next file\n")
    pager.look()
    assert ([row.data for row in pager.after(0, 9)], pager.renewed) == ([b"the next file"], 2)
    assert pager.trouble == ""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "no such file"),
        (bytes(range(256)) * 40, "is a binary file"),
        ("log\n".encode("utf-16"), "is in UTF-16"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "rank0.log"
    if content is not None:
        path.write_bytes(content)
    pager = opened(path)
    assert why in pager.trouble
    assert pager.after(0, 9) == pager.before(pager.end, 9) == []
    os.mkfifo(tmp_path / "rank1.log")
    assert "is a pipe" in opened(tmp_path / "rank1.log").trouble


# -- several as one -------------------------------------------------------------------------


def sources(folder: Path, **logs: str) -> list[Source]:
    found = []
    for order, (name, text) in enumerate(logs.items()):
        (folder / f"{name}.log").write_text(text)
        found.append(Source(folder / f"{name}.log", order))
    spans = [each.span for each in found if each.span]
    for each in found:
        if spans:
            each.borrowed = min(s[0] for s in spans), max(s[1] for s in spans)
    return found


def texts(stretch: Stretch) -> list[str]:
    return [shown.row.data.decode() for shown in stretch.rows]


def forwards(found: list[Source], most: int) -> list[str]:
    stretch = Stretch(found, beginning(found))
    while stretch.later(most):
        pass
    assert stretch.at_end
    return texts(stretch)


def backwards(found: list[Source], most: int) -> list[str]:
    stretch = Stretch(found, ending(found))
    while stretch.earlier(most):
        pass
    return texts(stretch)


def test_logs_are_merged_by_time_from_either_end_and_from_the_middle(tmp_path: Path) -> None:
    dice = random.Random(1)
    logs: dict[str, list[tuple[int, str]]] = {"agent": [], "rank0": [], "rank1": []}
    for second in range(300):
        name = dice.choice(list(logs))
        logs[name].append((second, f"{clock(second)} {name} says {second}"))
        logs[name] += [(second, f"  of {second}, line {n}") for n in range(dice.choice([0, 0, 40]))]
    found = sources(
        tmp_path,
        **{name: "".join(f"{text}\n" for _, text in lines) for name, lines in logs.items()},
    )
    expected = [text for _, text in sorted(_all(logs.values()), key=lambda one: one[0])]
    assert forwards(found, 17) == backwards(found, 13) == expected
    for source in found:
        for _ in range(8):
            byte = dice.randrange(source.pager.end)
            places = around(found, source, byte)
            stretch = Stretch(found, places)
            stretch.later(30)
            below = len(stretch.rows)
            stretch.earlier(30)
            begin = expected.index(stretch.rows[0].row.data.decode()) if below else 0
            assert texts(stretch) == expected[begin : begin + len(stretch.rows)]
            its = source.pager.after(source.pager.begin_of(byte), 1)[0]
            assert any(s.source is source and s.row == its for s in stretch.rows)


def _all(lines: Iterable[list[tuple[int, str]]]) -> list[tuple[int, str]]:
    return [one for each in lines for one in each]


def test_a_log_without_times_is_placed_by_how_far_it_is_and_says_so(tmp_path: Path) -> None:
    timed = "".join(f"{clock(second)} a\n" for second in range(100))
    found = sources(tmp_path, rank0=timed, rank1="b\n" * 100)
    assert [source.is_ordered(source.pager.after(0, 1)[0]) for source in found] == [True, False]
    merged = forwards(found, 10)
    assert merged == backwards(found, 10)
    letters = "".join(line[-1] for line in merged)
    assert 20 <= letters[:100].count("b") <= 80
    both = sources(tmp_path, rank0="a\n" * 100, rank1="b\n" * 10)
    assert forwards(both, 9) == backwards(both, 9)
    assert "".join(forwards(both, 9)).count("aaaaaaaaab") >= 8


def test_what_comes_while_one_looks_is_in_the_order_in_which_it_comes(tmp_path: Path) -> None:
    found = sources(tmp_path, rank0=f"{clock(50)} old a\n", rank1=f"{clock(40)} old b\n")
    for look, (name, text) in enumerate([("rank1", "x"), ("rank0", "y"), ("rank1", "z")]):
        with open(tmp_path / f"{name}.log", "a") as log:
            log.write(f"{clock(10)} {text}\n")
        assert sum(source.look(look) > 0 for source in found) == 1
    assert [line[-1] for line in forwards(found, 2)] == list("baxyz")
    assert [line[-1] for line in backwards(found, 2)] == list("baxyz")
    places = around(found, found[0], found[0].live_from)
    assert [shown.row.data.decode()[-1] for shown in _behind(found, places)] == ["y", "z"]


def _behind(found: list[Source], places: dict[Source, int]) -> list[object]:
    stretch = Stretch(found, places)
    stretch.later(100)
    return list(stretch.rows)


# -- search -------------------------------------------------------------------------------


def walk(
    found: list[Source], direction: Direction, wanted: Word | Troubles
) -> list[tuple[str, bytes]]:
    """All hits, one after the other."""
    places = beginning(found) if direction > 0 else ending(found)
    hits: list[tuple[str, bytes]] = []
    while hit := _last(nearest(found, places, direction, wanted)):
        hits.append((hit.source.name, hit.row.data))
        places = around(found, hit.source, hit.row.begin)
        if direction > 0:
            places[hit.source] = hit.row.end
    return hits


def _last(steps: Iterable[Hit | None]) -> Hit | None:
    return next((step for step in steps if step is not None), None)


def test_search_finds_each_line_once_in_either_direction_and_counts_them(tmp_path: Path) -> None:
    dice = random.Random(3)
    logs = {
        name: "".join(
            f"{clock(second)} {dice.choice(['needle', 'Needle', 'hay', 'x' * 30_000])} {second}\n"
            for second in range(start, 200, 2)
        )
        for name, start in (("rank0", 0), ("rank1", 1))
    }
    found = sources(tmp_path, **logs)
    for word, fits in (("needle", ("needle", "Needle")), ("Needle", ("Needle",))):
        expected = [line for text in logs.values() for line in text.splitlines()]
        expected = sorted(line for line in expected if any(each in line for each in fits))
        down = walk(found, 1, Word(word))
        assert [data.decode() for _, data in down] == expected
        assert walk(found, -1, Word(word)) == down[::-1]
        counted = [Counted(source, Word(word)) for source in found]
        for each in counted:
            assert each.before(each.source.pager.end) is None
            while not each.is_done:
                each.step()
        assert sum(each.number for each in counted) == len(expected)
        row = found[0].pager.after(0, 60)[-1]
        upto = found[0].pager.read(0, row.end).decode().splitlines()
        assert counted[0].before(row.end) == sum(any(f in line for f in fits) for line in upto)


def test_errors_are_found_as_the_colours_show_them(tmp_path: Path) -> None:
    text = "error_rate 0.3\n" * 50 + "ValueError: no\n" + "fine\n" * 50 + "[WARNING] hot\n"
    found = sources(tmp_path, rank0=text)
    assert [data for _, data in walk(found, 1, Troubles())] == [b"ValueError: no", b"[WARNING] hot"]
    assert len(walk(found, -1, Troubles())) == 2


def test_a_word_is_marked_where_it_stands() -> None:
    assert Word("ab").marks("xAbab") == [(1, 3), (3, 5)]
    assert Word("Ab").marks("xAbab") == [(1, 3)]
    assert Word("über").rows("ÜBER\n".encode(), 0) == [(0, 6)]
    assert Word("ab").marks("İab") == [(1, 3)]
