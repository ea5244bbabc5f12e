"""Facts about model, data and devices, for a plan: one JSON object on stdout, nothing else.

    python -m trainer.inspect CONFIG.toml [--part model|data|devices]...

The object is a `bitwatch.plan.facts.Facts`; without `--part` it holds all parts. Whatever
goes wrong is in it too, as a sentence, and the exit status is 0: a status other than 0 means
that this program itself was called wrongly. Noise of libraries goes to stderr. Ends in
seconds even where a name server, the hub or a network disk never answers, and with its
parent, whose pid is in BITWATCH_PARENT.
"""

from __future__ import annotations

from trainer import lifeline

if __name__ == "__main__":
    lifeline.hold_child()

import argparse
import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bitwatch import config as configuration
from bitwatch.plan.facts import (
    CacheFacts,
    DataFacts,
    DeviceFacts,
    FactError,
    Facts,
    Gpu,
    ModelFacts,
    Parameter,
    Versions,
)
from trainer.data import files, hub, identity, index, pace, source
from trainer.failures import sentence

PARTS = ("model", "data", "devices")
# Longest that the data may take: a hub that answers slowly needs several questions.
DATA_S = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m trainer.inspect")
    parser.add_argument("config", type=Path)
    parser.add_argument("--part", action="append", choices=PARTS, dest="parts")
    arguments = parser.parse_args()
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not mix with the answer
    facts = inspect(arguments.config, tuple(arguments.parts or PARTS))
    with open(answer, "wb") as out:
        out.write(msgspec.json.encode(facts) + b"\n")
    sys.stderr.flush()
    os._exit(0)  # a thread that waits for a name server would delay the exit for as long


def inspect(path: Path, parts: tuple[str, ...] = PARTS) -> Facts:
    """The facts of the configuration at `path`. Does not raise."""
    try:
        config = configuration.load(path)
    except configuration.ConfigError as error:
        return Facts(error=FactError(kind="unusable", text=str(error)))
    facts = Facts(versions=Versions())
    # The hub is asked whether it is there while torch is imported.
    probe = hub.Probe() if "data" in parts and _asks_hub(config.data) else None
    if "model" in parts:
        facts.model = _model(config)
    if "devices" in parts:
        facts.devices = _devices()
    if "data" in parts:
        _import_datasets()  # on a busy machine it takes long, and says nothing of the text
        facts.data = _bounded(lambda: _data(config, probe))
    facts.versions = _versions()
    return facts


def _model(config: configuration.Config) -> ModelFacts:
    try:
        import torch

        from trainer.model import build_model

        class WithoutValues(torch.overrides.TorchFunctionMode):
            """Skips torch.nn.init: on the meta device it gives no values, and its normal_
            imports the compiler for 1.6 s first (torch 2.13)."""

            def __torch_function__(
                self, function: Any, types: Any, arguments: Any = (), named: Any = None
            ) -> Any:
                if getattr(function, "__module__", None) == "torch.nn.init":
                    return arguments[0] if arguments else named["tensor"]
                return function(*arguments, **(named or {}))

        with torch.device("meta"), WithoutValues():
            model = build_model(config.model)
        return ModelFacts(
            parameters=[
                Parameter(name=name, shape=list(parameter.shape))
                for name, parameter in model.named_parameters()
            ]
        )
    except Exception as error:
        return ModelFacts(error=_failed("The model cannot be built", error, "Correct [model]."))


def _devices() -> DeviceFacts:
    try:
        import torch

        gpus = []
        for index in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(index)
            gpus.append(Gpu(name=about.name, memory_mib=about.total_memory >> 20))
        return DeviceFacts(gpus=gpus)
    except Exception as error:
        remedy = "Look at nvidia-smi."
        return DeviceFacts(error=_failed("The GPUs cannot be asked", error, remedy))


def _versions() -> Versions:
    """Of what this process has imported, and of datasets by its metadata alone."""
    import importlib.metadata

    versions = Versions(datasets=importlib.metadata.version("datasets"))
    torch: Any = sys.modules.get("torch")
    if torch is None:
        versions.torch = importlib.metadata.version("torch")
        return versions
    versions.torch = str(torch.__version__)  # else a class of torch's own
    versions.cuda = torch.version.cuda
    if torch.cuda.is_available() and torch.distributed.is_nccl_available():
        versions.nccl = ".".join(map(str, torch.cuda.nccl.version()))
    return versions


