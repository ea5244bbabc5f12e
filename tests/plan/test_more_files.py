"""The Python that a plan gives to a person: run as it stands, it makes the plan that was promised."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.plan import more_files, preflight
from bitwatch.plan.facts import DataFacts, Facts, Shard
from bitwatch.plan.result import Correction
from trainer import inspect
from trainer.data import source

ROWS = 2003  # no multiple of the readers


def settings(folder: Path, source: str, *changes: str) -> configuration.Config:
    wanted = (
        *(f'data.source="{source}"', "data.validation=", "data.sharding=as-is", "data.workers=2"),
        *("parallel.ranks=3", "train.batch=6", "train.micro_batch=2", f'data.cache="{folder}/c"'),
        *changes,
    )
    return configuration.load(configuration.bundled("configs/demo.toml"), wanted)


def facts_of(config: configuration.Config, folder: Path) -> Facts:
    path = folder / "config.toml"
    path.write_text(configuration.dump(config))
    return inspect.inspect(path, ("data",))


def code_in(text: str) -> str:
    (code,) = re.findall("`([^`]*)`", text)
    return code


def run(code: str, folder: Path) -> None:
    environment = {**os.environ, "HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("files", "source"),
    [
        (["train-0.parquet", "train-1.parquet"], "text"),
        (["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"], "text/*.jsonl"),
    ],
)
def test_what_a_person_is_told_to_run_makes_the_plan_that_was_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").mkdir()
    rows = [f"row {row:05} of these" for row in range(ROWS)]
    for number, name in enumerate(files):
        its_rows = rows[number * 600 : (number + 1) * 600 if name != files[-1] else None]
        if name.endswith(".parquet"):
            pq.write_table(pa.table({"text": its_rows}), tmp_path / "text" / name)
        else:
            lines = [msgspec.json.encode({"text": row}) for row in its_rows]
            (tmp_path / "text" / name).write_bytes(b"\n".join(lines) + b"\n")
    config = settings(tmp_path, source)
    made = preflight.make_plan(config, facts_of(config, tmp_path))
    more: Correction = next(one for one in made.corrections if one.id == "more-files")
    assert more.changes == {} and 'set data.source to "even"' in more.why

    run(code_in(more.why), tmp_path)
    config = settings(tmp_path, "even")
    then = preflight.make_plan(config, facts_of(config, tmp_path))
    data = then.data
    assert (data.readers_idle, data.copies, data.read_amplification) == (0, 1, 1)
    assert (data.num_shards, data.readers_busy) == (more.num_shards, more.readers_busy) == (6, 6)
    assert (data.split, then.corrections) == ("shards", [])
    if more.data.rows_per_rank is not None:
        assert data.rows_per_rank == more.data.rows_per_rank
    assert data.rows == ROWS
    read = [pq.read_table(shard)["text"].to_pylist() for shard in sorted(Path("even").iterdir())]
    assert [row for of_a_file in read for row in of_a_file] == rows  # nothing lost, in its order


def test_a_dataset_of_the_hub_is_written_with_what_is_held_out() -> None:
    config = configuration.load(configuration.bundled("configs/1b21.toml"))
    shards = [Shard(name=f"hf://datasets/Salesforce/wikitext@0/{i}.parquet") for i in range(2)]
    how = more_files.how(config, DataFacts(format="parquet", shards=shards), 16)
    code = code_in(how)
    compile(code, "what a person runs", "exec")
    assert 'load_dataset("Salesforce/wikitext", "wikitext-103-raw-v1", split="train")' in code
    assert 'split="validation").to_parquet("even/validation.parquet")' in code
    assert "range(16)" in code and how.endswith('set data.source to "even".')


@pytest.mark.parametrize(
    ("split", "held_out"),
    [("train_sft", "test_sft"), ("unsupervised", "heldout"), ("train[:50%]", "validation")],
)
def test_files_of_a_split_with_any_name_are_found_again(
    tmp_path: Path, split: str, held_out: str
) -> None:
    """As the trainer finds them, with what the sentence says to set."""
    config = configuration.load(configuration.bundled("configs/1b21.toml"))
    config.data.split, config.data.validation = split, held_out
    shards = [Shard(name="hf://datasets/Salesforce/wikitext@0/0.parquet")]
    how = more_files.how(config, DataFacts(format="parquet", shards=shards), 2)
    assert f'split="{split}"' in how and f'split="{held_out}"' in how
    (tmp_path / "even").mkdir()
    for pattern in re.findall(r'to_parquet\(f?"([^"]+)"', how):
        for i in range(2):
            pq.write_table(pa.table({"text": ["a"]}), tmp_path / pattern.replace("{i:05}", f"{i}"))
    told = dict(re.findall(r'data\.(\w+) to "(\w+)"', how))
    assert told.pop("source") == "even"
    data = msgspec.structs.replace(config.data, source=str(tmp_path / "even"), **told)
    names = [Path(path).name for path in source.training(data).files]
    assert names == ["train-0.parquet", "train-1.parquet"]
    validation = source.validation(data)
    assert validation is not None
    assert [Path(path).name for path in validation.files] == ["validation.parquet"]


def test_a_name_cannot_end_the_line_of_python() -> None:
    config = configuration.load(configuration.bundled("configs/demo.toml"))
    shards = [Shard(name='/te"xt/`rm`\n/a[1].parquet')]
    code = code_in(more_files.how(config, DataFacts(format="parquet", shards=shards), 2))
    names = re.search(r"data_files=(\[.*?\]), split", code)
    assert names is not None and eval(names[1]) == ['/te"xt/`rm`\n/a[[]1].parquet']
    assert "\n" not in code
