"""Where the flat texts lie: found again, never found damaged, deleted only when nobody reads
them, and whole whatever happens to the process that writes one."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from bitwatch import config as configuration
from tests.conftest import until, without_roots_rights
from tests.trainer.data.conftest import (
    Prepared,
    data_of,
    streamed,
    write_json_lines,
    write_parquet,
)
from trainer import prepare
from trainer.data.cache import GIB
from trainer.data.index import Index, Unusable
from trainer.failures import Failed


def write_text(path: Path, size: int) -> Path:
    """A parquet file whose text has so many bytes."""
    write_parquet(path, [f"{path.name}".ljust(99, "x")] * (size // 100))
    return path


def leave_alone(path: Path) -> None:
    """As if it had been written an hour ago: then its hash is remembered."""
    old = path.stat().st_mtime - 3600
    os.utime(path, (old, old))


def folders(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.is_dir())


# ---------------------------------------------------------------------------------------
# Found again


def test_a_text_is_written_once_for_as_long_as_nothing_changes(
    tmp_path: Path, index_of: Callable[..., Index]
) -> None:
    corpus, cache = tmp_path / "corpus", tmp_path / "cache"
    corpus.mkdir()
    write_text(corpus / "a.parquet", 10_000)
    leave_alone(corpus / "a.parquet")
    data = data_of(corpus, cache)
    said: list[str] = []
    first = index_of(data, said=said)
    did = {line.partition(":")[0] for line in said}
    assert did == {"looking for the text", "writing the text once"}
    said.clear()
    assert index_of(data, said=said).folder == first.folder
    assert said == []  # nothing was hashed, nothing was written

    # The same text elsewhere is the same text; another column or another text is not.
    shutil.copytree(corpus, tmp_path / "copy")
    assert index_of(data_of(tmp_path / "copy", cache)).folder == first.folder
    write_text(corpus / "b.parquet", 10_000)
    more = index_of(data)
    assert more.folder != first.folder
    assert more.text.tobytes() == streamed(data)

    # Damaged files are seen, by who reads and by who prepares, and written again.
    before = more.about.created
    more.close()
    first.close()
    os.truncate(more.folder / "text.bin", 100)
    with pytest.raises(Unusable, match=r"text.bin is damaged: it has 100 bytes, not 20,000"):
        Index(more.folder)
    again = index_of(data, said=said)
    assert said[1].endswith("not 20,000: it is written again")
    assert again.text.tobytes() == streamed(data)
    assert again.about.created > before
    again.close()
    with open(again.folder / "offsets.bin", "r+b") as file:
        file.write(b"\xff")
    with pytest.raises(Unusable, match=r"offsets.bin is damaged: it was changed"):
        Index(again.folder)


def test_a_source_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, small: Callable[..., configuration.Config]
) -> None:
    path = write_text(tmp_path / "a.parquet", 1000)

    def say(text: str, _: float | None) -> None:
        if text.startswith("writing"):
            leave_alone(path)

    config = small()
    config.data = data_of(path, tmp_path / "cache")
    with pytest.raises(Failed, match=r"a.parquet changed while it was being read"):
        prepare.prepare(config, say, lambda: None, 1)
    assert folders(tmp_path / "cache") == []


def test_the_folder_is_the_configurations_else_the_users_else_the_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: Callable[..., configuration.Config]
) -> None:
    def folder(**data: Any) -> Path:
        return configuration.cache_folder(small(data=data), configuration.load_user())

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "platform"))
    assert folder() == tmp_path / "platform" / "bitwatch" / "text"
    (tmp_path / "bitwatch").mkdir()
    (tmp_path / "bitwatch" / "config.toml").write_text('[folders]\ncache = "/users/own"\n')
    assert folder() == Path("/users/own")
    assert folder(cache=str(tmp_path / "named")) == tmp_path / "named"


# ---------------------------------------------------------------------------------------
# Room


def test_what_was_not_used_for_longest_makes_room_unless_somebody_reads_it(
    tmp_path: Path, index_of: Callable[..., Index]
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "mine").mkdir()  # not ours
    (cache / "mine" / "file").write_bytes(bytes(2_000_000))
    limit_gib = 2_500_000 / GIB

    def text(name: str, size: int = 1_000_000) -> Index:
        path = tmp_path / f"{name}.parquet"
        if not path.exists():
            write_text(path, size)
        return index_of(data_of(path, cache, cache_limit_gib=limit_gib))

    held = text("held")
    unused = text("unused")
    unused.close()
    newest = text("newest")
    assert folders(cache) == sorted(["mine", held.folder.name, newest.folder.name])
    assert held.text[:4].tobytes() == b"held"

    said = rf"data.cache_limit_gib: the text is .* GiB so far, beside .*, and the limit is {limit_gib:g} GiB"
    with pytest.raises(Failed, match=said):
        text("large", 1_200_000)
    assert folders(cache) == sorted(["mine", held.folder.name, newest.folder.name])
    newest.close()
    assert text("large", 1_200_000).about.bytes == 1_200_000
    held.close()


# ---------------------------------------------------------------------------------------
# Several processes, some of which die


def half_way(prepared: Prepared, cache: Path) -> None:
    """Returns when it has begun to write."""
    until(lambda: list(cache.glob("*.part")) or prepared.process.poll() is not None, "a part")
    assert prepared.process.poll() is None, prepared.wait()


def test_a_killed_builder_is_followed_by_one_that_others_wait_for(
    tmp_path: Path, launch_prepare: Callable[..., Prepared]
) -> None:
    cache = tmp_path / "cache"
    write_json_lines(tmp_path / "a.jsonl", ["row " * 50] * 1000)
    data = data_of(tmp_path / "a.jsonl", cache)

    killed = launch_prepare(data)
    half_way(killed, cache)
    here = psutil.Process(killed.process.pid)
    children = until(lambda: here.children(recursive=True), "those who read")
    killed.process.send_signal(signal.SIGKILL)
    killed.wait()
    until(lambda: not any(child.is_running() for child in children), "the end of its children")
    (wreck,) = cache.glob("*.part")
    (wreck / "part-000099").write_bytes(b"a part that the next one does not have")

    builder = launch_prepare(data)
    until(lambda: not (wreck / "part-000099").exists(), "the second builder")
    half_way(builder, cache)
    builder.process.send_signal(signal.SIGSTOP)
    waiting = launch_prepare(data)
    says = f"waiting for another run (pid {builder.process.pid}) that is writing the same text"
    until(lambda: says in waiting.said(), "a word of waiting")
    builder.process.send_signal(signal.SIGCONT)
    assert (builder.wait(), waiting.wait()) == (0, 0)
    assert not any("writing the text" in line for line in waiting.said())
    assert waiting.last().state == builder.last().state == "done"
    assert waiting.said()[-1] == builder.said()[-1] == "the text is there: 201 kB, 1,000 documents"

    where = json.loads(waiting.run.index(waiting.attempt).read_bytes())
    assert (where["documents"], where["bytes"]) == (1000, 201_000)
    assert folders(cache) == [where["key"]] == [Path(where["path"]).name]
    inside = sorted(path.name for path in Path(where["path"]).iterdir())
    assert inside == ["index.json", "offsets.bin", "text.bin"]
    with_index = Index(Path(where["path"]))
    assert with_index.text.tobytes() == streamed(data)


@pytest.mark.parametrize("how", ["file", "signal"])
def test_a_stop_leaves_nothing_behind(
    tmp_path: Path, launch_prepare: Callable[..., Prepared], how: str
) -> None:
    cache = tmp_path / "cache"
    write_json_lines(tmp_path / "a.jsonl", ["row " * 50] * 1000)
    prepared = launch_prepare(data_of(tmp_path / "a.jsonl", cache))
    half_way(prepared, cache)
    children = psutil.Process(prepared.process.pid).children(recursive=True)
    if how == "file":
        prepared.run.stop(prepared.attempt).write_text("{}")
    else:
        prepared.process.terminate()
    assert prepared.wait() == 3
    assert (prepared.last().state, prepared.last().cause) == ("stopped", "")
    assert folders(cache) == []
    assert not prepared.run.index(prepared.attempt).exists()
    until(lambda: not any(child.is_running() for child in children), "the end of its children")


# ---------------------------------------------------------------------------------------
# Disks


def fails(prepared: Prepared) -> str:
    """The one sentence that it ends with."""
    assert prepared.wait() == 1
    last = prepared.last()
    assert last.state == "failed"
    assert "Traceback" not in prepared.errors
    assert prepared.errors.strip() == last.cause
    return last.cause


def test_a_cache_that_may_only_be_read_serves_what_it_has(
    tmp_path: Path, launch_prepare: Callable[..., Prepared], index_of: Callable[..., Index]
) -> None:
    cache = tmp_path / "cache"
    path = write_text(tmp_path / "a.parquet", 1000)
    there = index_of(data_of(path, cache))
    there.close()
    cache.chmod(0o500)
    (cache / f"{there.folder.name}.lock").chmod(0o400)
    found = launch_prepare(data_of(path, cache), preexec_fn=without_roots_rights)
    other = write_text(tmp_path / "b.parquet", 1000)
    refused = launch_prepare(data_of(other, cache), preexec_fn=without_roots_rights)
    assert found.wait() == 0
    cause = fails(refused)
    assert cause.startswith(f"data.cache: {cache}/")
    assert cause.endswith(
        ".lock cannot be written: Permission denied; name a folder that you may write to"
    )
    cache.chmod(0o700)


def test_a_full_disk_is_named_and_left_as_it_was(
    tmp_path: Path, small_disk: Path, launch_prepare: Callable[..., Prepared]
) -> None:
    path = write_text(tmp_path / "a.parquet", 1_200_000)
    cause = fails(launch_prepare(data_of(path, small_disk / "cache")))
    assert cause == (
        f"data.cache: the disk of {small_disk}/cache is full (No space left on device); make "
        "room on it, or name a folder on another disk"
    )
    assert folders(small_disk / "cache") == []


def test_bad_input_ends_with_its_sentence(
    tmp_path: Path, launch_prepare: Callable[..., Prepared]
) -> None:
    path = write_text(tmp_path / "a.parquet", 1000)
    wrong = launch_prepare(data_of(path, tmp_path / "cache", text_column="body"))
    (tmp_path / "b.txt").write_bytes(b"\xff\n")
    broken = launch_prepare(data_of(tmp_path / "b.txt", tmp_path / "cache"))
    assert "has no column 'body'; it has other, text" in fails(wrong)
    assert broken.wait() == 1  # with a traceback of the library in the log
    assert "b.txt cannot be read: UnicodeDecodeError" in broken.last().cause
    assert folders(tmp_path / "cache") == []
