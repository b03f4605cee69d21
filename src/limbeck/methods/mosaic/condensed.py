"""A small set in place of a large table: rows that models learn from nearly as much as from the whole.

A large table is drawn from the fitted model, and a teacher learns from it: trees of two splits, so it keeps what depends on two
columns together, which was measured, and drops what the mixture made up in three and more. The small set starts as rows of the
large table and changes step by step: another row, other values of single columns, another label. A change stays if logistic
regression and boosted trees that learn from the set then agree better with the teacher on rows of the large table.
All of it is post-processing of answers, and every row is made of whole categories and of numbers as they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.drawing import encoded, labelled, mended
from limbeck.methods.mosaic.fit import Fit
from limbeck.methods.mosaic.judge import NOTHING, Judge, Rows
from limbeck.methods.mosaic.keeping import Drawn, filled, hold
from limbeck.methods.mosaic.model import TableModel
from limbeck.methods.mosaic.students import Numbers

LARGE = 30_000  # rows of the table that a small set stands for
JUDGED = 2000  # of them, on which sets are compared
MOST = 1000  # rows of a small set; more are drawn as they are
USUAL = 100 * 300  # rows x splits of a set for which all steps are taken; larger ones get fewer
STARTS = 50  # sets at random, of which the best is the start
SHARP = 5.0  # how much surer their labels are than the teacher is
MISSED = 0.3  # a step is a row that students miss,
ROW, CELLS = 0.3, 0.9  # else another row, else other cells, else another label
HEAT = 0.001  # how much a change may lose, about, in the first steps; in the last ones nothing
MOST_CELLS = 3  # changed in one step
HOPELESS = 0.01  # what logistic regression may lose so much of that trees are not even tried
TREES, SPLITS = 600, 2  # of the teacher: trees over all classes, splits from root to leaf


def steps_for(search: int, rows: int, axes: Sequence[Axis], classes: int) -> int:
    """How many steps a search of about the same time takes. One class alone is matched in one step."""
    work = rows * sum(axis.cells - 1 for axis in axes) * (classes if classes > 2 else 1)
    return max(int(search * min(1.0, USUAL / max(work, 1))), 1) if classes > 1 else 1


@dataclass(frozen=True, eq=False)
class Large:
    """A large table, the model that it is drawn from, and for each of its rows the teacher's chances of the classes."""

    model: TableModel
    rows: Rows
    chances: Numbers

    @staticmethod
    def of(model: TableModel, rows: Rows, classes: int) -> Large:
        return Large(model, rows, _taught(rows, classes))

    @staticmethod
    def drawn(fit: Fit, rng: np.random.Generator) -> Large:
        cells, labels = fit.cells(LARGE, rng, LARGE)
        model = fit.model(cells)
        labels = labelled(model, cells, labels, rng, balance=True)
        x, labels = mended(model, encoded(model, cells, labels, rng), labels, rng, by_class=False)
        if fit.schema.rules:
            places = torch.from_numpy(x)
            cells = np.stack([axis.cut().of(places).numpy() for axis in model.axes], axis=1)
        return Large.of(model, Rows(x, cells, labels), len(fit.schema.classes))

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.model.axes

    def judge(self) -> Judge:
        return Judge(self.axes, self.rows.x[:JUDGED], self.chances[:JUDGED])

    @cached_property
    def blocks(self) -> list[NDArray[np.int64]]:
        """The places of encoded numbers that change together: a column's, and those of columns that follow it."""
        own = [np.arange(axis.start, axis.start + axis.column.width) for axis in self.axes]
        leaders = {each.column: each.leader for each in self.model.follows}
        return [
            np.concatenate([own[place], *(own[column] for column, leader in leaders.items() if leader == place)])
            for place in range(len(own))
            if place not in leaders
        ]

    def one_of(self, label: int, rng: np.random.Generator, sharp: float = 1.0) -> int:
        """A row, by its chance to be of the class, or one that is surer."""
        below = self._below[sharp][:, label]
        return int(np.searchsorted(below, rng.random() * below[-1]))

    @cached_property
    def _below(self) -> dict[float, Numbers]:
        found = {}
        for sharp in (1.0, SHARP):
            chances = np.maximum(self.chances, 1e-12) ** sharp
            found[sharp] = (chances / chances.sum(1, keepdims=True)).cumsum(0)
        return found


