"""What a plan says that an index costs is what this machine has reached before."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.plan import preflight
from bitwatch.plan.facts import CacheFacts, Facts
from trainer import inspect, prepare
from trainer.data import pace


def settings(folder: Path) -> configuration.Config:
    wanted = (
        *(f'data.source="{folder}/text"', "data.validation=", f'data.cache="{folder}/cache"'),
        "data.sharding=as-is",
    )
    return configuration.load(configuration.bundled("configs/demo.toml"), wanted)


def look(config: configuration.Config, folder: Path) -> tuple[Facts, CacheFacts]:
    path = folder / "config.toml"
    path.write_text(configuration.dump(config))
    facts = inspect.inspect(path, ("data",))
    assert facts.data is not None and facts.data.error is None and facts.data.cache is not None
    return facts, facts.data.cache


def test_a_text_that_was_written_tells_how_long_the_next_takes_and_that_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").mkdir()
    file = tmp_path / "text/a.parquet"
    rows = [f"{row} {row * row} of many" for row in range(5000)]
    pq.write_table(pa.table({"text": rows}), file, row_group_size=500)
    hour_ago = file.stat().st_mtime - 3600  # a file that changed just now is hashed each time
    os.utime(file, (hour_ago, hour_ago))
    config = settings(tmp_path)
    _, cache = look(config, tmp_path)
    assert (cache.present, cache.bytes_per_s) == (False, None)

    # So little text measures how long processes take to start: it says nothing of a larger one.
    prepare.prepare(config, lambda *_: None, lambda: None, 1).close()
    facts, cache = look(config, tmp_path)
    assert (cache.present, cache.bytes_per_s) == (True, None)
    made = preflight.make_plan(config, facts).corrections[0]
    assert (made.id, made.prepare_bytes, made.prepare_s) == ("indexed", 0, 0.0)
    assert "already there" in made.why

    # Another text, of the size that counts.
    monkeypatch.setattr(pace, "LEAST_BYTES", 100_000)
    pq.write_table(pa.table({"text": [*rows, "one more"]}), file, row_group_size=500)
    assert not look(config, tmp_path)[1].present
    index = prepare.prepare(config, lambda *_: None, lambda: None, 1)
    _, cache = look(config, tmp_path)
    assert cache.bytes_per_s is not None and not cache.present  # its hash is not remembered yet
    assert cache.bytes_per_s < index.about.bytes / index.about.seconds  # with everything around it
    index.close()

    # A file that changed is another text, whatever the cache has.
    pq.write_table(pa.table({"text": ["other", *rows]}), file, row_group_size=500)
    os.utime(file, (hour_ago, hour_ago))
    facts, cache = look(config, tmp_path)
    assert not cache.present and cache.bytes_per_s is not None
    correction = preflight.make_plan(config, facts).corrections[0]
    text_bytes = correction.prepare_bytes - 9 * 5001
    expected_s = 2.0 + text_bytes / cache.bytes_per_s
    assert correction.prepare_s == pytest.approx(expected_s, abs=0.1)


@pytest.mark.parametrize("content", ["", "[]", '{"parquet": {"bytes": 1}}', "\xff"])
def test_a_damaged_file_of_rates_costs_only_the_estimate(tmp_path: Path, content: str) -> None:
    (tmp_path / pace.RATES).write_bytes(content.encode("latin-1"))
    assert pace.known(tmp_path, "parquet") is None
    pace.note(tmp_path, "parquet", 1 << 30, 10.0)
    assert pace.known(tmp_path, "parquet") == (1 << 30) / 10
    assert pace.known(tmp_path, "hub") is None
