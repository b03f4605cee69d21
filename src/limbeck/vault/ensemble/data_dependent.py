"""How private votes were for this very data set: an owner's curiosity, never an epsilon to publish.

The bounds here depend on the records (through the votes before noise), so stating one would tell about them. They are not
reachable from a plan, a certificate or a release. DataLens, Theorems 4 and 5; PATE (Papernot et al. 2018), Theorem 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from limbeck.privacy import renyi

Array = NDArray[np.float64]


def log_unlikely_class(votes: Array, sigma: float) -> float:
    """ln q: a bound on the chance that noise of std `sigma` makes another class than the first one win (GNMax)."""
    ordered = np.sort(np.asarray(votes, dtype=np.float64))
    return float(logsumexp(log_ndtr(-(ordered[-1] - ordered[:-1]) / (math.sqrt(2) * sigma))))


def log_unlikely_direction(sums: Array, sigma: float, threshold: float) -> float:
    """ln q of Theorem 5: the chance that noise gives one image another direction than its likeliest one.

    sums: the votes for each coordinate before noise. A direction is 1, -1 or 0 at each coordinate by the threshold.
    """
    up, down = ndtr((sums - threshold) / sigma), ndtr((-sums - threshold) / sigma)
    likeliest = np.maximum.reduce([up, down, 1 - up - down])
    # The coordinates' noise is independent, so the chances multiply.
    log_hit = float(np.log(likeliest).sum())
    return math.log(-math.expm1(log_hit)) if log_hit < 0 else -math.inf


def data_dependent_curve(log_q: float, slope: float, orders: Array) -> Array:
    """Theorem 4 for a mechanism whose plain Renyi curve is slope * order, at the best mu_1 and mu_2; never above the plain one.

    Guarantee: none that could be published, see above.
    """
    plain = slope * orders
    if log_q == -math.inf:
        return np.zeros_like(orders)
    mu_2 = math.sqrt(max(-log_q, 0.0) / slope)
    mu_1 = mu_2 + 1
    if mu_2 <= 1 or -log_q <= slope * mu_2:
        return plain
    limit = (mu_2 - 1) * slope * mu_2 - mu_2 * (math.log1p(1 / (mu_1 - 1)) + math.log1p(1 / (mu_2 - 1)))
    if log_q > limit:
        return plain
    log_rest = math.log(-math.expm1(log_q))
    inner = math.log(-math.expm1((log_q + slope * mu_2) * (1 - 1 / mu_2)))
    log_a = (orders - 1) * (log_rest - inner)
    log_b = (orders - 1) * (slope * mu_1 - log_q / (mu_1 - 1))
    bound = np.logaddexp(log_rest + log_a, log_q + log_b) / (orders - 1)
    return np.where(orders <= mu_1, np.minimum(np.maximum(bound, 0.0), plain), plain)


def both_epsilons(
    steps: Sequence[Array], k: int, sigma: float, threshold: float, delta: float
) -> tuple[list[float], list[float]]:
    """Figure 2 of DataLens: epsilon after each step by the plain bound and by the one that depends on the data.

    steps: for each step the votes before noise, (images, coordinates). Both by Renyi curves, so that they can be compared. The
    second holds without what it costs to publish it.
    """
    slope = 2 * k / sigma**2
    plain, dependent = np.zeros_like(renyi.ORDERS), np.zeros_like(renyi.ORDERS)
    found: tuple[list[float], list[float]] = ([], [])
    for sums in steps:
        for image in sums:
            plain = plain + slope * renyi.ORDERS
            log_q = log_unlikely_direction(image, sigma, threshold)
            dependent = dependent + data_dependent_curve(log_q, slope, renyi.ORDERS)
        found[0].append(renyi.epsilon(plain, delta))
        found[1].append(renyi.epsilon(dependent, delta))
    return found
