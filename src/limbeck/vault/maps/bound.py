"""What one record may add: a vector within the clip, in whole steps of the query's grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.privacy.queries import Noised

# A clipped vector is a rounded product, so its norm may pass the bound by a few ulps of a float.
# Clipping to a hair less keeps the sensitivity a true bound.
SAFE = 1 - 1e-6
UNDERFLOW = 1e-140  # more than squares that are too small for a double can add to a norm
MOST_FACTOR = 1e300  # no row of finite numbers overflows with it, and no zero becomes NaN


@dataclass(frozen=True)
class Bound:
    """clip: how long a row may be. step: what it is a whole multiple of; 0 for the doubles of queries booked before 0.4.0.

    Rows on the grid are counted in steps: doubles that hold whole numbers. Sums of these are exact in any order while they stay
    below 2^53, and a chunk of records stays far below: a row has less than 2^32 steps.

    >>> Bound(5.0, 1.0).rows(torch.tensor([[3.0, 4.0], [0.3, 0.7]])).tolist()
    [[3.0, 3.0], [0.0, 1.0]]
    """

    clip: float
    step: float = 0.0

    @staticmethod
    def of(query: Noised) -> Bound:
        return Bound(query.clip, query.step)

    @property
    def unit(self) -> float:
        """What a 1 in a row, or in a sum of rows, stands for."""
        return self.step or 1.0

    def half(self) -> Bound:
        """For what gives way to something else of its kind: one vote goes, another comes."""
        return Bound(self.clip / 2, self.step)

    def root(self) -> Bound:
        """For vectors that enter as outer products with themselves: |v v^T| is |v|^2, and whole numbers make whole products."""
        return Bound(math.sqrt(self.clip), math.sqrt(self.step))

    def share(self, parts: int) -> Bound:
        """For each of so many parts of a vector that are clipped one by one."""
        return Bound(self.clip / math.sqrt(parts), self.step)

    def rows(self, rows: Tensor) -> Tensor:
        """Clip each row, and round it to whole steps, in double precision.

        Guarantee: every returned row has an L2 norm of at most `clip`, whatever the row holds (rule 8): numbers that are not
        finite count as 0. On the grid that includes the rounding, which moves a row of d numbers by sqrt(d) / 2 steps at
        most: so much is taken off the clip first.
        """
        if math.isinf(self.clip):
            return rows.double()
        rows = torch.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
        norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64) + UNDERFLOW
        if not self.step:
            # In double precision: the factor of a huge row or a tiny clip is no normal single-precision number, and would
            # be rounded by more than SAFE allows for.
            clipped: Tensor = rows.double() * (self.clip * SAFE / norms).clamp(max=1.0)
            return clipped
        room = max(self.clip / self.step - math.sqrt(rows.shape[1]) / 2, 0.0) * SAFE
        whole: Tensor = (rows.double() * (room / norms).clamp(max=min(1 / self.step, MOST_FACTOR))).round_()
        return whole


def clip_rows(rows: Tensor, clip: float) -> Tensor:
    """Scale each row down to norm `clip`, in double precision. Guarantee: that of `Bound.rows`."""
    return Bound(clip).rows(rows)
