"""Hermite polynomial features: numbers whose inner product is close to a Gaussian kernel, by Mehler's formula.

exp(-rho / (1 - rho^2) (x - y)^2) is the sum over c = 0, 1, ... of f_c(x) f_c(y), with
f_c(x) = sqrt((1 - rho) rho^c / N_c) H_c(x) exp(-rho / (1 + rho) x^2) and N_c = 2^c c! sqrt((1 - rho) / (1 + rho)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.errors import BadInput

MOST_ORDER = 200
ROOM = 1 - 1e-6  # for the rounding of a row's norm


@dataclass(frozen=True, kw_only=True)
class HermiteSpec:
    """How records of dimension `numbers` become features: a sum kernel over all numbers, and a product kernel over pairs.

    order, rho        of the features of one number: f_0 ... f_order; a larger rho is a narrower kernel
    pairs             how many pairs of numbers have the products of their features f_0 ... f_pair_order, at `pair_rho`
    share             of the squared norm that the pairs have
    height, width     of a picture, whose pairs are then of numbers at most `reach` pixels apart; 0 for a table
    seed              which pairs
    """

    numbers: int
    order: int
    rho: float
    pairs: int = 0
    pair_order: int = 0
    pair_rho: float = 0.5
    share: float = 0.0
    height: int = 0
    width: int = 0
    reach: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.numbers < 1:
            raise BadInput(f"Hermite features are of at least one number, got numbers={self.numbers}.")
        for name, value in (("order", self.order), ("pair_order", self.pair_order)):
            if not 0 <= value <= MOST_ORDER:
                raise BadInput(f"The order of Hermite features must lie in 0 ... {MOST_ORDER}, got {name}={value}.")
        for name, rate in (("rho", self.rho), ("pair_rho", self.pair_rho)):
            if not 0 < rate < 1:
                raise BadInput(f"The rate of Hermite features must lie in (0, 1), got {name}={rate}.")
        # The vault tries a map's form with public numbers in place of its own, so a share without pairs is no error.
        if not 0 <= self.share < 1 or self.pairs < 0 or (self.pairs > 0 and not self.share):
            raise BadInput(
                f"Pairs of numbers need a share of the norm in (0, 1), got pairs={self.pairs}, share={self.share}."
            )
        # A pair beyond the record would fail where, and only where, there is a record.
        if self.reach and (
            self.reach < 0 or min(self.height, self.width) < 1 or self.numbers % (self.height * self.width)
        ):
            raise BadInput(
                f"Pairs within reach={self.reach} need a picture: {self.numbers} numbers are no planes of "
                f"{self.height} x {self.width} pixels."
            )

    def places(self) -> tuple[Tensor, Tensor]:
        """The first and the second number of every pair; the same seed gives the same ones."""
        rng = torch.Generator().manual_seed(self.seed)
        first = torch.randint(0, self.numbers, (self.pairs,), generator=rng)
        if not self.reach:
            return first, torch.randint(0, self.numbers, (self.pairs,), generator=rng)
        side = 2 * self.reach + 1
        moves = torch.randint(0, side, (2, self.pairs), generator=rng) - self.reach
        plane, place = first // (self.height * self.width), first % (self.height * self.width)
        row = (place // self.width + moves[0]).clamp(0, self.height - 1)
        column = (place % self.width + moves[1]).clamp(0, self.width - 1)
        return first, (plane * self.height + row) * self.width + column


def hermite_values(x: Tensor, order: int, rho: float) -> list[Tensor]:
    """f_0(x) ... f_order(x), each of the shape of x.

    Guarantee: the squares add up to at most 1 for every finite x, because all of them, without end, add up to the kernel of x
    with itself. The recursion is that of the Hermite polynomials with the weights drawn in, so that nothing grows.
    """
    start = math.sqrt(1 - rho) * ((1 + rho) / (1 - rho)) ** 0.25
    values = [start * torch.exp(-rho / (1 + rho) * x.square())]
    for c in range(order):
        following = math.sqrt(2 * rho / (c + 1)) * x * values[-1]
        if c:
            following = following - rho * math.sqrt(c / (c + 1)) * values[-2]
        values.append(following)
    return values


def hermite_features(x: Tensor, spec: HermiteSpec, places: tuple[Tensor, Tensor]) -> Tensor:
    """(records, features): of every number, then of every pair.

    Guarantee: a row depends on its record alone and has a norm of at most 1: (1 - share) over all numbers, each with a part of
    1 / numbers, and share over all pairs. A product of two vectors of norm at most 1 has a norm of at most 1.
    """
    flat = x.flatten(1)
    singles = torch.cat(hermite_values(flat, spec.order, spec.rho), dim=1)
    rows = singles * (ROOM * math.sqrt((1 - spec.share) / spec.numbers))
    if not spec.pairs:
        return rows
    ends = torch.stack(hermite_values(flat, spec.pair_order, spec.pair_rho), dim=1)
    first, second = (ends[:, :, place.to(x.device)] for place in places)
    products = (first[:, :, None] * second[:, None]).flatten(1)
    return torch.cat([rows, products * (ROOM * math.sqrt(spec.share / spec.pairs))], dim=1)
