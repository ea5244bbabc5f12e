"""Makes the demo's parquet files from the R package janeaustenr. See README.md beside it.

Run by hand, once: `python -m trainer.demo_text.make FOLDER`, where FOLDER is the installed
package (it holds `data/Rdata.rdb`). Needs the PyPI package `rdata`, which nothing else does.
The same input and the same pyarrow give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import random
import re
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
TITLES = {  # R object -> title, in order of publication
    "sensesensibility": "Sense and Sensibility",
    "prideprejudice": "Pride and Prejudice",
    "mansfieldpark": "Mansfield Park",
    "emma": "Emma",
    "northangerabbey": "Northanger Abbey",
    "persuasion": "Persuasion",
}
HELD_OUT_BOOK = "persuasion"
HELD_OUT_FROM = "Chapter 16"  # to the end: nine chapters, 5 % of all text
PASSAGE_BYTES = 1000  # a passage ends with the paragraph that reaches this size
TRAIN_FILES = 2  # the incident's number of shards
TRAIN_ROW_GROUPS = 16  # in each file
VALIDATION_ROW_GROUPS = 4
SEED = 1
ZSTD_LEVEL = 19


def main(package: Path) -> None:
    train: list[tuple[str, str]] = []
    validation: list[tuple[str, str]] = []
    for name, lines in read_novels(package / "data").items():
        text = "\n".join(line.rstrip() for line in lines)
        held_out = ""
        if name == HELD_OUT_BOOK:
            text, heading, rest = text.partition(f"\n{HELD_OUT_FROM}\n")
            held_out = heading + rest
        train += [(passage, TITLES[name]) for passage in passages(text)]
        validation += [(passage, TITLES[name]) for passage in passages(held_out)]
    # A stream that is read front to back, without a shuffle buffer, must meet every book
    # from its first batch on. Validation keeps the order of the book.
    random.Random(SEED).shuffle(train)
    per_file = -(-len(train) // TRAIN_FILES)
    for i in range(TRAIN_FILES):
        rows = train[i * per_file : (i + 1) * per_file]
        write(rows, f"train-{i:05d}-of-{TRAIN_FILES:05d}.parquet", TRAIN_ROW_GROUPS)
    write(validation, "validation-00000-of-00001.parquet", VALIDATION_ROW_GROUPS)


def read_novels(folder: Path) -> dict[str, list[str]]:
    """Lines of each novel, from R's lazy-load database: `Rdata.rdx` says where each object
    lies in `Rdata.rdb`; there, 4 bytes of size (big-endian), then a zlib stream of RDS."""
    index = _rds(gzip.decompress((folder / "Rdata.rdx").read_bytes()))
    database = (folder / "Rdata.rdb").read_bytes()
    places = {str(name): place for name, place in index["variables"].items()}
    novels = {}
    for name in TITLES:
        start, size = (int(number) for number in places[name])
        raw = zlib.decompress(database[start + 4 : start + size])
        novels[name] = [str(line) for line in _rds(raw)]
    return novels


def passages(text: str) -> list[str]:
    """Runs of whole paragraphs of at least PASSAGE_BYTES each (the last may be shorter)."""
    done: list[str] = []
    open_paragraphs: list[str] = []
    size = 0
    for paragraph in re.split(r"\n{2,}", text.strip()):
        open_paragraphs.append(paragraph)
        size += len(paragraph.encode()) + 2
        if size >= PASSAGE_BYTES:
            done.append("\n\n".join(open_paragraphs))
            open_paragraphs, size = [], 0
    if size:
        done.append("\n\n".join(open_paragraphs))
    return [passage for passage in done if passage]


def write(rows: list[tuple[str, str]], name: str, row_groups: int) -> None:
    texts, books = zip(*rows, strict=True)
    table = pa.table({"text": pa.array(texts), "book": pa.array(books)})
    pq.write_table(
        table,
        HERE / name,
        row_group_size=-(-len(rows) // row_groups),
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        use_dictionary=["book"],  # every text is different: a dictionary would hold it twice
        write_statistics=False,  # they would repeat the first and last text of each group
    )
    data = (HERE / name).read_bytes()
    text_bytes = sum(len(text.encode()) for text in texts)
    groups = pq.read_metadata(HERE / name).num_row_groups
    print(
        f"| {name} | {len(rows)} | {groups} | {text_bytes} | {len(data)} "
        f"| {hashlib.sha256(data).hexdigest()} |"
    )


def _rds(raw: bytes) -> Any:
    # By name, so that nobody needs it to check this file's types.
    rdata: Any = importlib.import_module("rdata")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Unknown file type: assumed RDS", which it is
        return rdata.conversion.convert(rdata.parser.parse_data(raw))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m trainer.demo_text.make FOLDER_OF_JANEAUSTENR")
    main(Path(sys.argv[1]))
