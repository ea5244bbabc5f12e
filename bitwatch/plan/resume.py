"""Whether an attempt can go on at the very place of the text where a checkpoint left it.

What decides the order of the text depends on the mode. The trainer keeps it in the checkpoint
beside the place, and compares; here it can be compared before anything is launched.
"""

from __future__ import annotations

from typing import Any

from bitwatch.config import Config, Model, value

Order = dict[str, Any]

# Keys of the configuration that decide which text a step sees. In "indexed" it is only the
# text itself, which the trainer adds by its hash, and how it is cut and mixed.
ALWAYS = ("data.text_column", "model.context", "model.parity")
INDEXED = ("run.seed",)
SHAPE = ("d_model", "heads", "layers", "feedforward", "context", "parity")
STREAMED = (
    *("data.source", "data.config", "data.split", "data.workers", "data.shuffle"),
    *("parallel.ranks", "train.batch"),
)


def order(config: Config) -> Order:
    """Everything that decides which text a step sees. With the same one, as many sequences
    into an epoch lead to the same place."""
    mode = "as-is" if config.data.sharding in ("ask", "auto") else config.data.sharding
    keys = (*ALWAYS, *(INDEXED if mode == "indexed" else STREAMED))
    if mode == "reshard" and config.data.shuffle:
        keys = (*keys, "run.seed")
    return {key: value(config, key) for key in keys} | {"data.sharding": mode}


def is_exact(config: Config) -> bool:
    """Whether a place can be found again at all: what the shuffle buffer of a stream held
    when a run ended is lost."""
    return config.data.sharding in ("reshard", "indexed") or not config.data.shuffle


def differences(saved: Order, now: Order) -> list[str]:
    """What has changed, a few words each; empty when nothing has. Of another mode it is said
    alone: what decided the order before means nothing to it."""
    if "data.sharding" in saved and saved["data.sharding"] != now["data.sharding"]:
        saved, now = ({"data.sharding": order["data.sharding"]} for order in (saved, now))
    return [
        f"{key} was {_said(saved.get(key))} and is {_said(now.get(key))}"
        for key in sorted(saved.keys() | now.keys())
        if saved.get(key) != now.get(key)
    ]


def model_differences(saved: dict[str, Any], now: Model) -> list[str]:
    """What makes a model another one than that of a checkpoint, whose configuration is `saved`."""
    kept = [key for key in SHAPE if key in saved]
    return differences(
        {f"model.{key}": saved[key] for key in kept},
        {f"model.{key}": getattr(now, key) for key in kept},
    )


def refusal(changed: list[str]) -> str:
    """One sentence for a resume that would silently lose and repeat text."""
    return (
        f"resume: {', '.join(changed)}: the place in the text would be lost; keep it as it was, "
        'or allow --new-epoch (some text is seen again). With data.sharding = "indexed" from the '
        "start, ranks and workers may change"
    )


def _said(value: Any) -> str:
    return "not set" if value is None else str(value)
