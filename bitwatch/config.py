"""The TOML file of a run as typed structs, and the user's own file.

Strict: an unknown key, a wrong type or an impossible value is a `ConfigError`, one sentence
that names the file, the key's path and what to do. This module knows nothing of torch,
datasets, GPUs or the network: what only they can tell is judged in `bitwatch.plan`.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import platformdirs

from bitwatch import utf8
from bitwatch.strict import ConfigError, apply_change, convert, read_toml, toml_value

HERE = Path(__file__).resolve().parent
BUNDLED_TEXT = "bundled:austen"  # the demo's data source, inside the trainer package


class Section(msgspec.Struct, forbid_unknown_fields=True):
    """A table of the file. Field names are the keys."""


class Run(Section):
    name: str = "run"
    seed: int = 1


class Model(Section):
    """Shape of the BitTransformerLM. `context` is in bits."""

    d_model: int
    heads: int
    layers: int
    feedforward: int
    context: int
    parity: bool = False
    expected_parameters: int | None = None


class Data(Section):
    """Where the text comes from and how it is dealt out to the readers.

    `source` is a hub id, a folder or a glob of parquet, jsonl or txt files, or "bundled:austen".
    `validation` names a split of it, or a file or glob of its own; empty means none. `workers` is
    those of each rank, 0 reads in the rank itself; `shuffle` the rows of a buffer, 0 is off: with
    "reshard" anything above shuffles each reader's row groups, without a buffer, and "indexed"
    always shuffles. `cache` is the folder of the texts that "indexed" writes, limited in all by
    `cache_limit_gib`.
    """

    source: str
    config: str | None = None
    split: str = "train"
    validation: str = ""
    text_column: str = "text"
    streaming: bool = True
    workers: int = 2
    start_method: Literal["fork", "spawn"] = "fork"
    sharding: Literal["ask", "auto", "as-is", "reshard", "indexed"] = "ask"
    shuffle: int = 0
    cache: str | None = None
    cache_limit_gib: float | None = None


class Parallel(Section):
    """How the model is spread. Time-outs are those of the collectives, in seconds."""

    ranks: int = 1
    shard: Literal["full", "grad"] = "full"
    precision: Literal["bf16", "fp32"] = "bf16"
    activation_checkpointing: Literal["none", "selective", "full"] = "none"
    compile: bool = False
    device: Literal["auto", "cuda", "cpu"] = "auto"
    start_timeout_s: float = 600.0
    step_timeout_s: float = 300.0


class Train(Section):
    """The optimisation. `batch` counts sequences of one optimiser step over all ranks;
    `micro_batch` those of one forward pass of one rank. `warmup` is in steps. `clip` is the
    largest gradient norm, 0 for none. `eval_every` 0 means only at the end."""

    steps: int
    batch: int
    micro_batch: int
    learning_rate: float
    schedule: Literal["cosine", "constant", "wsd"] = "cosine"
    warmup: int = 0
    weight_decay: float = 0.0
    clip: float = 1.0
    log_every: int = 10
    eval_every: int = 0
    eval_steps: int = 50
    on_not_finite: Literal["stop", "skip"] = "stop"
    skip_outliers: bool = False


class Checkpoint(Section):
    """`every` is in steps, 0 for only at the end and on stop. `keep` counts whole ones.
    `async` writes a copy in host memory beside the training; false lets the training wait."""

    every: int = 0
    keep: int = 2
    asynchronous: bool = msgspec.field(name="async", default=True)
    folder: str | None = None


class Watch(Section):
    """How closely the run is watched. Seconds; `None` takes the documented default."""

    stall_s: float = 30.0
    sample_s: float = 1.0
    grace_s: float | None = None
    leftover_grace_s: float = 3.0
    max_processes: int | None = None


class Config(Section, kw_only=True):
    """A whole run. Sections that have no sensible default must be in the file."""

    run: Run = msgspec.field(default_factory=Run)
    model: Model
    data: Data
    parallel: Parallel = msgspec.field(default_factory=Parallel)
    train: Train
    checkpoint: Checkpoint = msgspec.field(default_factory=Checkpoint)
    watch: Watch = msgspec.field(default_factory=Watch)


class Folders(Section):
    runs: str | None = None
    cache: str | None = None


class User(Section):
    """The user's own file: where runs and caches live, how the screen behaves, and the command
    that is run when something severe happens (see `supervise.notify`). `keys` holds keys of the
    screen by the id of what they do."""

    folders: Folders = msgspec.field(default_factory=Folders)
    theme: str | None = None
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    notify_command: str | None = None


# ---------------------------------------------------------------------------------------
# Reading


def bundled(relative: str) -> Path:
    """Path of a file that ships with bitwatch (`configs/demo.toml`, `themes/...`).

    In a wheel they lie inside the package, in a checkout beside it.
    """
    inside = HERE / relative
    return inside if inside.exists() else HERE.parent / relative


def find(argument: str | None) -> Path:
    """The file a command's CONFIG argument means: a path, or the name of a bundled one."""
    if argument is None:
        return bundled("configs/demo.toml")
    path = Path(argument)
    if path.exists():
        return path
    if path.suffix in ("", ".toml") and path.name == argument:
        shipped = bundled(f"configs/{path.stem}.toml")
        if shipped.exists():
            return shipped
    names = ", ".join(sorted(p.stem for p in bundled("configs").glob("*.toml")))
    raise ConfigError(f"{argument}: no such file; give a path, or one of the bundled: {names}")


