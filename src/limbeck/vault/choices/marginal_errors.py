"""How far marginals are from what a model says they are."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.vault.choices.scores import ONE, Counts, Scores
from limbeck.vault.maps.base import digest_of

MOST_ESTIMATED = 2.0**40  # records in all estimates together; whole numbers of 64 bits hold them with their fractions


@dataclass(frozen=True, kw_only=True)
class MarginalErrors(Scores):
    """For each tuple of columns: weight * (sum over its cells of |records in the cell - estimate| - penalty).

    cells      the columns and the tuples, which are the candidates
    estimates  (cells of all tuples,): how many records a public model puts there; rounded to 1 / ONE
    weights    (candidates,): how much a candidate counts, above 0 and at most 1, so that one record moves a score by at most 1
    penalties  (candidates,): what is taken off, such as the error that noise alone would make
    """

    kind: ClassVar[str] = "marginal_errors"

    estimates: Tensor
    weights: Tensor
    penalties: Tensor

    def __post_init__(self) -> None:
        forms = {"estimates": self.cells.width, "weights": self.candidates, "penalties": self.candidates}
        for name, size in forms.items():
            value = getattr(self, name)
            if tuple(value.shape) != (size,) or value.dtype != torch.float64 or not bool(value.isfinite().all()):
                raise BadInput(f"{name} must be {size} finite numbers in double precision, got {tuple(value.shape)}.")
        if not bool(((self.weights > 0) & (self.weights <= 1)).all()):
            raise BadInput("The weight of every candidate must lie above 0 and be at most 1.")
        if max(float(self.estimates.abs().sum()), float(self.penalties.abs().max())) > MOST_ESTIMATED:
            raise BadInput(
                f"Estimates and penalties of more than {MOST_ESTIMATED:g} records cannot be compared exactly."
            )

    @property
    def candidates(self) -> int:
        return len(self.cells.tuples)

    def in_steps(self, counts: Counts, step: Fraction) -> list[int]:
        """Whole numbers throughout: counts, estimates, and how many steps one of ONE parts of a record is worth.

        Guarantee: what a unit adds to the cells of a tuple moves the sum of distances by at most that much, because
        ||a + n - e| - |a - e|| <= n. A step more or less of that is worth floor(weight / (ONE * step)) steps, and a weight is at
        most 1. The penalty does not depend on records.
        """
        apart = np.abs(counts - self._whole_estimates)
        ends = np.cumsum(self.cells.sizes)
        sums = [int(apart[end - size : end].sum()) for end, size in zip(ends, self.cells.sizes, strict=True)]
        worth = [math.floor(Fraction(weight) / (ONE * step)) for weight in self.weights.tolist()]
        off = [math.floor(Fraction(penalty) * ONE) for penalty in self.penalties.tolist()]
        return [each * (found - less) for each, found, less in zip(worth, sums, off, strict=True)]

    @functools.cached_property
    def _whole_estimates(self) -> Counts:
        whole: Counts = np.rint(self.estimates.cpu().numpy() * ONE).astype(np.int64)
        return whole

    def parameters(self) -> dict[str, Any]:
        tensors = {name: digest_of(getattr(self, name).double()) for name in ("estimates", "weights", "penalties")}
        return {"cells": self.cells.parameters(), **tensors}
