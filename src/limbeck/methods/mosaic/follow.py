"""Columns that another one decides: a code and its name, a place and its region. The answers show it, and rows keep to it.

A mixture has independent columns inside of a component, so of two columns that say the same every component would contradict
itself a little. A column that surely follows another one is therefore not drawn: its cell is that of its leader's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.methods.mosaic.measured import Measured
from limbeck.nets.generators.table_spec import TableSpec

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

DOUBT = 2.0  # standard deviations that what the leader does not explain may have
KNOWN = 0.03  # of all records: the noise of that; with more nothing is sure
APART = 4.0  # standard deviations that a cell of the column may hold more or less than its leader's cells say
SEEN = 4.0  # standard deviations of noise above which a cell surely holds records
UNKNOWN = 1e6  # variance of a share that is not to be fitted
TOLD = 0.5  # of a column's records beside its largest cell: so many have to be seen where their leader says
LEAST_CELLS = 2  # that the column surely has, or there is nothing to follow


@dataclass(frozen=True, eq=False)
class Follow:
    """leader, column: their places. cells: (cells of the leader,) the column's cell for each."""

    leader: int
    column: int
    cells: Places


def followed(cells: Places, follows: Sequence[Follow]) -> Places:
    """(rows, columns) with the cells of columns that follow; changed in place, too."""
    for each in follows:
        cells[:, each.column] = each.cells[cells[:, each.leader]]
    return cells


def together(columns: NDArray[np.bool_], follows: Sequence[Follow]) -> NDArray[np.bool_]:
    """(rows, columns) that are drawn again: a column that follows never without its leader."""
    found = columns.copy()
    for each in follows:
        found[:, each.leader] |= columns[:, each.column]
    for each in follows:
        found[:, each.column] |= found[:, each.leader]
    return found


def leaders_of(follows: Sequence[Follow], columns: int) -> dict[str, tuple[int, ...]]:
    """The field of a spec; none where no column follows."""
    leaders = {each.column: each.leader + 1 for each in follows}
    return {"leaders": tuple(leaders.get(place, 0) for place in range(columns))} if leaders else {}


def stored_follows(follows: Sequence[Follow]) -> dict[str, Tensor]:
    """The weights, one column after the other."""
    cells = [each.cells for each in sorted(follows, key=lambda each: each.column)]
    return {"followed": torch.from_numpy(np.concatenate(cells))} if cells else {}


