"""Which class a row is of: a smooth model of the label given the row, and labels drawn so that they add up.

A mixture that fits every pair has spare freedom in how three and more columns go together with the class, and trees find what it
made up. The model here has a term for each cell. How far the terms of a column may stray, each by itself and each from its
neighbour, is what makes the measured counts likeliest (empirical Bayes): a column that says nothing about the class gets no
terms, however noisy its counts are. Where the measured pairs surely ask for more, some of the mixture's own opinion is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.methods.mosaic.measured import Measured

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

SWEEPS = 8  # over all columns
MOST_WALK = 256  # cells of a column that is taken for a walk: it takes their third power
STRAYS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # how far log odds may stray
FAR = 1.0  # how far they are thought to, before anything is measured
LEAST_SLOPE = 0.1  # of a cell whose labels are nearly sure: no step is longer than that lets it be
OPINIONS = (0.0, 0.25, 0.5, 0.75, 1.0)  # how much of the mixture's log odds is kept
SURELY = 2.0  # standard deviations of a misfit that is noise alone
NEAR = 1.1  # times the least misfit: what the mixture's fit to the noise itself may be
PULL, MOST_PULL = 0.2, 3.0  # of log odds, towards what the labels before fell short of
MOST_PAIRS = 1 << 25  # numbers that the shortfall of pairs may take


@dataclass(frozen=True, eq=False)
class Rows:
    """What a model of the label is fitted on.

    cells: (rows, columns). opinions: (rows, classes), the mixture's log odds. ordered: of each column, how many of its first
    cells are alike if they are neighbours; 0: none.
    """

    cells: Places
    opinions: Numbers
    ordered: tuple[int, ...]


class Said(Protocol):
    """What a third answer says of the label (expected.py)."""

    @property
    def shift(self) -> torch.Tensor: ...
    @property
    def doubt(self) -> torch.Tensor: ...
    @property
    def opinion(self) -> torch.Tensor: ...


class LabelModel:
    """Log odds of the classes: a constant, a term for each cell, and a share of the mixture's opinion."""

    def __init__(
        self, measured: Measured, rows: Rows, records: float, opinion: float, said: Said | None = None
    ) -> None:
        single, variance = measured.combined()
        self._target, self._variance = single.double().numpy(), variance.double().numpy()
        # Every column says how large the classes are; one of few cells says it with less noise.
        totals = [(self._target[:, part].sum(1), self._variance[part].sum()) for part in measured.blocks()]
        self._shares = np.maximum(sum(total / variance for total, variance in totals), 1e-6 / self._variance.sum())
        self._shares /= self._shares.sum()
        if said is not None:
            self._target = self._target + said.shift.double().numpy()
            self._variance = self._variance + said.doubt.double().numpy()
        self._blocks, self._rows, self._records, self.opinion = measured.blocks(), rows, records, opinion
        # A rare class is nearly sure not to be there in every cell, and still has to be learned.
        self._least_slope = np.minimum(LEAST_SLOPE, self._shares * (1 - self._shares))[:, None]
        self.terms = np.zeros(self._target.T.shape)
        self.constant = np.log(self._shares) * (1 - opinion)
        self._odds = self.constant + opinion * rows.opinions

    def chances(self) -> Numbers:
        """(rows, classes)."""
        odds = np.exp(self._odds - self._odds.max(1, keepdims=True))
        chances: Numbers = odds / odds.sum(1, keepdims=True)
        return chances

    def expected(self) -> Numbers:
        """(classes, cells): what the rows' chances, less their mean, add up to in each cell, as shares of all rows."""
        chances, found = self.chances() - 1 / len(self._shares), np.zeros(self._target.shape)
        for cells, block in zip(self._rows.cells.T, self._blocks, strict=True):
            for label, each in enumerate(chances.T):
                found[label, block] = np.bincount(cells, each, minlength=block.stop - block.start) / len(cells)
        return found

    def fit(self) -> None:
        """One column after the other: its terms become the likeliest ones, the others given."""
        for _ in range(SWEEPS):
            for column in range(len(self._blocks)):
                self._fit_column(column)
            self._fit_constant()

    def _fit_column(self, column: int) -> None:
        """Records of each class that the rows lack in a cell, over how fast they become more, is a noised step of its terms."""
        block, cells, classes = self._blocks[column], self._rows.cells[:, column], len(self._shares)
        there, slope = self._sums(cells, block.stop - block.start)
        lacking = self._target[:, block] - there
        lacking -= lacking.mean(0)  # how many records a cell has is not the label's to explain
        all_classes = there.sum(0)
        variance = self._variance[block] * (1 - 1 / classes) + slope / self._records
        slope = np.maximum(slope, self._least_slope * all_classes + 1e-9) * classes / (classes - 1)
        found = likeliest(self.terms[block].T + lacking / slope, variance / slope**2, self._rows.ordered[column]).T
        found -= all_classes @ found / max(all_classes.sum(), 1e-6)
        self._odds += (found - self.terms[block])[cells]
        self.terms[block] = found

    def _sums(self, cells: Places, size: int) -> tuple[Numbers, Numbers]:
        """(classes, cells) both: shares of rows, and how fast they grow with their log odds."""
        chances = self.chances()
        found = [
            np.stack([np.bincount(cells, each, minlength=size) for each in part.T]) / len(cells)
            for part in (chances, chances * (1 - chances))
        ]
        return found[0], found[1]

    def _fit_constant(self) -> None:
        for _ in range(3):
            chances = self.chances()
            step = (self._shares - chances.mean(0)) / np.maximum((chances * (1 - chances)).mean(0), 1e-6)
            step = np.clip(step * (1 - 1 / len(step)), -1, 1)
            self.constant += step
            self._odds += step


