"""The correction that only a person can make: the text in as many equal files as there are
readers. Says what it would do, and the Python that does it.
"""

from __future__ import annotations

import glob
import json
import re

from bitwatch import config as configuration
from bitwatch.plan import obstacles, reading
from bitwatch.plan.facts import DataFacts, Shard
from bitwatch.plan.result import DataPlan

FOLDER = "even"  # that the files are written to, below wherever the Python runs
# Text that the Python below read, split and wrote each second, parquet to parquet, on two shared
# cores: 178 MB. Importing `datasets` and beginning take the time before.
BYTES_PER_S = 150e6
START_S = 3.0
NAMED_FILES = 2  # a line with the names of more cannot be read


def plan(
    config: configuration.Config, facts: DataFacts, data: DataPlan, named: int
) -> DataPlan | None:
    """What the mode of `data` would do with one file for each of its readers; None where there
    are fewer rows than files, since a file without rows breaks the stream."""
    files = data.readers
    if data.rows is not None and data.rows < files:
        return None
    rows = _shares(data.rows, files)
    text = _shares(obstacles.text_bytes(facts), files)
    shards = [
        Shard(
            name=f"{FOLDER}/train-{i:05}.parquet",
            rows=rows[i],
            row_groups=1,
            text_bytes=text[i],
            group_rows=_one(rows[i]),
            group_bytes=_one(text[i]),
        )
        for i in range(files)
    ]
    even = DataFacts(format="parquet", num_shards=files, shards=shards, cache=facts.cache)
    return reading.plan(config, even, data.mode, named)


def how(config: configuration.Config, facts: DataFacts, files: int) -> str:
    """The steps as a sentence, with the Python between backticks. The new files are called train
    and validation whatever their split was: of local files the name says which split they are,
    and only few words are understood."""
    data = config.data
    names = [shard.name for shard in facts.shards]
    local = any("://" not in name for name in names) or facts.format not in (None, "parquet")
    words = [f'data.source to "{FOLDER}"']
    if data.split != "train":
        words.append('data.split to "train"')
    opened = f"load_dataset({_opened(data, names, facts.format) if local else _hub(data)})"
    part = f"d.shard({files}, i, contiguous=True)"
    each = f'[{part}.to_parquet(f"{FOLDER}/train-{{i:05}}.parquet") for i in range({files})]'
    code = f"from datasets import load_dataset; d = {opened}; {each}"
    if re.fullmatch(r"\w+", data.validation):  # a split of the source, else a place of its own
        if local:
            words.append("data.validation to the files that hold it now")
        else:
            held_out = f"load_dataset({_hub(data, data.validation)})"
            code += f'; {held_out}.to_parquet("{FOLDER}/validation.parquet")'
            if data.validation != "validation":
                words.append('data.validation to "validation"')
    return f"Run `{code}` in Python, then set {' and '.join(words)}."


def _hub(data: configuration.Data, split: str | None = None) -> str:
    named = [data.source, *([data.config] if data.config else [])]
    return ", ".join(map(_quoted, named)) + f", split={_quoted(split or data.split)}"


def _opened(data: configuration.Data, names: list[str], format: str | None) -> str:
    """Local files as `datasets` opens them."""
    kind = _quoted(format or "parquet")
    if 0 < len(names) <= NAMED_FILES:
        listed = ", ".join(_quoted(glob.escape(name)) for name in names)
        return f'{kind}, data_files=[{listed}], split="train"'
    if glob.has_magic(data.source):
        return f'{kind}, data_files={_quoted(data.source)}, split="train"'
    return f"{_quoted(data.source)}, split={_quoted(data.split)}"


def _quoted(text: str) -> str:
    """As a string of Python, whatever is in it. No backtick: it ends the line of Python."""
    return json.dumps(text).replace("`", "\\x60")


def cost(facts: DataFacts) -> tuple[int, float]:
    """Bytes that would be written, and about how many seconds that takes; 0 where the size of
    the text is not known."""
    size = obstacles.text_bytes(facts) or 0
    return size, round(START_S + size / BYTES_PER_S, 1) if size else 0.0


def _shares(whole: int | None, parts: int) -> list[int | None]:
    """As equal as whole numbers can be, the larger ones first."""
    if whole is None:
        return [None] * parts
    return [(whole + parts - 1 - i) // parts for i in range(parts)]


def _one(amount: int | None) -> list[int] | None:
    return None if amount is None else [amount]
