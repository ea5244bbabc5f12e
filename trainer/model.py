"""The BitTransformerLM: a causal transformer over the bits of UTF-8 text.

Pre-norm blocks with biases, positions without parameters (delayed channels and octave
sinusoids in the input, rotary in the attention), a final layer norm without parameters, and a
head to the two values of the next bit. With d channels, L layers and a feedforward of 4 d it has

    N = L (12 d^2 + 13 d) + 4 d + 2    parameters.

Knows nothing of devices, ranks or data: built on the meta device it costs nothing.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bitwatch import config as configuration

VALUES = 2  # of a bit
DELAYS = 32  # bits before a place that are in its input: four bytes
WEIGHT_GAIN = 0.8  # weights start with a deviation of 0.8 / sqrt(inputs)


class Past:
    """Keys and values of the places of one window that a block has computed, which a later
    place then need not compute again. `key` and `value` [1, places, heads, width] give the
    room; `length` places are filled."""

    def __init__(self, key: Tensor, value: Tensor) -> None:
        self._key, self._value, self.length = key, value, 0

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Those of all places, the new ones [1, n, heads, width] at the end."""
        begin, self.length = self.length, self.length + key.shape[1]
        self._key[:, begin : self.length] = key
        self._value[:, begin : self.length] = value
        return self._key[:, : self.length], self._value[:, : self.length]


class Block(nn.Module):
    """One layer: attention, then a feedforward, each added to what came in."""

    def __init__(self, d_model: int, heads: int, feedforward: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(d_model)
        self.query_key_value = nn.Linear(d_model, 3 * d_model)
        self.attention_out = nn.Linear(d_model, d_model)
        self.feedforward_norm = nn.LayerNorm(d_model)
        self.feedforward_in = nn.Linear(d_model, feedforward)
        self.feedforward_out = nn.Linear(feedforward, d_model)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, past: Past | None = None) -> Tensor:
        """x [sequences, bits, d_model]; cosine and sine [bits, 1, half a head]. With a `past`
        the bits come after those of it, and are added to it."""
        x = x + self.attention_out(self.attend(self.attention_norm(x), cosine, sine, past))
        hidden = F.gelu(self.feedforward_in(self.feedforward_norm(x)))
        return x + self.feedforward_out(hidden)

    def attend(self, x: Tensor, cosine: Tensor, sine: Tensor, past: Past | None) -> Tensor:
        sequences, bits, d_model = x.shape
        packed = self.query_key_value(x).view(sequences, bits, 3 * self.heads, -1)
        turned, value = packed.split((2 * self.heads, self.heads), dim=2)
        query, key = rotate(turned, cosine, sine).split(self.heads, dim=2)
        # A copy: a view would keep `packed` until the backward pass, for a third of it.
        value = value.contiguous()
        mask = None
        first = past is None or not past.length
        if past is not None:
            key, value = past.extend(key, value)
        if not first and bits > 1:
            # A new place sees all of the past, and the new ones up to itself.
            places = key.shape[1]
            mask = torch.ones(bits, places, dtype=torch.bool, device=x.device).tril(places - bits)
        attended = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=mask,
            is_causal=first,
        )
        return attended.transpose(1, 2).reshape(sequences, bits, d_model)


class BitTransformerLM(nn.Module):
    def __init__(self, shape: configuration.Model) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(VALUES, shape.d_model)
        self.blocks = nn.ModuleList(
            Block(shape.d_model, shape.heads, shape.feedforward) for _ in range(shape.layers)
        )
        self.head = nn.Linear(shape.d_model, VALUES)

    def forward(self, bits: Tensor) -> Tensor:
        """Logits, float32 [sequences, n, 2], of every bit of a window [sequences, n].

        The logits at a place have seen the bits before it only, and the first bit is
        predicted (from nothing) as well, so that a loss over all of them is the whole cost
        of the text.
        """
        length = bits.shape[1]
        x = delayed(bits, self.embedding.weight)
        x = x + octaves(length, self.shape, x)
        cosine, sine = rotary(length, self.shape, x)
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.read_out(x)

    def read_out(self, x: Tensor) -> Tensor:
        """Logits, float32 [..., 2], of what the last block has made of each place."""
        x = F.layer_norm(x.float(), x.shape[-1:])
        # In float32 even when the weights are rounded to bfloat16: logits of 8 significant
        # bits would be seen in the third digit of the loss, and this product is tiny.
        return x @ self.head.weight.float().T + self.head.bias.float()


