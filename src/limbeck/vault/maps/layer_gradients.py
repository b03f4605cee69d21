"""The gradients of some records with respect to one weight tensor, as far as clipping needs them.

A record's gradient at a layer is a product of what entered the layer and the gradient of what left it. Its norm comes in one
of two exact ways:

    held    the gradients of these few records are computed, measured, weighted and added up while they are in the cache;
            best where a layer has many positions (convolutions on large maps)
    ghost   |G^T A|^2 = sum over positions p, q of <a_p, a_q> <g_p, g_q>, so that no record's gradient is ever computed, and
            the weighted sum is one matrix product; best where a layer has few positions and many weights (linear layers,
            the last convolutions of deep networks)

Squares are added up in short runs in single precision and then in double precision.

On the grid every record's part of the sum is a whole number of steps. Held gradients are rounded as they are. Of a ghost's
gradient both factors are rounded to whole numbers of the root of a step, after a power of 2 has made them about equally long;
products of whole numbers are whole, so the matrix product adds up whole gradients that nobody has seen. `slack` bounds what
rounding may add to a record's norm, and the clip is made so much shorter.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# A ghost's factors may be longer than their product, which can cancel. Beyond this times the clip a record adds nothing, so that
# no intermediate sum of whole numbers comes near 2^53.
MOST_CANCELLED = 2.0**10
RUN = 128  # values whose squares are added up in single precision
MOST_STEPS = 2.0**32  # of a clip
LONG = 16_384  # length of a row from which on rows are added one by one


class Part(Protocol):
    """The gradients of some records with respect to one weight tensor."""

    def squares(self) -> Tensor:
        """(records,) squared norms, in double precision."""
        ...

    def weighted(self, factors: Tensor, step: float) -> Tensor:
        """Sum of factor * gradient, flat, in the order of the weight, in double precision. With a step: in whole steps."""
        ...

    def slack(self, factors: Tensor, step: float) -> Tensor:
        """(records,) how much longer than factor * gradient what `weighted` adds for a record may be, at most."""
        ...

    def lengths(self) -> Tensor:
        """(records,) an upper bound on every number that `weighted` goes through, as `slack` uses it."""
        ...

    def each(self) -> Tensor:
        """(records, dimension): every gradient by itself."""
        ...

    def only(self, kept: Tensor) -> Part:
        """Zeros instead of the records that are not kept."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    rows: Tensor  # (records, ..., dimension)

    def squares(self) -> Tensor:
        # Short runs in the rows' own precision, their sum in double: long float32 sums drift.
        whole = self._flat.shape[1] // RUN * RUN
        runs: Tensor = torch.linalg.vector_norm(
            self._flat[:, :whole].reshape(len(self._flat), whole // RUN, RUN), dim=2
        )
        return runs.double().square().sum(1) + self._flat[:, whole:].double().square().sum(1)

    def weighted(self, factors: Tensor, step: float) -> Tensor:
        factors, rows = _weighed(factors, self.each())
        if step:
            factors = factors / step
        if rows.shape[1] < LONG:
            total: Tensor = (rows * factors[:, None]).round_().sum(0) if step else factors @ rows.double()
            return total
        total = torch.zeros(rows.shape[1], dtype=torch.float64, device=rows.device)
        for factor, row in zip(factors.tolist(), rows, strict=True):
            # In double precision, without a copy of all rows in it.
            total.add_(row.double().mul_(factor).round_()) if step else total.add_(row, alpha=factor)
        return total

    def slack(self, factors: Tensor, step: float) -> Tensor:
        """Rounding moves each of d numbers by half a step."""
        return torch.full_like(factors, math.sqrt(self._flat.shape[1]) / 2 * step)

    def lengths(self) -> Tensor:
        return self.squares().sqrt()

    @functools.cached_property
    def _flat(self) -> Tensor:
        return self.rows.reshape(len(self.rows), math.prod(self.rows.shape[1:]))

    def each(self) -> Tensor:
        return self._flat

    def only(self, kept: Tensor) -> Part:
        return Held(only_kept(self.rows, kept))


@dataclass(frozen=True, eq=False)
class Ghost:
    entered: Tensor  # (records, positions, in)
    flow: Tensor  # (records, positions, out)

    def squares(self) -> Tensor:
        entered, flow = self.entered.double(), self.flow.double()
        if entered.shape[1] == 1:
            return entered.square().sum((1, 2)) * flow.square().sum((1, 2))
        # In double precision, because these terms may cancel.
        return ((entered @ entered.mT) * (flow @ flow.mT)).sum((1, 2)).clamp_min(0)

    def weighted(self, factors: Tensor, step: float) -> Tensor:
        if step:
            factors = torch.where(factors * self.lengths() <= MOST_CANCELLED * MOST_STEPS * step, factors, 0.0)
        factors, flow, entered, across = _weighed(factors, self.flow, self.entered, self._balance(factors))
        scaled, wide = flow.double() * factors[:, None, None], entered.double()
        if step:
            root = math.sqrt(step)
            scaled = (scaled * (_power_of_two(across) / root)[:, None, None]).round_()
            wide = (wide * (_power_of_two(-across) / root)[:, None, None]).round_()
        return (scaled.flatten(0, 1).T @ wide.flatten(0, 1)).flatten()

    def _balance(self, factors: Tensor) -> Tensor:
        """The whole number a for which 2^a * factor * flow and 2^-a * entered are equally long, up to a factor of 4.

        Read off the exponents of two norms, so that no logarithm's last bit decides.
        """
        flow, entered = self._norms
        apart: Tensor = torch.frexp(entered).exponent - torch.frexp(flow * factors).exponent
        return torch.div(apart, 2, rounding_mode="floor")

    @functools.cached_property
    def _norms(self) -> tuple[Tensor, Tensor]:
        flow, entered = (tensor.double().square().sum((1, 2)).sqrt() for tensor in (self.flow, self.entered))
        return flow, entered

    def slack(self, factors: Tensor, step: float) -> Tensor:
        """Of U^T V with (p, out) and (p, in) numbers, U as long as u and V as v before rounding by half a root of a step each:
        at most (v 2^-a sqrt(p out) + u 2^a sqrt(p in)) sqrt(step) / 2 + p sqrt(out in) step / 4, where v 2^-a and u 2^a are
        at most 2 sqrt(u v)."""
        _, positions, size = self.entered.shape
        out = self.flow.shape[2]
        sides = math.sqrt(positions * size) + math.sqrt(positions * out)
        crossed: Tensor = (factors * self.lengths() * step).sqrt() * sides
        return crossed + positions * math.sqrt(size * out) / 4 * step

    def lengths(self) -> Tensor:
        flow, entered = self._norms
        return flow * entered

    def each(self) -> Tensor:
        return Held(torch.bmm(self.flow.mT, self.entered)).each()

    def only(self, kept: Tensor) -> Part:
        return Ghost(only_kept(self.entered, kept), only_kept(self.flow, kept))


def _weighed(factors: Tensor, *tensors: Tensor) -> list[Tensor]:
    """All of them for the records that count at all: most of a block belongs to one class."""
    counts = factors != 0
    return [factors.double(), *tensors] if counts.all() else [factors.double()[counts], *(t[counts] for t in tensors)]


def _power_of_two(exponents: Tensor) -> Tensor:
    """Exactly, written into the exponent's bits: a library's power may round, and by where a number stands."""
    return (exponents.long().clamp(-1000, 1000) + 1023 << 52).view(torch.float64)


def only_kept(tensor: Tensor, kept: Tensor) -> Tensor:
    """Zeros instead of the records that are not kept."""
    # A factor of 0 would not do: 0 times infinity is no number, and would spoil the whole sum.
    return torch.where(kept.view(-1, *[1] * (tensor.dim() - 1)), tensor, 0.0)


def product(entered: Tensor, flow: Tensor) -> Part:
    """The part of a weight whose gradient is flow^T entered, in the cheaper of the two ways."""
    positions, size, out = entered.shape[1], entered.shape[2], flow.shape[2]
    if positions * positions * (size + out) < size * out:
        return Ghost(entered, flow)
    if size <= out:
        return Held(torch.bmm(entered.mT, flow).mT)  # the library is fast for wide results only
    return Held(torch.bmm(flow.mT, entered))


def layer_parts(layer: nn.Module, entered: Tensor, flow: Tensor) -> dict[str, Part]:
    """The gradients of one layer's weights, from what entered it and the gradient of what left it."""
    if isinstance(layer, nn.Conv2d):
        columns = F.unfold(entered, layer.kernel_size, layer.dilation, layer.padding, layer.stride).mT  # type: ignore[arg-type]
        weight = product(columns, flow.flatten(2).mT)
        bias: Part = Held(flow.flatten(2).sum(2))
    elif isinstance(layer, nn.Linear):
        wide, left = (tensor.reshape(len(tensor), -1, tensor.shape[-1]) for tensor in (entered, flow))
        weight, bias = product(wide, left), Held(left.sum(1))
    elif isinstance(layer, nn.GroupNorm):
        normal = F.group_norm(entered, layer.num_groups, eps=layer.eps)
        weight, bias = Held((normal * flow).flatten(2).sum(2)), Held(flow.flatten(2).sum(2))
    else:
        assert isinstance(layer, nn.Embedding)
        wide = flow.reshape(len(flow), -1, flow.shape[-1])
        chosen = F.one_hot(entered.reshape(len(entered), -1), layer.num_embeddings).to(flow.dtype)
        return {"weight": product(wide, chosen)}
    return {"weight": weight} if layer.bias is None else {"weight": weight, "bias": bias}
