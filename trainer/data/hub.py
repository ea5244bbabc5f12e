"""The Hugging Face hub, when it may not answer.

Its libraries take 25 s to find out that there is no network, and a lookup of a name can hang
for longer: so it is asked first whether it is there, in a thread that can be abandoned, and
when it is not they are told to use only what their cache holds.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.data.source import Source, SourceError

if TYPE_CHECKING:
    from datasets import IterableDataset

ANSWER_S = 2.0  # longest that anybody waits to learn whether the hub is there
OFFLINE_SWITCHES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")

_silent = False  # it was asked and did not answer: `prepare` threw the switch, not the user


class Probe:
    """Asks the hub for any answer at all, beside other work."""

    def __init__(self) -> None:
        self._answer: bool | None = None
        self._until_m = time.monotonic() + ANSWER_S
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        # urllib goes through the proxies that the environment names.
        request = urllib.request.Request(endpoint(), method="HEAD")
        try:
            urllib.request.urlopen(request, timeout=ANSWER_S).close()
            self._answer = True
        except urllib.error.HTTPError:
            self._answer = True  # it answers, if only to say no
        except urllib.error.URLError as error:
            # A certificate that only the hub's libraries are told to trust is an answer too.
            self._answer = isinstance(error.reason, ssl.SSLError)
        except (OSError, ValueError, http.client.HTTPException):
            self._answer = False

    def reachable(self) -> bool:
        """Waits for the answer until ANSWER_S after the question."""
        self._thread.join(max(0.0, self._until_m - time.monotonic()))
        return self._answer is True


def endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"


def offline() -> bool:
    """Whether the hub's libraries have been told not to ask it."""
    return any(
        os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")
        for name in OFFLINE_SWITCHES
    )


def prepare(probe: Probe | None = None) -> None:
    """Call before `source.open_stream` of a hub source. Sets HF_HUB_OFFLINE, for this process
    and its children, when the hub does not answer."""
    global _silent
    if not offline() and not (probe or Probe()).reachable():
        os.environ["HF_HUB_OFFLINE"] = "1"
        _silent = True
        for name in ("huggingface_hub.constants", "datasets.config"):
            module = sys.modules.get(name)  # imported earlier: it has read the variable
            if module is not None:
                module.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]


def load(source: Source) -> IterableDataset:
    """The stream of a hub source. Raises SourceError: its text names the configuration's key."""
    import datasets

    with _in_words(source):
        return datasets.load_dataset(source.hub, source.config, split=source.split, streaming=True)


def revision(source: Source) -> tuple[list[Any], int]:
    """What changes when the text of a hub source does, and how many files it has: of each
    file its name and the commit it comes from, or which copy the cache has of the whole.
    Raises SourceError."""
    import datasets

    with _in_words(source):
        builder = datasets.load_dataset_builder(source.hub, source.config)
    which = [source.hub, builder.config.name, source.split]
    files = (builder.config.data_files or {}).get(source.split)
    if files is None:  # of the cache only: a folder named after configuration, version, hash
        return [*which, *Path(builder.cache_dir).parts[-3:]], 1
    commits = [list(of_a_file) for of_a_file in files.origin_metadata]
    return [*which, list(map(str, files)), commits], len(files)


@contextlib.contextmanager
def _in_words(source: Source) -> Iterator[None]:
    """Turns what the hub's libraries raise into a SourceError."""
    from datasets.exceptions import DatasetNotFoundError, DefunctDatasetError

    assert source.hub is not None
    try:
        yield
    except DatasetNotFoundError as error:
        if offline():
            raise _unreachable(source.hub) from None
        gated = "gated" in str(error)
        raise SourceError(
            f"data.source: {source.hub} is "
            + ("gated on the hub" if gated else f"neither here nor on {endpoint()}"),
            "Set HF_TOKEN for an account that may read it" if gated else "Correct the name or path",
        ) from None
    except (ConnectionError, TimeoutError):
        raise _unreachable(source.hub) from None
    except (ValueError, DefunctDatasetError) as error:
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if offline() and "cache" in text:
            raise _unreachable(source.hub) from None
        if "split" in text.lower():
            raise SourceError(
                f"{source.key}: {source.hub} has no split {source.split!r} ({text.rstrip('.')})",
                "Name one of its splits",
            ) from None
        if "config" in text.lower():
            raise SourceError(
                f"data.config: {source.config!r} is not one of {source.hub}'s configurations "
                f"({' '.join(str(error).split()).rstrip('.')})",
                "Name one of them",
            ) from None
        raise SourceError(f"data.source: {source.hub}: {text}", "Correct the name") from None


def _unreachable(hub_id: str) -> SourceError:
    asked = _silent or not offline()
    why = f"{endpoint()} does not answer" if asked else "HF_HUB_OFFLINE is set"
    return SourceError(
        f"data.source: {hub_id} is not a path here, {why}, and it is not in the cache",
        "Connect this machine, or give a folder of parquet, jsonl or txt files",
        "unreachable",
    )