# ---------------------------------------------------------------------------------------
# Data


def _asks_hub(data: configuration.Data) -> bool:
    try:
        return source.training(data).hub is not None and not hub.offline()
    except source.SourceError:
        return False


def _import_datasets() -> None:
    with contextlib.suppress(Exception):  # whoever needs it says what is wrong with it
        import datasets  # noqa: F401


def _data(config: configuration.Config, probe: hub.Probe | None) -> DataFacts:
    facts = _of_source(config.data, probe)
    facts.cache = _cache(config)
    return facts


def _of_source(data: configuration.Data, probe: hub.Probe | None) -> DataFacts:
    train = source.training(data)
    validation = source.validation(data)
    if train.hub is not None:
        hub.prepare(probe)
        stream = source.open_stream(train)
        return _of_hub(stream, data, validation)
    if validation is not None:
        files.look(validation, data.text_column)
    # A file without rows is judged by the plan: only one way of reading breaks at it.
    shards, columns = files.look(train, data.text_column, empty_allowed=True)
    counted = source.open_stream(train).num_shards
    # The names and sizes are of our list of files; the count is what `datasets` says.
    return DataFacts(
        format=train.kind,
        num_shards=counted,
        shards=shards if len(shards) == counted else [],
        columns=columns,
    )


def _of_hub(stream: Any, data: configuration.Data, validation: source.Source | None) -> DataFacts:
    """What the hub says without sending any text; of parquet, what the files' ends say."""
    columns = list(stream.column_names or ())
    if columns and data.text_column not in columns:
        raise source.SourceError(
            f"data.text_column: {data.source} has no column {data.text_column!r}",
            f"Name the one of these that holds the text: {', '.join(columns)}",
        )
    if validation is not None:
        source.open_stream(validation)
    from trainer.data import row_groups, sharing

    names = sharing.parquet_files(stream)
    shards = row_groups.look(names, "data.source", data.text_column) if names else []
    return DataFacts(
        format="parquet" if names else None,
        num_shards=stream.num_shards,
        shards=shards if len(shards) == stream.num_shards else [],
        columns=columns,
    )


def _cache(config: configuration.Config) -> CacheFacts:
    """Where an index would be written to: a folder that need not be there yet. Whether the
    index of a dataset of the hub is there is not asked: the hub would have to be."""
    try:
        folder = configuration.cache_folder(config, configuration.load_user())
    except configuration.ConfigError:  # of the user's own file: the command says so
        folder = configuration.cache_folder(config, configuration.User())
    facts = CacheFacts(folder=str(folder))
    there = next((place for place in (folder, *folder.parents) if place.exists()), None)
    if there and os.access(there, os.W_OK | os.X_OK):
        with contextlib.suppress(OSError):
            facts.free_bytes = shutil.disk_usage(there).free
    text = source.training(config.data)
    facts.bytes_per_s = pace.known(folder, text.kind)
    if key := identity.remembered(text, config.data.text_column, folder):
        with contextlib.suppress(index.Unusable):
            index.check(folder / key)
            facts.present = True
    return facts


def _bounded(look: Callable[[], DataFacts]) -> DataFacts:
    """What `look` finds, or says, or that it took too long. Never raises."""
    found = [
        DataFacts(
            error=FactError(
                kind="unreachable",
                text=f"data.source: nothing was learnt of it within {DATA_S:g} s",
                next="Look whether the hub, or the disk that it is on, answers.",
            )
        )
    ]

    def run() -> None:
        try:
            found[0] = look()
        except source.SourceError as error:
            remedy = f"{error.remedy}."
            found[0] = DataFacts(error=FactError(kind=error.kind, text=error.text, next=remedy))
        except Exception as error:
            remedy = "Look at the text of the error, and at data.source."
            found[0] = DataFacts(error=_failed("data.source: cannot be read", error, remedy))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(DATA_S)
    return found[0]


def _failed(what: str, error: Exception, remedy: str) -> FactError:
    return FactError(kind="failed", text=f"{what}: {sentence(error)}", next=remedy)


if __name__ == "__main__":
    main()
