"""The text of a configuration, as one rank reads it: feeds to train on, and what is held out."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bitwatch import config as configuration
from bitwatch.plan import resume
from bitwatch.plan.facts import Shard
from bitwatch.record import events
from trainer import agreement
from trainer.data import hub, remainder, row_groups, sharing, source
from trainer.data.account import Desk
from trainer.data.feed import Blocks, Feed
from trainer.data.index import Index, Where
from trainer.data.indexed import IndexedBlocks
from trainer.data.row_groups import RowGroups
from trainer.data.state import LoaderState
from trainer.data.stream import PackedRows, Rows
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
        self.order = resume.order(config)
        self._left = ""  # of an indexed text at the end of every epoch
        train, held_out = source.training(config.data), source.validation(config.data)
        indexed = config.data.sharding == "indexed"
        if "hub" in ("" if indexed else train.kind, held_out.kind if held_out else ""):
            hub.prepare()
        self._index = self._open_index() if indexed else None
        if self._index is not None:
            self.order["text"] = self._index.about.key
            left = self._index.about.bytes // self._sequence_bytes % config.train.batch
            self._left = f"{left:,} sequences are left, less than a batch"
        self._groups: list[Shard] | None = None
        if config.data.sharding == "reshard":
            self._groups = row_groups.open_shards(train, column)
        elif not indexed:
            self._rows = sharing.open_rows(train, column)
        self._held_out = sharing.open_rows(held_out, column) if held_out else None

    def feed(self, epoch: int, position: int = 0) -> Feed:
        """The training text of one epoch, after the `position` sequences of it that all ranks
        have taken together."""
        data, pin_memory = self._config.data, self._place.device.type == "cuda"
        if self._index is not None:
            stream: Blocks = IndexedBlocks(
                self._index,
                self._sequence_bytes,
                self._sequences,
                self._place.rank,
                self._place.ranks,
                self._config.run.seed,
                self._desk("train"),
                epoch,
                position,
                workers=data.workers,
                pin_memory=pin_memory,
            )
            return Feed(stream, data, self._sequences, pin_memory)
        stream = self._packed(self._share(), "train", self._sequences, epoch)
        feed = Feed(stream, data, self._sequences, pin_memory)
        feed.skip(position // self._config.train.batch)
        return feed

    def end_of_epoch(self, at: LoaderState, step: int, feed: Feed) -> events.Epoch:
        """What is left of an epoch that ends after `step` on all ranks, which must all call it.
        feed: of the epoch; has given None to those that have no more."""
        why, mine = self._left, remainder.Share()
        if self._index is None:
            taken = at.position // self._place.ranks
            planned = self._log.planned_sequences(self._place.ranks)
            mine = remainder.of_rank(taken, planned, feed.left)
            why = remainder.words(agreement.gather(mine, self._place.control))
        return events.Epoch(
            rank=self._place.rank,
            epoch=at.epoch,
            step=step,
            text=f"epoch {at.epoch} ended at step {step} on all ranks: {why}",
            unread=mine.unread,
            share=mine.sequences,
        )

    def held_out(self) -> PackedRows | None:
        """The validation text in blocks of a micro-batch, None when the configuration has
        none."""
        if self._held_out is None:
            return None
        place = self._place
        share = sharing.share(self._held_out, place.rank, place.ranks, 0, self._config.run.seed)
        return self._packed(share, "validation", self._config.train.micro_batch, 0)

    def _share(self) -> Rows:
        """This rank's part of the training text."""
        rank, ranks, c = self._place.rank, self._place.ranks, self._config
        if self._groups is not None:
            seed = c.run.seed if c.data.shuffle else None
            return RowGroups(self._groups, c.data.text_column, rank, ranks, seed)
        return sharing.share(self._rows, rank, ranks, c.data.shuffle, c.run.seed)

    def _packed(self, share: Rows, loader: str, block: int, epoch: int) -> PackedRows:
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
