"""The text of a configuration, as one rank reads it: feeds to train on, and what is held out."""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch.plan import resume
from bitwatch.plan.facts import Shard
from trainer.data import hub, row_groups, sharing, source
from trainer.data.account import Desk
from trainer.data.feed import Feed
from trainer.data.row_groups import RowGroups
from trainer.data.stream import PackedRows, Rows
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
        self.order = resume.order(config)
        self.why_it_ends = "one had no more data for a whole batch"
        train, held_out = source.training(config.data), source.validation(config.data)
        if "hub" in (train.kind, held_out.kind if held_out else ""):
            hub.prepare()
        column = config.data.text_column
        self._groups: list[Shard] | None = None
        if config.data.sharding == "reshard":
            self._groups = row_groups.open_shards(train, column)
        else:
            self._rows = sharing.open_rows(train, column)
        self._held_out = sharing.open_rows(held_out, column) if held_out else None

    def feed(self, epoch: int, position: int = 0) -> Feed:
        """The training text of one epoch, after the first `position` sequences of all ranks."""
        data = self._config.data
        stream = self._packed(self._share(), "train", self._sequences, epoch)
        feed = Feed(stream, data, self._sequences, self._place.device.type == "cuda")
        feed.skip(position // self._config.train.batch)
        return feed

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
        desk = Desk(self._log.run.path, self._log.attempt, self._place.rank, loader)
        sequence_bytes = configuration.bytes_per_sequence(self._config.model)
        column = self._config.data.text_column
        return PackedRows(share, column, sequence_bytes, block, desk, epoch)
