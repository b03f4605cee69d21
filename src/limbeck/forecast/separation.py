"""How far classes lie apart, in place of accuracy: a scale on which sets of two classes and of ten stand beside each other.

A classifier gives every class a score, normal with deviation 1, and d higher for the true one. Which class it then names, with
the classes' shares in mind, is right as often as `accuracy_of` says: at d = 0 as often as the largest class occurs, and always
where d is large. With two equal classes it is the normal distribution function of d divided by the root of 2.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

CLOSEST, FARTHEST = 0.0, 7.0
NODES, REACH = 241, 6.0


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
    equal = max(shares) - min(shares) < 1e-9
    for index in range(1) if equal else range(len(shares)):
        others = np.ones_like(at)
        for other, share in enumerate(shares):
            if other != index:
                others = others * ndtr(score + math.log(shares[index] / share) / separation)
        right += (1.0 if equal else shares[index]) * float(weight @ others)
    return 100 * right


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
def _nodes() -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Points of a normal variable and their weights."""
    at = np.linspace(-REACH, REACH, NODES)
    weight = np.exp(-(at**2) / 2)
    return at, weight / weight.sum()