def follow_forms(spec: TableSpec, sizes: Sequence[int]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """The weights that a spec asks for. Guarantee: raises BadInput unless leaders are columns that follow none."""
    for place, leader in enumerate(spec.leaders):
        if leader and (leader > len(sizes) or leader == place + 1 or spec.leaders[leader - 1]):
            raise BadInput(f"Column {place + 1} of the model cannot follow column {leader}.")
    count = sum(sizes[leader - 1] for leader in spec.leaders if leader)
    return {"followed": ((count,), torch.int64)} if count else {}


def follows_of(spec: TableSpec, sizes: Sequence[int], weights: Mapping[str, Tensor]) -> tuple[Follow, ...]:
    """Put together again. Guarantee: raises BadInput unless every cell is one of the column's."""
    found, begin = [], 0
    for place, leader in enumerate(spec.leaders):
        if leader:
            cells = weights["followed"].numpy()[begin : begin + sizes[leader - 1]]
            if not ((cells >= 0) & (cells < sizes[place])).all():
                raise BadInput(f"Column {place + 1} of the model has {sizes[place]} cells, and another one is named.")
            found.append(Follow(leader - 1, place, cells))
            begin += len(cells)
    return tuple(found)


def folded(measured: Measured, follows: Sequence[Follow]) -> Measured:
    """What is to be fitted, without columns that follow: what was measured of them bettered what their leaders are known for.

    A fit of them would have components for each of their cells, and noise between all other columns in each component.
    """
    single, pairs, precision = measured.single.clone(), measured.pairs.clone(), measured.precision.clone()
    variance, blocks = measured.single_variance.clone(), measured.blocks()
    for each in follows:
        leader, column, cells = blocks[each.leader], blocks[each.column], torch.from_numpy(each.cells)
        found, doubt = _bettered(
            single[:, leader, None], variance[leader, None], single[:, column, None], variance[column, None], cells
        )
        single[:, leader], variance[leader] = found[:, :, 0], doubt[:, 0]
        variance[column] = UNKNOWN
        for other in blocks:
            known = (precision[leader, other] > 0).all() and (precision[column, other] > 0).all()
            if other in (leader, column) or not bool(known):
                continue
            found, doubt = _bettered(
                pairs[:, leader, other], 1 / precision[leader, other], pairs[:, column, other],
                1 / precision[column, other], cells,
            )  # fmt: skip
            pairs[:, leader, other], pairs[:, other, leader] = found, found.mT
            precision[leader, other], precision[other, leader] = 1 / doubt, 1 / doubt.T
        precision[column], precision[:, column] = 0.0, 0.0
    return replace(measured, single=single, single_variance=variance, pairs=pairs, precision=precision)


def _bettered(shares: Tensor, variance: Tensor, sums: Tensor, doubt: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest shares, (groups, cells, others), of which sums were measured, too, and their variance, (cells, others)."""
    total = torch.zeros_like(doubt).index_add_(0, cells, variance) + doubt
    lacking = sums - torch.zeros_like(sums).index_add_(1, cells, shares)
    moved = variance / total[cells]
    return shares + lacking[:, cells] * moved, variance * (1 - moved)


def wanted_pairs(pairs: Numbers, shares: Numbers, starts: Places, follows: Sequence[Follow]) -> Numbers:
    """(W, W): the share of rows that each pair of cells should have, if these are those of the columns that are drawn.

    shares: (W,), of the cells. starts: the place of each column's first cell
    """
    for each in follows:
        leader = slice(starts[each.leader], starts[each.leader] + len(each.cells))
        column = slice(starts[each.column], starts[each.column + 1])
        pairs[column] = 0.0
        np.add.at(pairs, starts[each.column] + each.cells, pairs[leader])
        pairs[:, column] = pairs[column].T
        pairs[column, leader] = np.arange(column.stop - column.start)[:, None] == each.cells
        pairs[column, leader] *= shares[leader]
        pairs[leader, column] = pairs[column, leader].T
    return pairs


def seen_follows(measured: Measured) -> tuple[Follow, ...]:
    """Which columns surely follow which, by the measured pairs. No leader follows another column, and none has two leaders."""
    noise = _Noise(measured)
    blocks, found = measured.blocks(), list[Follow]()
    order = sorted(range(len(blocks)), key=lambda place: (blocks[place].start - blocks[place].stop, place))
    leads: set[int] = set()
    follows: set[int] = set()
    for leader in order:
        for column in order:
            if column == leader or leader in follows or column in follows | leads:
                continue
            cells = noise.mapped(blocks[leader], blocks[column])
            if cells is not None:
                found.append(Follow(leader, column, cells))
                leads.add(leader)
                follows.add(column)
    return tuple(found)


class _Noise:
    """The measured shares of all classes together, with their variances."""

    def __init__(self, measured: Measured) -> None:
        totals, variances = measured.totals()
        self._totals, self._variances = totals.double().numpy(), variances.double().numpy()
        self._pairs = measured.pairs.sum(0).double().numpy()
        precision = measured.precision.double().numpy()
        self._is_known = precision > 0
        # A pair that was made surer has less; what it was says how far the others may be off.
        known = precision[self._is_known]
        self._variance = len(measured.pairs) / float(known.min()) if len(known) else math.inf

    def mapped(self, leader: slice, column: slice) -> Places | None:
        """For each cell of the leader that of the column; None unless it surely decides that."""
        pairs = self._pairs[leader, column]
        there = self._totals[leader]
        is_seen = there > SEEN * math.sqrt(self._variance)
        doubt = math.sqrt((self._variance + self._variances[leader])[is_seen].sum())
        if not self._is_known[leader, column].all() or not is_seen.any() or doubt > KNOWN:
            return None
        if (there - pairs.max(1))[is_seen].sum() > DOUBT * doubt:
            return None
        cells = self._likeliest(leader, column)
        own = pairs[np.arange(len(cells)), cells]
        is_sure = (there - own)[is_seen].sum() <= DOUBT * doubt and self._is_told(own, cells, column)
        return cells if is_sure and self._adds_up(cells, leader, column) else None

    def _is_told(self, own: Numbers, cells: Places, column: slice) -> bool:
        """Whether pairs that surely hold records make up most of the column beside its largest cell, which goes with anything.

        own: the pair of each of the leader's cells with that of the column
        """
        others = self._totals[column].copy()
        largest = int(others.argmax())
        others[largest] = 0
        is_seen = (own > SEEN * math.sqrt(self._variance)) & (cells != largest)
        return bool(own[is_seen].sum() >= TOLD * np.maximum(others, 0).sum())

    def _likeliest(self, leader: slice, column: slice) -> Places:
        """Larger cells first, each to where the pairs and what is left of the column's own shares say that it belongs."""
        there, doubts = self._totals[leader], self._variances[leader]
        left, doubt = self._totals[column].copy(), self._variances[column].copy()
        cells = np.zeros(len(there), dtype=np.int64)
        for place in np.argsort(-there, kind="stable").tolist():
            own = max(there[place], 0.0)
            fit = self._pairs[leader, column][place] / self._variance + (left - own / 2) / (doubt + doubts[place])
            cell = cells[place] = int(fit.argmax())
            left[cell] -= own
            doubt[cell] += doubts[place]
        return cells

    def _adds_up(self, cells: Places, leader: slice, column: slice) -> bool:
        """Whether each cell of the column holds what its leader's cells hold, and there is something to follow."""
        size = column.stop - column.start
        said = np.bincount(cells, np.maximum(self._totals[leader], 0), minlength=size)
        variances = np.bincount(cells, self._variances[leader], minlength=size) + self._variances[column]
        own = self._totals[column]
        is_seen = own > SEEN * np.sqrt(self._variances[column])
        return bool((np.abs(said - own) <= APART * np.sqrt(variances)).all()) and int(is_seen.sum()) >= LEAST_CELLS
