"""Which class a row is of: a smooth model of the label given the row, and labels drawn so that they add up.

A mixture that fits every pair has spare freedom in how three and more columns go together with the class, and trees find what it
made up. The model here has the most even chances that agree with what was measured: terms for single cells, each held back by
the noise it was measured with, and as much of the mixture's own opinion as the measured pairs ask for.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.methods.mosaic.measured import Measured
from limbeck.methods.parts.optimisers import Adam

STEPS, ETA = 80, 0.1
OWN, SMOOTH = 0.5, 0.3  # how far a cell's log odds stray, by itself and from its neighbour's
OPINIONS = (0.0, 0.25, 0.5, 0.75, 1.0)  # how much of the mixture's log odds is kept
SINGLE_PULL, PAIR_PULL = 0.1, 0.02  # towards what the labels before fell short of
MOST_PAIRS = 1 << 25  # numbers that the shortfall of pairs may take


class LabelModel:
    """Log odds of the classes: a constant, a term for each cell, and a share of the mixture's opinion."""

    def __init__(self, single: Tensor, variance: Tensor, ordered: list[slice], opinion: float) -> None:
        self._target, self._variance, self.opinion = single, variance, opinion
        self._shares = single.sum(1) / single.sum()
        self._ordered = ordered
        classes, cells = single.shape
        self.terms = torch.nn.Parameter(torch.zeros(cells, classes))
        self.smooth = torch.nn.Parameter(torch.zeros(cells, classes))
        self.constant = torch.nn.Parameter(self._shares.clamp_min(1e-6).log() * (1 - opinion))

    @torch.no_grad()
    def chances(self, hot: Tensor, opinions: Tensor) -> Tensor:
        return torch.softmax(hot @ (self.terms + self.smooth) + self.constant + self.opinion * opinions, 1)

    @torch.no_grad()
    def fit(self, hot: Tensor, opinions: Tensor) -> None:
        """Moments of the rows' cells with the class become the measured ones, as far as the noise lets one see them."""
        rows = len(hot)
        adam = Adam([self.terms, self.smooth, self.constant], ETA)
        spread = (self._shares * (1 - self._shares)).mean().clamp_min(1e-4)
        # A cell of few records, or one that was measured with much noise, is held back more.
        held = (self._variance / (hot.mean(0).clamp_min(1e-4) * spread))[:, None]
        is_ordered = torch.zeros(hot.shape[1], 1)
        for block in self._ordered:
            is_ordered[block] = 1
        for step in range(STEPS):
            adam.eta = ETA * 0.5 * (1 + math.cos(math.pi * step / STEPS))
            chances = self.chances(hot, opinions)
            lacking = hot.T @ chances / rows - self._target.T
            smooth = lacking * is_ordered
            for block in self._ordered:
                steps = self.smooth[block].diff(dim=0) * held[block].median() / SMOOTH**2
                smooth[block][1:] += steps
                smooth[block][:-1] -= steps
            adam.move((lacking + held / OWN**2 * self.terms, smooth, chances.mean(0) - self._shares))


def fitted(measured: Measured, ordered: list[slice], hot: Tensor, opinions: Tensor) -> LabelModel:
    """The model with the least opinion that explains the measured pairs as well as any, within the spread that noise alone gives
    such a comparison.

    ordered: the places of columns whose neighbouring cells are alike
    """
    tried = []
    single, variance = measured.combined()
    for opinion in OPINIONS if measured.by_class else OPINIONS[-1:]:
        model = LabelModel(single, variance, ordered, opinion)
        model.fit(hot, opinions)
        tried.append((model, _misfit(measured, hot, model.chances(hot, opinions)) if measured.by_class else 0.0))
    cells = float((measured.precision > 0).sum()) / 2 * len(measured.pairs)
    enough = min(misfit for _, misfit in tried) + math.sqrt(2 * cells)
    return next(model for model, misfit in tried if misfit <= enough)


@torch.no_grad()
def _misfit(measured: Measured, hot: Tensor, chances: Tensor) -> float:
    total = 0.0
    for pairs, chance in zip(measured.pairs, chances.T, strict=True):
        found = (hot * chance[:, None]).T @ hot / len(hot)
        total += float(((found - pairs).square() * measured.precision).sum()) / 2
    return total


def balanced(
    chances: NDArray[np.float64], places: NDArray[np.int64], cells: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels with these chances, row after row, each moved a little by what its cells and pairs of cells lack so far.

    Drawn independently, labels of a cell of n rows are off by sqrt(n); like this they hardly are (a self-balancing walk).

    places: (rows, columns), the place of each row's cells among all
    """
    classes = chances.shape[1]
    single = np.zeros((cells, classes))
    pairs = np.zeros((cells, cells, classes), dtype=np.float32) if cells * cells * classes <= MOST_PAIRS else None
    labels = np.empty(len(chances), dtype=np.int64)
    uniform = rng.random(len(chances))
    for row in rng.permutation(len(chances)).tolist():
        own, chance = places[row], chances[row]
        wanted = chance - SINGLE_PULL * single[own].sum(0)
        if pairs is not None:
            wanted -= PAIR_PULL * pairs[own[:, None], own].sum((0, 1))
        edges = np.maximum(wanted, 0.0).cumsum()
        label = int(np.searchsorted(edges, uniform[row] * edges[-1])) if edges[-1] > 0 else int(chance.argmax())
        labels[row] = label = min(label, classes - 1)
        change = -chance
        change[label] += 1
        single[own] += change
        if pairs is not None:
            pairs[own[:, None], own] += change
    return labels
