"""Sums of the records themselves: the record, its class, its outer product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.vault.maps.base import Map, in_blocks, outer_sums
from limbeck.vault.maps.bound import Bound, clip_rows


@dataclass(frozen=True, kw_only=True)
class Identity(Map):
    """The record itself, as scale * (x + shift)."""

    kind: ClassVar[str] = "identity"
    shift: float = 0.0
    scale: float = 1.0

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return (x.flatten(1) + self.shift) * self.scale


@dataclass(frozen=True, kw_only=True)
class OneHot(Map):
    """The class of the record; its sum is the class counts. A label beyond `classes` is a row of zeros, and never raises."""

    kind: ClassVar[str] = "one_hot"
    classes: int

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return (y[:, None] == torch.arange(self.classes, device=y.device)).to(x.dtype)


@dataclass(frozen=True, kw_only=True)
class SecondMoment(Map):
    """The outer product of the record with itself, after subtracting a public centre."""

    kind: ClassVar[str] = "second_moment"
    chunk: ClassVar[int] = 1024
    centre: tuple[float, ...] = ()

    def _centred(self, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        return flat - torch.tensor(self.centre, dtype=x.dtype, device=x.device) if self.centre else flat

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        centred = self._centred(x)
        return torch.einsum("bi,bj->bij", centred, centred).flatten(1)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return clip_rows(self._centred(x), 1.0)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, bound: Bound, block: int | None = None
    ) -> Tensor:
        """One matrix product per row instead of an outer product per record. Guarantee: that of `outer_sums`."""
        vectors = in_blocks(lambda part, _: self._centred(part), x, y, bound.root(), block or self.block)
        return outer_sums(vectors, row, count)
