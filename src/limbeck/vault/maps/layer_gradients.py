"""The gradients of some records with respect to one weight tensor, as far as clipping needs them.

A record's gradient at a layer is a product of what entered the layer and the gradient of what left it. Its norm comes in one
of two exact ways:

    held    the gradients of these few records are computed, measured, weighted and added up while they are in the cache;
            best where a layer has many positions (convolutions on large maps)
    ghost   |G^T A|^2 = sum over positions p, q of <a_p, a_q> <g_p, g_q>, so that no record's gradient is ever computed, and
            the weighted sum is one matrix product; best where a layer has few positions and many weights (linear layers,
            the last convolutions of deep networks)

Squares are added up in short runs in single precision and then in double precision.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RUN = 128  # values whose squares are added up in single precision
LONG = 16_384  # length of a row from which on rows are added one by one


class Part(Protocol):
    """The gradients of some records with respect to one weight tensor."""

    def squares(self) -> Tensor:
        """(records,) squared norms, in double precision."""
        ...

    def weighted(self, factors: Tensor) -> Tensor:
        """Sum of factor * gradient, flat, in the order of the weight, in double precision."""
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

    def weighted(self, factors: Tensor) -> Tensor:
        factors, rows = _weighed(factors, self.each())
        if rows.shape[1] < LONG:
            total: Tensor = factors @ rows.double()
            return total
        total = torch.zeros(rows.shape[1], dtype=torch.float64, device=rows.device)
        for factor, row in zip(factors.tolist(), rows, strict=True):
            total.add_(row, alpha=factor)  # in double precision, without a copy of all rows in it
        return total

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

    def weighted(self, factors: Tensor) -> Tensor:
        factors, flow, entered = _weighed(factors, self.flow, self.entered)
        scaled = (flow.double() * factors[:, None, None]).flatten(0, 1)
        return (scaled.T @ entered.flatten(0, 1).double()).flatten()

    def each(self) -> Tensor:
        return Held(torch.bmm(self.flow.mT, self.entered)).each()

    def only(self, kept: Tensor) -> Part:
        return Ghost(only_kept(self.entered, kept), only_kept(self.flow, kept))


def _weighed(factors: Tensor, *tensors: Tensor) -> list[Tensor]:
    """All of them for the records that count at all: most of a block belongs to one class."""
    counts = factors != 0
    return [factors.double(), *tensors] if counts.all() else [factors.double()[counts], *(t[counts] for t in tensors)]


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
