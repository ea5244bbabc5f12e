"""The bundled text is what its README says it is."""

from __future__ import annotations

import hashlib
import re

import pyarrow.parquet as pq

from trainer.data.source import DEMO_TEXT

BOOKS = 6
TRAIN = sorted(DEMO_TEXT.glob("train-*.parquet"))
VALIDATION = sorted(DEMO_TEXT.glob("validation-*.parquet"))


def rows(paths: list) -> list[tuple[str, str]]:
    columns = [pq.read_table(path).to_pydict() for path in paths]
    return [pair for table in columns for pair in zip(table["text"], table["book"], strict=True)]


def test_it_is_small_and_has_the_incidents_two_shards() -> None:
    assert len(TRAIN) == 2 and len(VALIDATION) == 1
    assert sum(path.stat().st_size for path in TRAIN + VALIDATION) < 2_000_000
    assert [pq.read_metadata(path).num_row_groups for path in TRAIN] == [16, 16]


def test_the_readme_has_the_hash_of_every_file() -> None:
    readme = (DEMO_TEXT / "README.md").read_text()
    for path in TRAIN + VALIDATION:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert re.search(rf"\| {path.name} \|.*\| {digest} \|", readme)


def test_nothing_that_is_scored_was_trained_on() -> None:
    trained_on = {paragraph for text, _ in rows(TRAIN) for paragraph in text.split("\n\n")}
    held_out = [
        paragraph
        for text, _ in rows(VALIDATION)
        for paragraph in text.split("\n\n")
        if len(paragraph) > 100  # short ones ("Yes," said Emma) may rightly repeat
    ]
    assert len(held_out) > 100
    assert not trained_on.intersection(held_out)


def test_every_book_is_met_at_the_start_of_every_shard() -> None:
    for path in TRAIN:
        assert len({book for _, book in rows([path])[:40]}) == BOOKS
