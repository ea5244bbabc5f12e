"""What `data.source` and `data.validation` mean, and the stream of rows behind them.

Decides from names alone: which local files, in which order, or which dataset of the hub.
What is in the files is judged in `files`; whether the hub answers, in `hub`. The plan and the
training both go through here, so that what was looked at is what is read.
"""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from bitwatch import config as configuration
from bitwatch import utf8
from trainer.failures import Failed

if TYPE_CHECKING:
    from datasets import IterableDataset

Kind = Literal["parquet", "json", "text", "hub"]

DEMO_TEXT = Path(__file__).resolve().parent.parent / "demo_text"
SUFFIXES: dict[str, Kind] = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".txt": "text",
    ".txt.gz": "text",
}
READABLE = ".parquet, .jsonl or .txt"
# Words by which a file or folder name says which split it belongs to.
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "eval"),
}


class SourceError(Failed):
    """Why a source cannot be used: one sentence naming the key, and what to do.

    `kind` "unreachable": it may be fine, but it is on the hub, which does not answer.
    """

    def __init__(
        self, text: str, remedy: str, kind: Literal["unusable", "unreachable"] = "unusable"
    ) -> None:
        super().__init__(f"{text}; {remedy[0].lower()}{remedy[1:]}")
        self.text, self.remedy, self.kind = text, remedy, kind


class Source(msgspec.Struct, kw_only=True, frozen=True):
    """One split of a source. `files` are absolute paths in the order of the shards; `hub`
    is the hub's id instead, with `config` and `split` as it names them. `key` is the
    configuration's key that named it, for sentences."""

    key: str
    kind: Kind
    split: str
    files: tuple[str, ...] = ()
    hub: str | None = None
    config: str | None = None


def training(data: configuration.Data) -> Source:
    """The split to train on. Raises SourceError."""
    return _resolve(data.source, data.split, data, "data.split")


def validation(data: configuration.Data) -> Source | None:
    """The text to evaluate on, or None for none. Raises SourceError."""
    wanted = data.validation.strip()
    if not wanted:
        return None
    # A word is a split of the source; anything else is a place of its own, read whole.
    if re.fullmatch(r"\w+", wanted):
        return _resolve(data.source, wanted, data, "data.validation")
    _, files = _matching(wanted, "data.validation")
    return _local(files, "validation", "data.validation")


def open_stream(source: Source) -> IterableDataset:
    """The rows of a source, streamed, unsplit and unshuffled, as `datasets` gives them.

    For a source on the hub, `hub.prepare` comes before: a hub that does not answer takes
    25 s to fail. Raises SourceError for what the hub refuses.
    """
    import datasets

    # A pass over shuffled parquet would sleep 5 s at its end (datasets 5.2).
    datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN = 0
    datasets.disable_progress_bars()  # there is no terminal at the other end
    if source.hub is not None:
        from trainer.data import hub

        return hub.load(source)
    # Names are no patterns here: unescaped, a file called "a[1].txt" is silently left out.
    files = [glob.escape(path) for path in source.files]
    return datasets.load_dataset(
        source.kind, data_files={"train": files}, split="train", streaming=True
    )


# ---------------------------------------------------------------------------------------
# Local files


def _resolve(place: str, split: str, data: configuration.Data, split_key: str) -> Source:
    if place == configuration.BUNDLED_TEXT:
        place = str(DEMO_TEXT)
    elif place.startswith("bundled:"):
        raise SourceError(
            f"data.source: there is no bundled text {place!r}",
            f'Use "{configuration.BUNDLED_TEXT}"',
        )
    elif _looks_like_hub(place):
        return Source(key=split_key, kind="hub", split=split, hub=place, config=data.config)
    root, files = _matching(place, "data.source")
    splits = _splits(root, files)
    if len(files) == 1 and split == "train":
        chosen = files
    else:
        chosen = [path for path in files if splits[path] == _canonical(split)]
    if not chosen:
        there = ", ".join(sorted(set(splits.values())))
        raise SourceError(
            f"{split_key}: {place} has no files of a split {split!r}",
            f"Name one that it has: {there}",
        )
    return _local(chosen, split, "data.source")


def _local(files: list[Path], split: str, key: str) -> Source:
    kinds = {kind for path in files if (kind := kind_of(path))}
    if len(kinds) > 1:
        raise SourceError(
            f"{key}: files of several kinds lie together ({', '.join(sorted(kinds))})",
            'Name those to read, like "folder/*.parquet"',
        )
    return Source(key=key, kind=kinds.pop(), split=split, files=tuple(map(str, files)))


def kind_of(path: Path) -> Kind | None:
    """By the file's name; None for what cannot be read as text to train on."""
    name = path.name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def _matching(place: str, key: str) -> tuple[Path, list[Path]]:
    """The folder that a path or glob starts from, and the readable files that it means,
    sorted by name. Raises SourceError."""
    path = root = Path(place).expanduser().absolute()
    if path.is_file():
        if kind_of(path) is None:
            raise SourceError(f"{key}: cannot read {place}", f"Give {READABLE} files")
        return path.parent, [_named(path, key)]
    if path.is_dir():
        inside = glob.escape(str(path)) + "/**"  # leaves hidden files out
        found = [Path(name) for name in glob.glob(inside, recursive=True)]
        what = "has no file of a kind that can be read"
    elif glob.has_magic(place):
        while glob.has_magic(str(root)):
            root = root.parent
        found = [Path(name) for name in glob.glob(str(path), recursive=True)]
        what = "matches no file" + (" of a kind that can be read" if found else "")
    else:
        raise SourceError(f"{key}: {place} does not exist", "Correct the path")
    files = sorted(file for file in found if kind_of(file) and file.is_file())
    if not files:
        raise SourceError(f"{key}: {place} {what}", f"Give {READABLE} files")
    return root, [_named(file, key) for file in files]


def _named(file: Path, key: str) -> Path:
    """Raises SourceError for one that no plan could name."""
    if not utf8.is_text(file):
        raise SourceError(f"{key}: the name of {file} is not UTF-8", "Rename it")
    return file


def _splits(root: Path, files: list[Path]) -> dict[Path, str]:
    """The split of each file. Names without such a word are training text, unless others
    say that they are: then they belong to nothing."""
    named = {path: _split_in_name(path.relative_to(root)) for path in files}
    rest = "unnamed" if "train" in named.values() else "train"
    return {path: split or rest for path, split in named.items()}


def _split_in_name(path: Path) -> str | None:
    """The split that the file's name says, else the name of the nearest folder that says
    one. `path` begins below the source: what lies above is the user's own business."""
    for part in reversed(path.parts):
        words = re.split(r"[^a-z]+", part.lower())
        for split, names in SPLIT_WORDS.items():
            if any(word in names for word in words):
                return split
    return None


def _canonical(split: str) -> str:
    return next((name for name, words in SPLIT_WORDS.items() if split in words), split)


def _looks_like_hub(place: str) -> bool:
    """Like "name" or "owner/name", and nothing of that name lies here."""
    return (
        re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", place) is not None
        and kind_of(Path(place)) is None
        and not Path(place).exists()
    )