def build_model(shape: configuration.Model) -> BitTransformerLM:
    """The model with PyTorch's own initial values; `initial_values` has the right ones."""
    return BitTransformerLM(shape)


def nats_per_bit(model: nn.Module, bits: Tensor) -> Tensor:
    """Mean negative log-likelihood of bits [sequences, n], in nats, float32 scalar."""
    return F.cross_entropy(model(bits).flatten(0, 1), bits.flatten().long())


def count_parameters(model: nn.Module) -> int:
    """All parameters of a model that is not wrapped (see `parallel.held_parameters`)."""
    return sum(parameter.numel() for parameter in model.parameters())


def flops_per_token(shape: configuration.Model, parameters: int, length: int) -> float:
    """Floating point operations to train on one bit: 6 N + 12 L d T (PaLM, appendix B)."""
    return 6.0 * parameters + 12.0 * shape.layers * shape.d_model * length


# ---------------------------------------------------------------------------------------
# Positions, without parameters


def delayed(bits: Tensor, embedding: Tensor) -> Tensor:
    """The bits before each place of a window [sequences, n], as [sequences, n, d_model].

    The first group of channels has the bit just before, embedded, the second the one before
    that, and so on; channels of bits before the window are zero. Without it the attention
    must first learn to find the last bytes, and a small model spends half its training on
    that (Austen text, 600 steps: 3.35 bits per byte without, 3.03 with it).
    """
    values, d_model = embedding.shape
    groups = math.gcd(DELAYS, d_model)
    zero, one = embedding.view(values, groups, -1)
    # Place t of a group g: the bit t - 1 - g, or 2 before the window.
    past = F.pad(bits[:, :-1], (groups, 0), value=2).unfold(1, groups, 1).flip(2).unsqueeze(3)
    return (torch.where(past == 1, one, zero) * (past < 2)).flatten(2)


def octaves(length: int, shape: configuration.Model, like: Tensor) -> Tensor:
    """Sines and cosines with periods of 2, 4, 8 ... 2 x context bits, [length, d_model].

    The first three say which bit of its byte a place is; with parity bits, where a byte has
    nine, periods of 9/4, 9/2, 9 ... do. Channels left over stay zero.
    """
    count = min(math.ceil(math.log2(shape.context)) + 1, shape.d_model // 2)
    periods = 2.0 ** torch.arange(1, count + 1) * (9 / 8 if shape.parity else 1)
    angle = _angles(length, periods.to(like.device))
    waves = torch.cat((angle.sin(), angle.cos()), dim=1)
    return F.pad(waves, (0, shape.d_model - waves.shape[1])).to(like.dtype)


def rotary(length: int, shape: configuration.Model, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of half a head's turns, [length, 1, half]: periods from 2 bits to
    four contexts, evenly spaced in their logarithm."""
    half = shape.d_model // shape.heads // 2
    periods = torch.logspace(math.log2(2), math.log2(4 * shape.context), half, base=2.0)
    angle = _angles(length, periods.to(like.device)).unsqueeze(1)
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turns channel pairs (i, i + half) of x [sequences, bits, heads, width] by their angle."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def _angles(length: int, periods: Tensor) -> Tensor:
    places = torch.arange(length, dtype=torch.float32, device=periods.device)
    return 2 * math.pi * places.unsqueeze(1) / periods


# ---------------------------------------------------------------------------------------
# Initial values


def initial_value(
    name: str, shape: tuple[int, ...], layers: int, generator: torch.Generator
) -> Tensor:
    """Where training starts from, for the parameter `name`, float32.

    Weights 0.8 / sqrt(inputs), those that write into the residual stream also
    x (2 L)^-0.5, so that the sum of all layers starts near one; norms at identity, biases
    and the head at zero, so that the first loss is ln 2.
    """
    device = generator.device
    if name.startswith("head.") or name.endswith(".bias"):
        return torch.zeros(shape, device=device)
    if "_norm." in name:
        return torch.ones(shape, device=device)
    deviation = WEIGHT_GAIN
    if not name.startswith("embedding."):
        deviation /= math.sqrt(shape[1])
    if "_out." in name:
        deviation /= math.sqrt(2 * layers)
    return torch.randn(shape, device=device, generator=generator) * deviation