def likeliest(seen: Numbers, variance: Numbers, ordered: int) -> Numbers:
    """Terms, (classes, cells), of which noised ones were seen: their means, if they stray as far as makes these likeliest.

    Each class strays as far as its own terms say: those of a rare class often stray further than those of the others, which
    would outvote it.

    ordered: how many of the first cells are a walk, each near its neighbour

    >>> bool((likeliest(np.array([[0.1, -0.2, 0.1]]), np.full((1, 3), 4.0), 0) == 0).all())
    True
    """
    classes, cells = seen.shape
    walk = _walk(cells, ordered)
    # The terms of all classes add up to 0, so one of them says nothing of its own.
    scale = 1 - 1 / max(classes, 2)
    best, found = np.full(classes, -math.inf), np.zeros(seen.shape)
    for apart in STRAYS:
        for along in STRAYS if walk is not None else (0.0,):
            own, shared = (apart * scale) ** 2, (along * scale) ** 2
            if walk is None:
                terms, fit = _alone(seen, variance, own)
            else:
                terms, fit = _together(seen, variance, own * np.eye(cells) + shared * walk)
            fit -= 0.5 * (apart**2 + along**2) / FAR**2
            is_better = fit > best
            best[is_better], found[is_better] = fit[is_better], terms[is_better]
    return found


def _alone(seen: Numbers, variance: Numbers, own: float) -> tuple[Numbers, Numbers]:
    """Means of terms that stray by themselves, and for each class the log likelihood of what was seen."""
    both = own + variance
    return own * seen / both, -0.5 * (seen**2 / both + np.log(both)).sum(1)


def _together(seen: Numbers, variance: Numbers, spread: Numbers) -> tuple[Numbers, Numbers]:
    """The same of terms with the covariance `spread`."""
    both = spread + variance[:, :, None] * np.eye(len(spread))
    solved = np.linalg.solve(both, seen[:, :, None])[:, :, 0]
    return solved @ spread, -0.5 * ((solved * seen).sum(1) + np.linalg.slogdet(both)[1])


def _walk(cells: int, ordered: int) -> Numbers | None:
    """The covariance of a random walk over the first cells, about its mean, of mean variance 1."""
    if ordered < 3 or cells > MOST_WALK:
        return None
    places = np.arange(ordered, dtype=np.float64)
    about_mean = np.eye(ordered) - 1 / ordered
    walk = np.zeros((cells, cells))
    walk[:ordered, :ordered] = about_mean @ np.minimum.outer(places, places) @ about_mean
    walk *= ordered / np.trace(walk)
    return walk


def fitted(measured: Measured, rows: Rows, records: float, said: Said | None = None) -> LabelModel:
    """The model with the least opinion that explains the measured pairs nearly as well as any.

    The mixture was fitted to the noise of these pairs, so its opinion always explains them a little better.
    said: what a third answer has to add, which was asked for a model with its opinion
    """
    if said is not None:
        model = LabelModel(measured, rows, records, float(said.opinion), said)
        model.fit()
        return model
    cells = float((measured.precision > 0).sum()) / 2 * len(measured.pairs)
    tried: list[tuple[LabelModel, float]] = []
    for opinion in OPINIONS:
        model = LabelModel(measured, rows, records, opinion)
        model.fit()
        misfit = _misfit(measured, rows.cells, model.chances()) if measured.by_class else 0.0
        # Surely no more than noise has: so it is if pairs say nothing about the class.
        if not tried and misfit <= cells - SURELY * math.sqrt(2 * cells):
            return model
        tried.append((model, misfit))
    enough = NEAR * min(misfit for _, misfit in tried) + math.sqrt(2 * cells)
    return next(model for model, misfit in tried if misfit <= enough)


def _misfit(measured: Measured, cells: Places, chances: Numbers) -> float:
    places = torch.from_numpy(cells + np.array(measured.starts[:-1]))
    hot = torch.zeros(len(places), measured.starts[-1]).scatter_(1, places, 1.0)
    total = 0.0
    for pairs, chance in zip(measured.pairs, torch.from_numpy(chances.T).float(), strict=True):
        found = (hot * chance[:, None]).T @ hot / len(hot)
        total += float(((found - pairs).square() * measured.precision).sum()) / 2
    return total


def balanced(
    chances: NDArray[np.float64], places: NDArray[np.int64], cells: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels with these chances, row after row, each moved a little by what its cells and pairs of cells lack so far.

    Drawn independently, labels of a cell of n rows are off by sqrt(n); like this they hardly are (a self-balancing walk). What is
    moved are log odds: moved by as much whatever its chance, a rare class would land on rows that have next to none of it.

    places: (rows, columns), the place of each row's cells among all
    """
    classes = chances.shape[1]
    single = np.zeros((cells, classes))
    pairs = np.zeros((cells, cells, classes), dtype=np.float32) if cells * cells * classes <= MOST_PAIRS else None
    labels = np.empty(len(chances), dtype=np.int64)
    uniform = rng.random(len(chances))
    for row in rng.permutation(len(chances)).tolist():
        own, chance = places[row], chances[row]
        excess = single[own].sum(0)
        if pairs is not None:
            excess += pairs[own[:, None], own].sum((0, 1))
        edges = (chance * np.exp((-PULL * excess).clip(-MOST_PULL, MOST_PULL))).cumsum()
        label = int(np.searchsorted(edges, uniform[row] * edges[-1]))
        labels[row] = label = min(label, classes - 1)
        change = -chance
        change[label] += 1
        single[own] += change
        if pairs is not None:
            pairs[own[:, None], own] += change
    return labels
