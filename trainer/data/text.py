"""The text of a configuration, as one rank reads it: feeds to train on, and what is held out."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from datasets import IterableDataset

from bitwatch import config as configuration
from trainer.data import hub, sharing, source
from trainer.data.account import Desk
from trainer.data.feed import Blocks, Feed
from trainer.data.index import Index, Where
from trainer.data.indexed import IndexedBlocks
from trainer.data.stream import PackedRows
from trainer.failures import Failed
from trainer.parallel import Place
from trainer.telemetry import Telemetry


class Text:
    """Opens what data.source and data.validation name. Raises Failed when it cannot.

    sequences: that this rank takes for one optimiser step.
    """

    def __init__(
        self, config: configuration.Config, place: Place, log: Telemetry, sequences: int
    ) -> None:
        self._config, self._place, self._log = config, place, log
        self._sequences = sequences
        self._sequence_bytes = configuration.bytes_per_sequence(config.model)
        column = config.data.text_column
        train, held_out = source.training(config.data), source.validation(config.data)
        indexed = config.data.sharding == "indexed"
        if "hub" in ("" if indexed else train.kind, held_out.kind if held_out else ""):
            hub.prepare()
        self._index = self._open_index() if indexed else None
        self._rows = None if indexed else sharing.open_rows(train, column)
        self._held_out = sharing.open_rows(held_out, column) if held_out else None

    def feed(self, epoch: int, position: int = 0) -> Feed:
        """The training text of one epoch, after the `position` sequences of it that all ranks
        have taken together."""
        pin_memory = self._place.device.type == "cuda"
        stream: Blocks
        if self._index is not None:
            stream = IndexedBlocks(
                self._index,
                self._sequence_bytes,
                self._sequences,
                self._place.rank,
                self._place.ranks,
                self._config.run.seed,
                self._desk("train"),
                epoch,
                position,
                workers=self._config.data.workers,
                pin_memory=pin_memory,
            )
            return Feed(stream, self._config.data, self._sequences, pin_memory)
        assert self._rows is not None
        shuffle = self._config.data.shuffle
        stream = self._packed(self._rows, "train", shuffle, self._sequences, epoch)
        feed = Feed(stream, self._config.data, self._sequences, pin_memory)
        feed.skip(position // self._config.train.batch)
        return feed

    def steps_per_epoch(self) -> int | None:
        """None where only reading could tell."""
        if self._index is None:
            return None
        return self._index.about.bytes // self._sequence_bytes // self._config.train.batch

    def order(self) -> str:
        """All that decides which text a step sees, as one string. With the same one, as many
        sequences into an epoch lead to the same place. Empty where nothing does: what a
        shuffle buffer held when a run ended is lost."""
        c = self._config
        if self._index is not None:
            key = self._index.about.key
            return json.dumps(["indexed", key, c.run.seed, self._sequence_bytes])
        if c.data.shuffle:
            return ""
        data = c.data
        kept = (
            *(data.source, data.config, data.split, data.text_column, data.workers),
            *(c.parallel.ranks, c.train.batch, c.train.micro_batch, c.model.context),
        )
        return json.dumps(kept)

    def held_out(self) -> PackedRows | None:
        """The validation text in blocks of a micro-batch, None when the configuration has
        none."""
        if self._held_out is None:
            return None
        return self._packed(self._held_out, "validation", 0, self._config.train.micro_batch, 0)

    def _packed(
        self, rows: IterableDataset, loader: str, shuffle: int, block: int, epoch: int
    ) -> PackedRows:
        rank, ranks = self._place.rank, self._place.ranks
        share = sharing.share(rows, rank, ranks, shuffle, self._config.run.seed)
        column = self._config.data.text_column
        return PackedRows(share, column, self._sequence_bytes, block, self._desk(loader), epoch)

    def _desk(self, loader: str) -> Desk:
        return Desk(self._log.run.path, self._log.attempt, self._place.rank, loader)

    def _open_index(self) -> Index:
        """The text that `prepare` has written for this attempt."""
        where = self._log.run.index(self._log.attempt)
        try:
            folder = Path(msgspec.json.decode(where.read_bytes(), type=Where).path)
        except (OSError, msgspec.MsgspecError):
            raise Failed(
                f"{where}: does not say where the text is; prepare.py comes before the ranks "
                'when data.sharding is "indexed"'
            ) from None
        index = Index(folder)
        batch = self._config.train.batch
        if index.about.bytes // self._sequence_bytes < batch:
            raise Failed(
                f"train.batch: the text has {index.about.bytes:,} bytes, less than one batch of "
                f"{batch:,} sequences of {self._sequence_bytes:,} bytes; use more text, or a "
                "smaller batch"
            )
        return index