class Small:
    """The set while it is searched for.

    x, y: its state. steps: of the whole search. fixed: (rows,) labels that are not to change; None: classes come in the shares of
    the large table.
    """

    def __init__(self, rows: int, numbers: int, steps: int, fixed: NDArray[np.int64] | None = None) -> None:
        self.x, self.y = torch.zeros(rows, numbers), torch.zeros(rows, dtype=torch.int64)
        self._steps, self._fixed = steps, fixed
        self._judge: Judge | None = None
        self._worth = NOTHING

    @property
    def state(self) -> dict[str, Tensor]:
        return {"small": self.x, "small_labels": self.y}

    def step(self, large: Large, step: int, rng: np.random.Generator) -> None:
        """What it does depends on the state, the random numbers and on whether it is the first step."""
        if large.chances.shape[1] == 1:
            places = herded(large.rows.cells, len(self.y))
            self._keep(large.rows.x[places], large.rows.y[places])
            return
        if self._judge is None:
            self._judge = large.judge()
            self._worth = self._judge.worth(*self._copied()) if step else NOTHING
        for x, y in self._starts(large, rng) if step == 0 else self._changed(large, rng):
            worth = self._judge.worth(x, y, self._worth.linear - HOPELESS)
            heat = HEAT * (1 - step / self._steps) if step else 0.0
            if worth.total >= self._worth.total - heat * rng.exponential():
                self._worth = worth
                self._keep(x, y)

    def _keep(self, x: NDArray[np.float32], y: NDArray[np.int64]) -> None:
        self.x.copy_(torch.from_numpy(x))
        self.y.copy_(torch.from_numpy(y))

    def _copied(self) -> Drawn:
        return self.x.numpy().copy(), self.y.numpy().copy()

    def _starts(self, large: Large, rng: np.random.Generator) -> Iterator[Drawn]:
        """Sets at random: rows for each label, by the chance that they have it."""
        labels = shared_out(large.chances.mean(0), len(self.y)) if self._fixed is None else self._fixed
        for _ in range(STARTS):
            y = rng.permutation(labels)
            yield large.rows.x[[large.one_of(int(label), rng, SHARP) for label in y]], y

    def _changed(self, large: Large, rng: np.random.Generator) -> Iterator[Drawn]:
        """A row that students miss, another row, other cells, or another label; nothing if that would break a constraint."""
        (x, y), known = self._copied(), large.rows.x
        kind, row = rng.random(), int(rng.integers(len(y)))
        if rng.random() < MISSED:
            self._take_missed(x, y, row, large, rng)
        elif kind < ROW:
            x[row] = known[large.one_of(int(y[row]), rng)]
        elif kind < CELLS or self._fixed is not None:
            for _ in range(int(rng.integers(1, MOST_CELLS + 1))):
                row, found = int(rng.integers(len(y))), int(rng.integers(len(known)))
                block = large.blocks[int(rng.integers(len(large.blocks)))]
                x[row, block] = known[found, block]
        else:
            classes = large.chances.shape[1]
            y[row] = (y[row] + int(rng.integers(1, classes))) % classes
        schema = large.model.schema
        x = filled(x, schema)
        is_new = (x != self.x.numpy()).any(1) | (y != self.y.numpy())
        if hold(x[is_new], y[is_new], schema).all():
            yield x, y

    def _take_missed(
        self, x: NDArray[np.float32], y: NDArray[np.int64], row: int, large: Large, rng: np.random.Generator
    ) -> None:
        """One of the judged rows, the likelier the further off trees are, in place of this row or of one of the same class."""
        below = self._worth.missed.cumsum()
        found = min(int(np.searchsorted(below, rng.random() * below[-1])), len(below) - 1)
        chances = large.chances[found]
        if self._fixed is None and rng.random() < 0.5:
            y[row] = int(np.searchsorted(chances.cumsum()[:-1], rng.random() * chances.sum()))
        else:
            same = np.flatnonzero(y == chances.argmax())
            row = int(rng.choice(same)) if len(same) else row
        x[row] = large.rows.x[found]


def shared_out(shares: Numbers, rows: int) -> NDArray[np.int64]:
    """(rows,) labels in these shares, each of them once at least where there is room."""
    least = min(rows // len(shares), 1)
    exact = shares / shares.sum() * (rows - least * len(shares))
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: rows - least * len(shares) - counts.sum()]] += 1
    return np.repeat(np.arange(len(shares)), counts + least)


def herded(cells: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Places of rows that together have the shares of the large table, in its cells and pairs of cells: each next row is the one
    that the ones before it lack most (kernel herding, Chen et al. 2010)."""
    some = cells[:JUDGED]
    mean = np.mean([_alike(some, row) for row in some], axis=0)
    found, have = [], np.zeros(len(some))
    for count in range(1, rows + 1):
        place = int(np.argmax(mean - have / count))
        found.append(place)
        have += _alike(some, some[place])
        mean[place] = -np.inf
    return np.array(found)


def _alike(cells: NDArray[np.int64], row: NDArray[np.int64]) -> Numbers:
    """How many cells and pairs of cells rows have in common with this one."""
    common = (cells == row).sum(1).astype(np.float64)
    alike: Numbers = common * (common + 1) / 2
    return alike


def _taught(rows: Rows, classes: int) -> Numbers:
    """(rows, classes): chances by trees that learned from all rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    chances = np.zeros((len(rows.y), classes))
    known = np.unique(rows.y)
    if len(known) == 1:
        chances[:, known] = 1.0
        return chances
    trees = HistGradientBoostingClassifier(
        max_iter=max(TREES // len(known), 20), max_depth=SPLITS, early_stopping=False, random_state=0
    )
    chances[:, known] = trees.fit(rows.cells, rows.y).predict_proba(rows.cells)
    return chances
