"""How a record is shared out among public points of its class by entropic transport (DP-Sinkhorn)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.vault.maps.base import Map, digest_of
from limbeck.vault.maps.blocks import block_size

NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Transport(Map):
    """The record's shares of the points of its class, and what it would move each of them by: share * (record - point).

    points      (classes, points, dimension)
    potentials  (classes, points): the dual variables of the points, in units of the blur
    blur        of the mean squared difference of two records
    weight      the shares are multiplied with it, so that they and the moves have a norm of the same order

    The shares are softmax(potentials - cost / blur): the best answer of one record to given potentials, in the semi-dual of
    entropic transport. In the primal a record's shares depend on all other records.

    Guarantee: a row depends on its record and public numbers alone, so the vault clips it like any other. Its norm has no bound
    but that clip.
    """

    kind: ClassVar[str] = "transport"
    points: Tensor
    potentials: Tensor
    blur: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        # Other shapes could lay the points along the records of a block, so that they would meet.
        if self.points.dim() != 3 or self.potentials.shape != self.points.shape[:2]:
            raise BadInput("Transport needs points (classes, points, dimension) and a potential for each point.")
        if not 0 < self.blur < math.inf or not 0 <= self.weight < math.inf:
            raise BadInput(f"Expected a positive blur and a weight, got blur={self.blur}, weight={self.weight}.")

    @property
    def chunk(self) -> int:  # type: ignore[override]  # a class's constant elsewhere
        return self.block

    @property
    def block(self) -> int:
        """A function of public sizes."""
        _, points, dimension = self.points.shape
        return block_size(max(NUMBERS_AT_ONCE // (points * (dimension + 1)), 1))

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        points, potentials = self.points.to(x.device)[y], self.potentials.to(x.device)[y]
        moves = x.flatten(1)[:, None] - points
        shares = torch.softmax(potentials - moves.square().mean(2) / self.blur, dim=1)
        return torch.cat([self.weight * shares, (shares[:, :, None] * moves).flatten(1)], dim=1)

    def parameters(self) -> dict[str, Any]:
        hashes = {"points": digest_of(self.points), "potentials": digest_of(self.potentials)}
        return hashes | {"shape": tuple(self.points.shape), "blur": self.blur, "weight": self.weight}
