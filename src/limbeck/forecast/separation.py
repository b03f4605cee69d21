"""How far classes lie apart, in place of accuracy: a scale on which sets of two classes and of ten stand beside each other.

A classifier gives every class a score, normal with deviation 1, and d higher for the true one. Which class it then names, with
the classes' shares in mind, is right as often as `accuracy_of` says: at d = 0 as often as the largest class occurs, and always
where d is large. With two equal classes it is the normal distribution function of d divided by the root of 2.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

CLOSEST, FARTHEST = 0.0, 7.0
NODES, REACH = 241, 6.0
STEP = 0.025  # of a table of accuracies
MOST_SHARES = 20  # different ones; of more classes, those of about the same share count as one
Numbers = NDArray[np.float64]


def accuracy_of(separation: float, shares: Sequence[float]) -> float:
    """The share of right answers, in per cent. shares: of the classes, positive, adding up to 1.

    >>> round(accuracy_of(0.0, [0.5, 0.5]), 3), round(accuracy_of(7.0, [0.1] * 10), 2)
    (50.0, 100.0)
    >>> round(accuracy_of(1e-9, [0.75, 0.25]), 3)
    75.0
    """
    if separation < 1e-6:
        return 100 * max(shares)
    at, weight = _nodes()
    score, right = at + separation, 0.0
    alike = _alike(tuple(shares))
    for share, count in alike:
        others = np.ones_like(at)
        for other, many in alike:
            if many - (other == share):
                others = others * ndtr(score + math.log(share / other) / separation) ** (many - (other == share))
        right += count * share * float(weight @ others)
    return 100 * right


@functools.lru_cache(maxsize=16)
def _alike(shares: tuple[float, ...]) -> list[tuple[float, int]]:
    """Shares, and how many classes have each."""
    counts = Counter(shares)
    if len(counts) <= MOST_SHARES:
        return list(counts.items())
    steps = (math.log(max(counts)) - math.log(min(counts))) / MOST_SHARES
    groups: dict[int, list[float]] = {}
    for share in shares:
        groups.setdefault(round(math.log(share) / steps), []).append(share)
    return [(sum(group) / len(group), len(group)) for group in groups.values()]


def accuracies_of(separations: Numbers, shares: tuple[float, ...]) -> Numbers:
    """The same of many, from a table that is made once.

    >>> accuracies_of(np.array([0.0, 7.0]), (0.5, 0.5)).round(2).tolist()
    [50.0, 100.0]
    """
    places, table = _table(shares)
    return np.interp(separations, places, table)


@functools.lru_cache(maxsize=16)
def _table(shares: tuple[float, ...]) -> tuple[Numbers, Numbers]:
    places = np.arange(CLOSEST, FARTHEST + STEP, STEP)
    return places, np.array([accuracy_of(float(place), shares) for place in places])


def separation_of(accuracy: float, shares: Sequence[float]) -> float:
    """The other way round; 0 for an accuracy that guessing reaches, too.

    >>> round(separation_of(accuracy_of(1.7, [0.2] * 5), [0.2] * 5), 3)
    1.7
    """
    low, high = CLOSEST, FARTHEST
    if accuracy <= accuracy_of(low, shares):
        return low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if accuracy_of(middle, shares) < accuracy else (low, middle)
    return high


@functools.cache
def _nodes() -> tuple[Numbers, Numbers]:
    """Points of a normal variable and their weights."""
    at = np.linspace(-REACH, REACH, NODES)
    weight = np.exp(-(at**2) / 2)
    return at, weight / weight.sum()
