"""A target in parts: of a table without a label, pairs of the other columns are asked about for each part of what to predict.

A number that depends on two columns together (their product, say) shows in no pair. As a label does by its classes, a target says
it by its parts: a few ranges that hold about as many records each, or its categories. The parts are classes of the mixture, and
nothing else; rows have the target's own values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.measured import pairs_of
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Cells, Cut

FREE = 1.0  # variance of a share of which nothing is known


@dataclass(frozen=True, eq=False)
class Parts:
    """place: of the target among the columns. part: (cells of the target,) the part that each of them lies in."""

    place: int
    part: NDArray[np.int64]

    @property
    def count(self) -> int:
        return int(self.part.max()) + 1

    def cut(self, axis: Axis) -> Cut:
        """The target's column, cut into the parts."""
        there = self.part[: axis.cells - axis.column.missing]
        if axis.is_cut:
            return axis.coarser(np.flatnonzero(np.diff(there, prepend=-1)).tolist()).cut()
        return axis.cut()

    def spread(self, single: Tensor, variance: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
        """(parts, cells) and (cells,): the target's shares, each in its own part; of the other columns a guess, and no more."""
        begin = sum(sizes[: self.place])
        block = slice(begin, begin + sizes[self.place])
        own = torch.from_numpy(self.part[None] == np.arange(self.count)[:, None]).float()
        shares = (single[0, block].clamp_min(0) * own).sum(1)
        found = single * (shares / shares.sum().clamp_min(1e-6))[:, None]
        found[:, block] = single[:, block] * own
        unknown = torch.full_like(variance, FREE)
        unknown[block] = variance[block]
        return found, unknown

    def question(self, axes: Sequence[Axis]) -> Cells:
        cuts = (*(axis.cut() for axis in axes), self.cut(axes[self.place]))
        pairs = pairs_of(len(axes))
        return Cells(cuts=cuts, tuples=tuple(pair if self.place in pair else (len(axes), *pair) for pair in pairs))

    def as_matrix(self, values: Tensor, sizes: Sequence[int]) -> Tensor:
        """(parts, W, W) of the answer, each pair at both of its places."""
        starts = np.cumsum([0, *sizes]).tolist()
        matrix, begin = values.new_zeros(self.count, starts[-1], starts[-1]), 0
        own = torch.from_numpy(self.part[None] == np.arange(self.count)[:, None]).to(values)
        for first, second in pairs_of(len(sizes)):
            form = (sizes[first], sizes[second])
            groups = 1 if self.place in (first, second) else self.count
            count = groups * form[0] * form[1]
            part = values[begin : begin + count].view(groups, *form)
            if self.place == first:
                part = part * own[:, :, None]
            elif self.place == second:
                part = part * own[:, None, :]
            rows, columns = slice(starts[first], starts[first + 1]), slice(starts[second], starts[second + 1])
            matrix[:, rows, columns], matrix[:, columns, rows] = part, part.mT
            begin += count
        return matrix


def parts_of(schema: Schema, axes: Sequence[Axis], single: Tensor, count: int, most: int) -> Parts | None:
    """The first target that is asked about, in so many parts; None where there is none, or not room for all of its pairs.

    single: (1, cells), shares of the columns. most: cells that may be asked about
    """
    place = next((place for place, axis in enumerate(axes) if axis.column.name in schema.targets[:1]), None)
    if schema.has_label or place is None or count < 2 or len(axes) < 3:
        return None
    axis, sizes = axes[place], [axis.cells for axis in axes]
    there = axis.cells - axis.column.missing
    if axis.is_cut:
        begin = sum(sizes[:place])
        below = single[0, begin : begin + there].double().clamp_min(0).cumsum(0).numpy()
        middle = below - np.diff(below, prepend=0) / 2
        part = np.unique(np.floor(middle / max(below[-1], 1e-9) * count).clip(0, count - 1), return_inverse=True)[1]
    else:
        part = np.arange(there)
    part = np.append(part, [part.max() + 1] * axis.column.missing).astype(np.int64)
    found = Parts(place, part)
    others = sum(sizes) - sizes[place]
    cells = found.count * (others**2 - sum(size**2 for size in sizes) + sizes[place] ** 2) // 2 + others * sizes[place]
    return found if 1 < found.count <= max(count + 1, 2) and cells <= most else None
