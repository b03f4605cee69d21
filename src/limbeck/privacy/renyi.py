"""Renyi curves of the Gaussian mechanism at whole orders: plain, over a Poisson sample, and over a subset of fixed size.

dp-accounting has the last one too, but far too slow to search with; here all orders of all terms are one table of logarithms.
The tests compare the two.
"""

from __future__ import annotations

import functools
import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

ORDERS = np.concatenate([np.arange(2, 65), np.arange(72, 257, 8), [320, 384, 512, 768, 1024]]).astype(np.float64)
MOMENTS = 128


def gaussian(noise_multiplier: float, orders: NDArray[np.float64] = ORDERS) -> NDArray[np.float64]:
    return orders / (2 * noise_multiplier**2)


def poisson_gaussian(rate: float, noise_multiplier: float, orders: NDArray[np.float64] = ORDERS) -> NDArray[np.float64]:
    """Each record is in by a coin of its own (Mironov, Talwar and Zhang 2019, section 3.3): exact at whole orders."""
    if rate >= 1:
        return gaussian(noise_multiplier, orders)
    order, j, chosen = _binomials(orders, first=0)
    logs = chosen + (order - j) * math.log1p(-rate) + j * math.log(rate) + j * (j - 1) / (2 * noise_multiplier**2)
    summed: NDArray[np.float64] = logsumexp(logs, axis=1)
    # Rounding may leave a sum of probabilities a hair below 1.
    return np.maximum(summed, 0.0) / (orders - 1)


def subset_gaussian(share: float, noise_multiplier: float, orders: NDArray[np.float64] = ORDERS) -> NDArray[np.float64]:
    """A subset with a `share` of all, drawn without replacement; neighbours differ in what one of all holds.

    Wang, Balle and Kasiviswanathan 2019, Theorems 9 and 27, for a base mechanism without a finite epsilon. The sum over
    j >= 3 stands inside the logarithm. Looking at a part is never worse than looking at all, so the plain curve is a bound
    as well.

    Guarantee: an upper bound at each order.
    """
    if share >= 1:
        return gaussian(noise_multiplier, orders)
    _, j, chosen = _binomials(orders, first=2)
    bound = math.log(2) + j[0] * (j[0] - 1) / (2 * noise_multiplier**2)
    central = _central_moments(noise_multiplier)  # of the orders 2, 4, 6, ...
    known = int(min(len(bound), 2 * len(central) - 1))
    places = np.arange(2, known + 2)
    by_moments = math.log(4) + (central[places // 2 - 1] + central[(places + 1) // 2 - 1]) / 2
    bound[:known] = np.minimum(bound[:known], by_moments)
    logs = bound + j * math.log(share) + chosen
    summed: NDArray[np.float64] = np.logaddexp(0.0, logsumexp(logs, axis=1))
    return np.minimum(summed / (orders - 1), gaussian(noise_multiplier, orders))


@functools.lru_cache(maxsize=256)
def _central_moments(noise_multiplier: float) -> NDArray[np.float64]:
    """Logarithms of E (p/q - 1)^l under q for l = 2, 4, ... MOMENTS, for two Gaussians p and q one sensitivity apart.

    They are the l-th differences of exp(x (x - 1) / (2 sigma^2)) at 0. In doubles the differences would cancel to nothing,
    so they are taken with as many digits as it needs.
    """
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 120, 10**9, -(10**9)
        spread = 1 / (2 * Decimal(noise_multiplier) ** 2)
        row, found = [(spread * (x * (x - 1))).exp() for x in range(MOMENTS + 1)], []
        for order in range(1, MOMENTS + 1):
            row = [after - before for before, after in itertools.pairwise(row)]
            if order % 2 == 0:
                found.append(float(row[0].ln()) if row[0] > 0 else math.inf)
    return np.array(found)


def _binomials(
    orders: NDArray[np.float64], first: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Column of orders, row of j = first, first + 1, ..., and the table of log binomials (-inf past the order)."""
    order, j = orders[:, None], np.arange(first, orders.max() + 1)[None, :]
    inside = gammaln(np.maximum(order - j, 0) + 1)
    return order, j, np.where(j <= order, gammaln(order + 1) - gammaln(j + 1) - inside, -np.inf)


def epsilon(curve: NDArray[np.float64], delta: float, orders: NDArray[np.float64] = ORDERS) -> float:
    """From a curve to epsilon by Balle et al. 2020 (Theorem 21), at the best order.

    Guarantee: an upper bound; never below 0.
    """
    by_order = curve + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return max(float(by_order.min()), 0.0)


def epsilon_mironov(curve: NDArray[np.float64], delta: float, orders: NDArray[np.float64] = ORDERS) -> float:
    """The older conversion (Mironov 2017, Proposition 3) that most papers print; larger, shown for comparison only."""
    return float((curve + math.log(1 / delta) / (orders - 1)).min())


def gaussian_epsilon_mironov(mu: float, delta: float) -> float:
    """Epsilon of Gaussian answers with sensitivity / std = mu by the papers' route: RDP at the best real order, then Mironov."""
    return mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
