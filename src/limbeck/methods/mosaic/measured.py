"""What was measured: for each class the shares of records in every cell, and in every pair of cells, each with its variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Measured:
    """sizes: cells of each column, W together. A cell is known by its place among all W.

    single, single_variance   (classes, W) and (W,): shares of all records, from the columns alone
    pairs, precision          (groups, W, W) and (W, W): shares, and one over their variance, 0 where nothing was measured; one
                              group for each class, or one for all of them
    whole                     (W,) both: shares of all classes together and their variance, where columns were asked about for
                              all of them at once; then `single` is a guess
    labelled                  (classes, W) and (W,): shares that were asked for once more, beside pairs of all classes together,
                              and one over their variance
    """

    sizes: tuple[int, ...]
    single: Tensor
    single_variance: Tensor
    pairs: Tensor
    precision: Tensor
    whole: tuple[Tensor, Tensor] | None = None
    labelled: tuple[Tensor, Tensor] | None = None

    @property
    def state(self) -> dict[str, Tensor]:
        """What the second answer says, by name."""
        said = {} if self.labelled is None else {"labelled": self.labelled[0], "labelled_precision": self.labelled[1]}
        return {"pairs": self.pairs, "precision": self.precision} | said

    @property
    def by_class(self) -> bool:
        return len(self.pairs) == len(self.single)

    @property
    def starts(self) -> list[int]:
        return torch.cumsum(torch.tensor([0, *self.sizes]), 0).tolist()

    def blocks(self) -> list[slice]:
        """The places of each column's cells."""
        return [slice(begin, end) for begin, end in pairwise(self.starts)]

    def combined(self) -> tuple[Tensor, Tensor]:
        """The best estimate of `single` and its variance: pairs say it, too, when they are added up.

        Estimates are weighed by their precision; the noise of different pairs is independent.
        """
        total = self.single / self.single_variance
        weight = (1 / self.single_variance).clone()
        if self.labelled is not None:
            total += self.labelled[0] * self.labelled[1]
            weight += self.labelled[1]
        if self.by_class:
            for block in self.blocks():
                for other in self.blocks():
                    variance = torch.where(
                        self.precision[block, other] > 0, 1 / self.precision[block, other].clamp_min(1e-30), torch.inf
                    ).sum(1)
                    if other != block and bool(variance.isfinite().all()):
                        total[:, block] += self.pairs[:, block, other].sum(2) / variance
                        weight[block] += 1 / variance
        if self.whole is None:
            return total / weight, 1 / weight
        # What all classes lack together is shared out by how unsure each of them is.
        found, variance, (said, doubt) = total / weight, 1 / weight, self.whole
        lacking = (said - found.sum(0)) * variance / (doubt + len(found) * variance)
        return found + lacking, variance - variance**2 / (doubt + len(found) * variance)

    def bettered(self) -> Measured:
        """With `combined` in place of the columns alone. Pairs say it anyway, each cell by itself; but no share is below 0, so a
        sum of many noised ones would be fitted as more than it is. Said once more, it holds that back."""
        single, variance = self.combined()
        return replace(self, single=single, single_variance=variance)

    def totals(self) -> tuple[Tensor, Tensor]:
        """(W,) both: the best estimate of the shares of all records, whichever class they are of, and its variance."""
        said, doubt = self.whole or (self.single.sum(0), self.single_variance * len(self.single))
        total, weight = said / doubt, 1 / doubt
        for block in self.blocks():
            for other in self.blocks():
                precision = self.precision[block, other]
                if other != block and bool((precision > 0).all()):
                    variance = (len(self.pairs) / precision).sum(1)
                    total[block] += self.pairs[:, block, other].sum((0, 2)) / variance
                    weight[block] += 1 / variance
        return total / weight, 1 / weight


def pairs_of(columns: int) -> tuple[tuple[int, ...], ...]:
    return tuple(combinations(range(columns), 2))


def as_matrix(cells: Tensor, sizes: Sequence[int]) -> Tensor:
    """(groups, cells of all pairs) as (groups, W, W), each pair at both of its places."""
    total = sum(sizes)
    starts = torch.cumsum(torch.tensor([0, *sizes]), 0).tolist()
    matrix, begin = cells.new_zeros(len(cells), total, total), 0
    for first, second in combinations(range(len(sizes)), 2):
        count = sizes[first] * sizes[second]
        part = cells[:, begin : begin + count].view(len(cells), sizes[first], sizes[second])
        rows, columns = slice(starts[first], starts[first + 1]), slice(starts[second], starts[second + 1])
        matrix[:, rows, columns], matrix[:, columns, rows] = part, part.mT
        begin += count
    return matrix