def load(path: Path, changes: Sequence[str] = (), *, lenient: bool = False) -> Config:
    """Reads `path`, applies `--set` changes ("a.b=value") and checks everything.

    `lenient` drops unknown keys, for a configuration that an older version recorded.
    Raises ConfigError.
    """
    table = read_toml(path)
    for change in changes:
        apply_change(table, change)
    return parse(table, str(path), lenient=lenient)


def parse(table: dict[str, Any], where: str, *, lenient: bool = False) -> Config:
    """Typed and checked form of a decoded TOML table; `where` names it in errors."""
    config = convert(table, Config, where, lenient=lenient)
    from bitwatch import checks  # which looks at what is defined here

    for problem in (*checks.impossible(config), *checks.unbuilt(config)):
        raise ConfigError(f"{where}: {problem}")
    return config


def changed(config: Config, changes: dict[str, Any]) -> Config:
    """Another configuration, with these keys ("data.sharding") set. Raises ConfigError."""
    table = msgspec.to_builtins(config)
    for key, value in changes.items():
        section, _, name = key.partition(".")
        table.setdefault(section, {})[name] = value
    return parse(table, "the change", lenient=False)


def value(config: Config, key: str) -> Any:
    """Of a key ("data.sharding") that there is."""
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)


def anchored(config: Config, folder: Path) -> Config:
    """With places as absolute paths: ranks run elsewhere, and a resume may come from another
    directory. Relative ones are taken from `folder`, as the shell would. A word that names
    nothing there (a hub id, a split) stays as it is."""
    data, checkpoint = config.data, config.checkpoint
    data.cache = data.cache and str(folder / Path(data.cache).expanduser())
    data.source = _anchored(data.source, folder)
    if not re.fullmatch(r"\w*", data.validation):
        data.validation = _anchored(data.validation, folder)
    if checkpoint.folder is not None:
        checkpoint.folder = str(folder / Path(checkpoint.folder).expanduser())
    for key in ("data.cache", "data.source", "data.validation", "checkpoint.folder"):
        if not utf8.is_text(place := value(config, key) or ""):
            raise ConfigError(f"{key}: the name of {place} is not UTF-8; name another place")
    return config


def _anchored(place: str, folder: Path) -> str:
    path = folder / Path(place).expanduser()
    meant = place.startswith((".", "~")) or glob.has_magic(place) or path.exists()
    return str(path) if meant and not place.startswith("bundled:") else place


def load_user() -> User:
    """The user's own file, or the defaults when there is none. Raises ConfigError. Whether
    there is a theme of that name, and what `keys` names, is judged when a screen is opened."""
    path = user_file()
    if not path.exists():
        return User()
    table = read_toml(path)
    _check_command(table.get("notify_command"), path)
    user: User = convert(table, User, str(path))
    return user


def _check_command(command: Any, path: Path) -> None:
    """notify_command: None, or what sh can run."""
    if command is None or (isinstance(command, str) and command.strip() and "\0" not in command):
        return
    raise ConfigError(
        f"{path}: notify_command: must be a command for sh, which reads the sentence from its "
        f'standard input, such as "mail -s bitwatch me@example.org", not {toml_value(command)}'
    )


def user_file() -> Path:
    return platformdirs.user_config_path("bitwatch") / "config.toml"


def dump(config: Config) -> str:
    """The configuration as TOML that `load` reads back to an equal one."""
    lines: list[str] = []
    for section, keys in msgspec.to_builtins(config).items():
        lines.append(f"[{section}]")
        lines += [f"{k} = {toml_value(v)}" for k, v in keys.items() if v is not None]
        lines.append("")
    return "\n".join(lines)


def bytes_per_sequence(model: Model) -> int:
    """Whole bytes in one context window: a window never starts inside a byte."""
    return model.context // (9 if model.parity else 8)


def home(user: User | None = None) -> Path:
    """The folder that holds all runs: $BITWATCH_HOME, the user's file, the platform's.
    Raises ConfigError."""
    if os.environ.get("BITWATCH_HOME"):
        return _folder(Path(os.environ["BITWATCH_HOME"]), "runs: set BITWATCH_HOME to another")
    user = user or load_user()
    wanted = Path(user.folders.runs or platformdirs.user_state_path("bitwatch") / "runs")
    return _folder(wanted, "runs: set BITWATCH_HOME to another")


def cache_folder(config: Config, user: User) -> Path:
    """The folder that keeps indexed text: data.cache, the user's file, the platform's.
    Raises ConfigError."""
    wanted = config.data.cache or user.folders.cache
    folder = Path(wanted or platformdirs.user_cache_path("bitwatch") / "text")
    return _folder(folder, "indexed text: set data.cache to another")


def _folder(path: Path, of_what: str) -> Path:
    """Raises ConfigError for one that no record could name."""
    path = path.expanduser().absolute()
    if not utf8.is_text(path):
        raise ConfigError(f"{path}: its name is not UTF-8, so it cannot be the folder of {of_what}")
    return path
