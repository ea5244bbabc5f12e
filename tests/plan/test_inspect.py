"""`python -m trainer.inspect` on real files of every kind, good and bad: one JSON object with
the facts, or a sentence that names the key and the remedy, and never a traceback."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.plan.facts import DataFacts, FactError, Facts
from tests.conftest import without_roots_rights
from tests.trainer.data.small_hub import SmallHub
from trainer import inspect


class Inspector:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}

    def facts(
        self,
        *changes: str,
        parts: tuple[str, ...] = ("data",),
        before: Callable[[], None] | None = None,
    ) -> Facts:
        path = self._written(changes)
        words = [word for part in parts for word in ("--part", part)]
        done = subprocess.run(
            [sys.executable, "-m", "trainer.inspect", str(path), *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            preexec_fn=before,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout.count(b"\n") == 1
        assert b"Traceback" not in done.stderr
        return msgspec.json.decode(done.stdout, type=Facts)

    def here(self, *changes: str) -> DataFacts:
        """Of text that can be used, asked in this process: `datasets` takes seconds to load."""
        data = inspect.inspect(self._written(changes), ("data",)).data
        assert data is not None and data.error is None
        return data

    def _written(self, changes: tuple[str, ...]) -> Path:
        config = configuration.load(configuration.bundled("configs/demo.toml"), changes)
        path = self.folder / "config.toml"
        path.write_text(configuration.dump(config))
        return path

    def data(self, *changes: str, before: Callable[[], None] | None = None) -> DataFacts:
        data = self.facts(*changes, before=before).data
        assert data is not None
        return data

    def error(self, *changes: str, before: Callable[[], None] | None = None) -> FactError:
        error = self.data("data.validation=", *changes, before=before).error
        assert error is not None
        assert error.text and error.next.endswith(".")
        return error


@pytest.fixture
def inspector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inspector:
    monkeypatch.chdir(tmp_path)
    return Inspector(tmp_path)


def write_parquet(path: Path, texts: list[str], group: int = 4, column: str = "text") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({column: pa.array(texts, pa.string()), "n": pa.array(range(len(texts)))})
    pq.write_table(table, path, row_group_size=group)


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


# ---------------------------------------------------------------------------------------
# What can be used


def test_the_bundled_text(inspector: Inspector) -> None:
    data = inspector.data()
    assert data.error is None and data.num_shards == 2
    assert [shard.rows for shard in data.shards] == [1354, 1354]
    assert [shard.row_groups for shard in data.shards] == [16, 16]
    assert "text" in data.columns
    for shard in data.shards:
        texts = pq.read_table(shard.name, columns=["text"])["text"].to_pylist()
        size = sum(len(text.encode()) for text in texts)
        assert shard.text_bytes == pytest.approx(size, rel=0.01)
        assert shard.group_rows == [85] * 15 + [79]
        assert shard.group_bytes is not None and sum(shard.group_bytes) == shard.text_bytes
    assert data.format == "parquet"
    assert data.cache is not None and data.cache.folder.endswith("bitwatch/text")
    assert data.cache.free_bytes is not None and data.cache.free_bytes > 0


def test_the_cache_is_where_the_users_file_says(
    inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(inspector.folder / "user/bitwatch/config.toml", '[folders]\ncache = "/dev/shm/x/y"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(inspector.folder / "user"))
    cache = inspector.here().cache
    assert cache is not None and cache.folder == "/dev/shm/x/y"
    assert cache.free_bytes is not None and cache.free_bytes <= shutil.disk_usage("/dev/shm").total


def test_a_file_without_rows_is_a_fact(inspector: Inspector) -> None:
    write_parquet(inspector.folder / "text/0.parquet", [])
    write_parquet(inspector.folder / "text/1.parquet", ["a"] * 5)
    data = inspector.here("data.source=text", "data.validation=")
    assert [(s.rows, s.row_groups, s.group_rows) for s in data.shards] == [
        (0, 0, []),
        (5, 2, [4, 1]),
    ]


def test_a_folder_of_parquet_by_split(inspector: Inspector) -> None:
    for i in range(3):
        write_parquet(inspector.folder / f"text/train-{i}.parquet", ["höhe"] * (i + 5))
    write_parquet(inspector.folder / "text/validation-0.parquet", ["x"])
    data = inspector.here("data.source=text")
    assert [shard.rows for shard in data.shards] == [5, 6, 7]
    assert [shard.row_groups for shard in data.shards] == [2, 2, 2]
    assert data.num_shards == 3


def test_json_lines_and_text_files_count_as_shards_without_rows(inspector: Inspector) -> None:
    for i in range(2):
        write(inspector.folder / f"lines/{i}.jsonl", '{"text": "a"}\n{"text": "b"}\n')
        write(inspector.folder / f"plain/{i}.txt", "two\nlines\n")
    write(inspector.folder / "packed/0.jsonl.gz", gzip.compress(b'{"text": "a"}\n'))
    for source, number, size in (("lines", 2, None), ("plain/*.txt", 2, 10), ("packed", 1, None)):
        data = inspector.here(f"data.source={source}", "data.validation=")
        assert data.num_shards == number
        assert [shard.rows for shard in data.shards] == [None] * number
        assert [shard.text_bytes for shard in data.shards] == [size] * number
        bound = 28 if source == "lines" else None  # no text is longer than its JSON
        assert [shard.text_bytes_at_most for shard in data.shards] == [bound] * number


def test_every_way_in_which_arrow_stores_text(inspector: Inspector) -> None:
    texts = pa.array(["a", "b", "a"])
    stored = [texts, texts.cast(pa.large_string()), texts.dictionary_encode()]
    (inspector.folder / "text").mkdir()
    for i, column in enumerate(stored):
        pq.write_table(pa.table({"text": column}), inspector.folder / f"text/{i}.parquet")
    data = inspector.here("data.source=text", "data.validation=")
    assert [shard.rows for shard in data.shards] == [3, 3, 3]


def test_a_file_whose_name_looks_like_a_pattern(inspector: Inspector) -> None:
    write(inspector.folder / "text/a[1].txt", "one\n")
    write(inspector.folder / "text/b*.txt", "two\n")
    data = inspector.here("data.source=text", "data.validation=")
    assert (data.num_shards, len(data.shards)) == (2, 2)


def test_a_folder_called_like_another_split(inspector: Inspector) -> None:
    """Only names below the source say which split a file is of."""
    write(inspector.folder / "test/novel.txt", "one\n")
    assert inspector.here("data.source=test", "data.validation=").num_shards == 1


def test_model_and_devices_need_no_data(inspector: Inspector) -> None:
    facts = inspector.facts("data.source=/nowhere", parts=("model", "devices"))
    assert facts.data is None and facts.error is None
    assert facts.model is not None and facts.model.parameters[0].shape == [2, 128]
    assert facts.devices is not None and facts.devices.error is None
    assert facts.versions is not None and facts.versions.torch and facts.versions.datasets


# ---------------------------------------------------------------------------------------
# What cannot


BAD: list[tuple[str, list[str], str]] = [
    ("/no/such/folder", [], "data.source: /no/such/folder does not exist"),
    ("missing.parquet", [], "data.source: missing.parquet does not exist"),
    ("nothing/*.txt", [], "data.source: nothing/*.txt matches no file"),
    ("empty", [], "data.source: empty has no file of a kind that can be read"),
    ("notes.md", [], "data.source: cannot read notes.md"),
    ("bundled:dickens", [], "data.source: there is no bundled text 'bundled:dickens'"),
    ("mixed", [], "data.source: files of several kinds lie together (json, text)"),
    ("good", ["data.split=nope"], "data.split: good has no files of a split 'nope'"),
    ("good", ["data.validation=held_out"], "data.validation: good has no files of a split"),
    ("good", ["data.validation=v.txt"], "data.validation: v.txt does not exist"),
    ("good", ["data.text_column=body"], "train-0.parquet has no column 'body'"),
    ("good", ["data.text_column=n"], "column 'n' of"),
    ("other.jsonl", [], "other.jsonl has no column 'text'"),
    ("number.jsonl", [], "data.text_column: 'text' in"),
    ("array.jsonl", [], "array.jsonl does not begin with a JSON object"),
    ("junk.jsonl", [], "junk.jsonl does not begin with a JSON object"),
    ("junk.parquet", [], "junk.parquet is not a whole parquet file"),
    ("cut.parquet", [], "cut.parquet is not a whole parquet file"),
    ("good", ["data.validation=none.parquet"], "none.parquet has no rows, which breaks the stream"),
    ("none.txt", [], "none.txt is empty"),
    ("junk.txt", [], "junk.txt is not UTF-8 text"),
    ("latin.txt", [], "latin.txt is not UTF-8 text"),
    ("junk.txt.gz", [], "junk.txt.gz is not UTF-8 text"),
    ("plain.txt", ["data.text_column=body"], "plain.txt has no column 'body'"),
]


@pytest.fixture(scope="module")
def bad_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    junk = bytes(range(256)) * 20
    (folder / "empty").mkdir()
    write(folder / "notes.md", "x")
    write(folder / "mixed/a.txt", "x\n")
    write(folder / "mixed/b.jsonl", '{"text": "x"}\n')
    write_parquet(folder / "good/train-0.parquet", ["a", "b"])
    write_parquet(folder / "none.parquet", [])
    write_parquet(folder / "cut.parquet", ["a" * 50] * 50)
    write(folder / "cut.parquet", (folder / "cut.parquet").read_bytes()[:-20])
    for name in ("junk.jsonl", "junk.parquet", "junk.txt", "junk.txt.gz"):
        write(folder / name, junk)
    write(folder / "other.jsonl", json.dumps({"content": "x"}) + "\n")
    write(folder / "number.jsonl", json.dumps({"text": 7}) + "\n")
    write(folder / "array.jsonl", json.dumps([{"text": "x"}]))
    write(folder / "none.txt", "")
    write(folder / "plain.txt", "x\n")
    write(folder / "latin.txt", "Höhe\n".encode("latin-1"))
    return folder


@pytest.mark.parametrize(("source", "changes", "expected"), BAD)
def test_a_bad_source_is_a_sentence(
    bad_folder: Path, source: str, changes: list[str], expected: str
) -> None:
    error = Inspector(bad_folder).error(f"data.source={source}", *changes)
    assert error.kind == "unusable"
    assert expected in error.text
    assert error.text.startswith("data.")


def test_a_file_that_may_not_be_read(inspector: Inspector) -> None:
    for name in ("a.parquet", "a.jsonl", "a.txt"):
        write(inspector.folder / name, "x")
        (inspector.folder / name).chmod(0)
        error = inspector.error(f"data.source={name}", before=without_roots_rights)
        assert error.kind == "unusable"
        assert error.text.endswith(f"{name} cannot be read: Permission denied")


def test_a_configuration_that_is_none(inspector: Inspector) -> None:
    write(inspector.folder / "x.toml", "[model]\nd_modle = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "trainer.inspect", "x.toml"],
        cwd=inspector.folder,
        capture_output=True,
        check=True,
        timeout=120,
    )
    error = msgspec.json.decode(done.stdout, type=Facts).error
    assert error is not None and "model.d_modle: unknown key; did you mean" in error.text


# ---------------------------------------------------------------------------------------
# The hub


@pytest.fixture
def silent_hub() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_dataset_that_is_not_in_the_cache_is_unreachable_offline(inspector: Inspector) -> None:
    error = inspector.error("data.source=Salesforce/wikitext")
    assert error.kind == "unreachable"
    assert "HF_HUB_OFFLINE is set" in error.text


def test_a_hub_that_never_answers_is_noticed_before_its_libraries_notice(
    inspector: Inspector, silent_hub: str
) -> None:
    del inspector.environment["HF_HUB_OFFLINE"]
    inspector.environment |= {"HF_ENDPOINT": silent_hub, "no_proxy": "127.0.0.1"}
    error = inspector.error("data.source=Salesforce/wikitext")
    assert error.kind == "unreachable"
    assert f"{silent_hub} does not answer" in error.text


def test_a_hubs_files_tell_their_row_groups(inspector: Inspector) -> None:
    (inspector.folder / "files").mkdir()
    for i in range(2):
        write_parquet(inspector.folder / f"files/train-{i}.parquet", ["höhe"] * (6 + i))
    hub = SmallHub(inspector.folder / "files")
    del inspector.environment["HF_HUB_OFFLINE"]
    inspector.environment |= {"HF_ENDPOINT": hub.endpoint, "no_proxy": "127.0.0.1"}
    data = inspector.data("data.source=me/novel", "data.validation=")
    assert data.error is None and data.format == "parquet" and data.num_shards == 2
    assert [shard.group_rows for shard in data.shards] == [[4, 2], [4, 3]]
    assert all(shard.name.startswith("hf://datasets/me/novel@") for shard in data.shards)
    wrong = inspector.error("data.source=me/novel", "data.text_column=n")
    assert "column 'n' of hf://" in wrong.text and wrong.kind == "unusable"
