"""The numbers that a prediction of memory is made of: parameters, tokens, and what one block
keeps of its activations. Formulas over the shape of `trainer.model`, in bytes.

Letters, as in the literature: d channels, f feedforward width. A token is one bit of a
sequence.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bitwatch import config as configuration
from bitwatch.plan import parameters

FLOAT = 4  # bytes of a float32: weights, moments, and gradients as they are summed
DELAYS = 32  # bits before a place that the model looks up at once (`trainer.model.DELAYS`)

Shapes = list[tuple[int, ...]]


class Sizes(NamedTuple):
    """Of a configuration.

    block, root: parameters of one block, and of everything outside blocks. block_shard: of a
    block, what the rank with most holds; held: of the whole model. tokens: of one forward
    pass. width: bytes of a number as it is computed with, 2 or 4. micro_batches: of one step.
    """

    d: int
    f: int
    heads: int
    layers: int
    block: int
    block_shard: int
    root: int
    held: int
    tokens: int
    width: int
    ranks: int
    micro_batches: int
    checkpointing: str
    stay_gathered: bool

    @property
    def padded(self) -> int:
        """A block's parameters as they travel: every rank sends as much as the one with
        most (FSDP2 pads each parameter's first dimension to a multiple of the ranks)."""
        return self.block_shard * self.ranks

    @property
    def needed(self) -> int:
        """What the backward pass of a block reads, by the operation that saves it:

        input of the first norm (d), of the product that makes query, key and value (d); query
        and key, turned, as one (2 d), and value (d); output of the attention (d), which is
        also the input of the next product; input of the second norm (d), of the first
        feedforward product (d), of GELU (f) and of the last product (f). So 8 d + 2 f numbers
        a token, 16 d with f = 4 d. In float32, two norms' means and deviations, and the
        attention's log-sum-exp of each head: it keeps no weights (Dao and others, 2022).
        """
        in_float = FLOAT * (2 * 2 + self.heads)
        return self.tokens * (self.width * (8 * self.d + 2 * self.f) + in_float)

    @property
    def kept(self) -> int:
        """Of a block, between its forward and its backward pass: all that is needed ("none"),
        its input alone ("full"), or its input and the outputs of products and attention
        ("selective"): input (d), query, key and value (3 d), attention (d, and log-sum-exp),
        the products after it (d, f, d). So 7 d + f numbers a token."""
        if self.checkpointing == "full":
            return self.tokens * self.width * self.d
        if self.checkpointing == "selective":
            return self.tokens * (self.width * (7 * self.d + self.f) + FLOAT * self.heads)
        return self.needed

    @property
    def computed_again(self) -> int:
        """What a checkpointed block adds to what it kept when its backward pass begins: the
        rest of what is needed. What "selective" kept and nothing needs any more goes as it is
        used."""
        return self.needed + self.never_used - self.kept

    @property
    def never_used(self) -> int:
        """The last product's output (d): "selective" keeps it as any product's, but computing
        again ends before it, so it stays until the block is done."""
        return self.tokens * self.width * self.d if self.checkpointing == "selective" else 0

    @property
    def outside(self) -> int:
        """Kept outside the blocks: which bit each delayed group of channels saw (two bytes),
        and beside the loss the bits as integers (8) and their two log-probabilities."""
        groups = math.gcd(DELAYS, self.d)
        return self.tokens * (2 * groups + 8 + 2 * FLOAT)


def sizes(config: configuration.Config) -> Sizes:
    model, parallel, train = config.model, config.parallel, config.train
    block, root = block_shapes(model), root_shapes(model)
    block_shard, root_shard = (max(parameters.held(s, parallel.ranks)) for s in (block, root))
    bits_per_byte = 9 if model.parity else 8
    return Sizes(
        d=model.d_model,
        f=model.feedforward,
        heads=model.heads,
        layers=model.layers,
        block=parameters.built(block),
        block_shard=block_shard,
        root=parameters.built(root),
        held=model.layers * block_shard + root_shard,
        tokens=train.micro_batch * configuration.bytes_per_sequence(model) * bits_per_byte,
        width=2 if parallel.precision == "bf16" else FLOAT,
        ranks=parallel.ranks,
        micro_batches=max(1, train.batch // (parallel.ranks * train.micro_batch)),
        checkpointing=parallel.activation_checkpointing,
        stay_gathered=parallel.shard == "grad",
    )


def block_shapes(model: configuration.Model) -> Shapes:
    """Of the parameters of one `trainer.model.Block`: two norms, attention in and out,
    feedforward in and out, each with its bias."""
    d, f = model.d_model, model.feedforward
    norms: Shapes = [(d,)] * 4
    return [*norms, (3 * d, d), (3 * d,), (d, d), (d,), (f, d), (f,), (d, f), (d,)]


def root_shapes(model: configuration.Model) -> Shapes:
    """Of what the root holds: the embedding of two values, and the head to two."""
    return [(2, model.d_model), (2, model.d_model), (2,)]
