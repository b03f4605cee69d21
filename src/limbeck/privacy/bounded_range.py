"""What a choice costs: mechanisms of bounded range, by Renyi curve and by privacy loss.

A mechanism has range r if for any two neighbours there is a t with

    t - r <= log P(o) / P'(o) <= t        for every outcome o

(Durfee and Rogers 2019). The exponential mechanism P(o) ~ exp(score(o) / s), with scores that a neighbour moves by at most c
each, has range 2 c / s: the scores' part of the logarithm lies in [-c/s, c/s], and the normalisers move it as a whole.

Renyi. Range r is (r^2 / 8)-zCDP (Cesar and Rogers 2021): the divergence at order a is at most a r^2 / 8. It is at
most r as well, because P / P' has mean 1 under P', so t lies in [0, r].

Privacy loss. L = P / P' has mean 1 under P' and lies in [e^(t-r), e^t], so E max(L - a, 0), which is convex in L, is largest if
L has its two ends as its only values. That is (1 - e^(t-r)) (1 - a e^-t) / (1 - e^-r), and over all t it is largest at
e^t = sqrt(a e^r) (Dong, Durfee and Rogers 2020):

    H(a) = (1 - sqrt(a e^-r))^2 / (1 - e^-r)       for a in [e^-r, e^r];  1 - a below, 0 above

H is convex in a, so it is the profile of a pair of distributions, which dominates every mechanism of range r; dominating pairs
compose, also adaptively (Zhu, Dong and Wang 2022). Straight lines between points of a grid lie above H and belong
to a distribution on that grid ("connect the dots"). With a = e^x at x = -r, -r + d, ... r their kinks have the masses

    tanh(d / 4) / (1 - e^-r) * 2 e^((x - r) / 2)     half of that at both ends

as the slope between u and v in sqrt(a e^-r) is (1 - 2 / (u + v)) / (e^r - 1). They add up to 1. A range that is no multiple of
d is rounded up to one, which only costs more.
"""

from __future__ import annotations

import math

import attr
import numpy as np
from dp_accounting import DpEvent
from dp_accounting.pld.pld_pmf import DensePLDPmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from numpy.typing import NDArray


@attr.s(frozen=True, auto_attribs=True)
class BoundedRangeDpEvent(DpEvent):  # type: ignore[misc]  # dp-accounting has no types
    """A mechanism of this range. dp-accounting does not know it, and says so; limbeck.privacy.accountants prices it."""

    range: float


def renyi(range_: float, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Guarantee: an upper bound at each order."""
    return np.minimum(orders * range_**2 / 8, range_)


def profile(range_: float, epsilon: float) -> float:
    """The delta that goes with an epsilon: H above, in plain form.

    >>> round(profile(1.0, 0.5), 6), profile(1.0, 1.0), round(profile(1.0, -9.0), 6)
    (0.077405, 0.0, 0.999877)
    """
    if epsilon >= range_:
        return 0.0
    if epsilon <= -range_:
        return -math.expm1(epsilon)
    return math.expm1((epsilon - range_) / 2) ** 2 / -math.expm1(-range_)


def loss_distribution(range_: float, interval: float) -> PrivacyLossDistribution:
    """On a grid of this interval. Guarantee: dominates every mechanism of this range, whatever the interval."""
    most = max(math.ceil(range_ / interval), 1)
    x = np.arange(-most, most + 1) * interval
    masses = 2 * np.exp((x - x[-1]) / 2)
    masses[[0, -1]] /= 2
    masses *= math.tanh(interval / 4) / -math.expm1(-x[-1])
    return PrivacyLossDistribution(DensePLDPmf(interval, -most, masses, 0.0, True))
