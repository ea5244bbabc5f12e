"""Parameter counts of logs: whether a number is a target, one rank's shard of it, or neither.

A standard transformer block with biases has 12 d^2 + 13 d parameters at feedforward 4 d; over
bits, with an embedding of 2 x d and a head of d x 2 + 2, a model of L blocks has
N(d, L) = L (12 d^2 + 13 d) + 4 d + 2. What FSDP2's ranks hold can only be told from shapes.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from bitwatch.attach.said import Said
from bitwatch.plan import guard, parameters

NARROWEST, WIDEST = 32, 32_768  # d_model that a count is tried against, in steps of the first
MOST_LAYERS = 512
MOST_RANKS = 4096
ROUNDED = 0.01  # of a number that is printed as 1.21B


class Shape(NamedTuple):
    d_model: int
    layers: int
    feedforward: int

    def __str__(self) -> str:
        return f"d_model {self.d_model}, {self.layers} layers, feedforward {self.feedforward}"

    def tensors(self) -> list[tuple[int, ...]]:
        """Shapes of all parameters, of a vocabulary of two."""
        d, wide = self.d_model, self.feedforward
        block = [(3 * d, d), (3 * d,), (d, d), (d,), (wide, d), (wide,), (d, wide), (d,)]
        block += [(d,), (d,), (d,), (d,)]
        return [(2, d), *block * self.layers, (2, d), (2,)]

    def built(self) -> int:
        return parameters.built(self.tensors())


class Share(NamedTuple):
    """`words` say what share of the target a number is; `ranks` of how many."""

    words: str
    ranks: int


def number(said: Said | None) -> int | None:
    """How many parameters it says."""
    value = said.values.get("parameters") if said else None
    if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    return round(value)


def is_exact(said: Said) -> bool:
    """Whether it is printed in full, as 169,990,657, and not as 0.17B."""
    count = number(said)
    return count is not None and str(count) in re.sub(r"(?<=\d)[,_'](?=\d)", "", said.line.text)


def same(one: Said, other: Said) -> bool:
    """Whether two lines say the same number, as exactly as both of them say it."""
    first, second = number(one), number(other)
    if first is None or second is None:
        return False
    if is_exact(one) and is_exact(other):
        return first == second
    return abs(first - second) <= ROUNDED * max(first, second)


def shape_of(configuration: Said | None, target: int) -> Shape | None:
    """The shape that a configuration names, if it gives the target; else the one standard
    shape that gives exactly it, if there is one."""
    if configuration is not None and (named := _named(configuration)):
        return named if named.built() == target else None
    fitting = _fitting(target)
    return fitting[0] if len(fitting) == 1 else None


def share_of(count: int, target: int, ranks: int | None, shape: Shape | None) -> Share | None:
    """What share of the target this number is; None when it is none. Without a number of
    ranks, each number of them is tried of which it is nearly the share."""
    if not 1 < count < target:
        return None
    lowest, highest = int(0.9 * target / count), int(1.1 * target / (count - 1)) + 1
    for tried in [ranks] if ranks else range(max(2, lowest), min(highest, MOST_RANKS) + 1):
        if tried < 2:
            continue
        held = _held(shape, tried, count) if shape is not None else ()
        known = guard.Target(where="", built=target, held=held, ranks=tried)
        if words := guard.share_of(count, known):
            return Share(words, tried)
    return None


def _held(shape: Shape, ranks: int, count: int) -> tuple[int, ...]:
    """What each rank of FSDP2 holds, if one of them holds so much: a walk over all tensors,
    which is only made where ranks at the few places at which a tensor ends show that."""
    each = [(rows, numbers, -(-rows // ranks)) for rows, numbers in _by_rows(shape)]
    places = {0, *(rows // chunk + more for rows, _, chunk in each for more in (0, 1))}
    for rank in places:
        parts = (min(chunk, max(0, rows - rank * chunk)) * n for rows, n, chunk in each)
        if rank < ranks and sum(parts) == count:
            return tuple(parameters.held(shape.tensors(), ranks))
    return ()


@functools.lru_cache(maxsize=256)
def _by_rows(shape: Shape) -> list[tuple[int, int]]:
    """How many rows the tensors have, and how many numbers a row of all of that many has."""
    found: dict[int, int] = {}
    for rows, *rest in shape.tensors():
        found[rows] = found.get(rows, 0) + math.prod(rest)
    return list(found.items())


def _named(configuration: Said) -> Shape | None:
    values = configuration.values
    found = [_whole(values, *names) for names in (
        ("d_model", "hidden_size", "n_embd", "dim"),
        ("num_layers", "layers", "n_layer", "n_layers", "num_hidden_layers"),
        ("dim_feedforward", "feedforward", "intermediate_size"),
    )]  # fmt: skip
    d_model, layers, feedforward = found
    if not d_model or not layers or layers > MOST_LAYERS or d_model > WIDEST:
        return None
    return Shape(d_model, layers, feedforward or 4 * d_model)


def _whole(values: object, *names: str) -> int:
    assert hasattr(values, "get")
    for name in names:
        value = values.get(name)
        if isinstance(value, int | float) and math.isfinite(value) and 0 < value == int(value):
            return int(value)
    return 0


@functools.lru_cache(maxsize=256)
def _fitting(target: int) -> list[Shape]:
    return list(_all_fitting(target))


def _all_fitting(target: int) -> Iterator[Shape]:
    for d_model in range(NARROWEST, WIDEST + 1, NARROWEST):
        layers, rest = divmod(target - 4 * d_model - 2, 12 * d_model**2 + 13 * d_model)
        if rest == 0 and 0 < layers <= MOST_LAYERS:
            yield Shape(d_model, layers, 4 * d_model)
