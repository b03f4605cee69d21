"""Composition across plans that does not waste: a Renyi filter at one whole order.

Feldman and Zrnic (2021): plans may be chosen after seeing earlier answers, as long as their Renyi divergences at one fixed
order add up to no more than was set beforehand. All of them together then have that divergence, which by Balle et al. (2020,
Theorem 21) is (epsilon, delta) with epsilon = divergence + overhead(order, delta). docs/promise.md has the proof.

Every float is rounded up before it is added, and added exactly.
"""

from __future__ import annotations

import functools
import json
import math
from decimal import Decimal

import numpy as np

from limbeck.errors import BadInput

# At whole orders every kind of answer has a closed form (limbeck.privacy.renyi).
LARGEST_ORDER = 1024
SHARE = 0.75


@functools.lru_cache(maxsize=1024)
def order_for(epsilon: float, delta: float) -> int:
    """The order that leaves most room for Gaussian plans when three quarters of the budget are spent.

    Guarantee: follows from the budget alone, so it is fixed before a plan is booked under it.

    >>> order_for(2.0, 2e-5)
    12
    """
    orders = np.arange(2, LARGEST_ORDER + 1).astype(np.float64)
    room = (SHARE * epsilon - _overhead(orders, delta)) / orders
    return int(orders[int(np.argmax(room))])


def _overhead(orders: np.ndarray, delta: float) -> np.ndarray:
    found: np.ndarray = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return found


@functools.lru_cache(maxsize=1024)
def overhead(order: int, delta: float) -> Decimal:
    """What is added to a divergence to make an epsilon at this delta. Guarantee: rounded up, never below 0."""
    return _up(max(float(_overhead(np.array([float(order)]), delta)[0]), 0.0))


@functools.lru_cache(maxsize=4096)
def divergence(plan: str, counts: str, order: int) -> Decimal | None:
    """The Renyi divergence of all answers of a booked plan; None where the text is no plan with a curve.

    Guarantee: rounded up. Computed from the queries' own events, and only if these are the very answers that were booked.
    """
    # The accountants take a second to load, which whoever only looks at sums need not wait for.
    from limbeck.privacy.accountants import curve_of, terms_of
    from limbeck.privacy.queries import query_from_dict

    try:
        booked = json.loads(plan)
        queries = [query_from_dict(values) for values in booked.get("plan", booked)["queries"]]
        if not queries or {query.label: query.count for query in queries} != json.loads(counts):
            return None
        orders, total = np.array([float(order)]), Decimal(0)
        for query in queries:
            terms = terms_of(query.event())
            if not terms:
                return None
            for term in terms:
                total += term.times * _up(float(curve_of(term, orders)[0]))
        return total
    except (BadInput, ValueError, TypeError, KeyError, AttributeError, RecursionError, ArithmeticError):
        return None


def gaussian_room(left: Decimal, order: int, delta: float) -> float:
    """The epsilon, at this delta, of the largest plan of plain Gaussian answers whose divergence still fits; rounded down."""
    from limbeck.privacy.accountants import gaussian_epsilon

    spare = float(left) * (1 - 1e-7) - 1e-9
    if spare <= 0 or delta <= 0:
        return 0.0
    found = gaussian_epsilon(math.sqrt(2 * spare / order), delta) - 1e-6
    return max(math.floor(found * 1e6) / 1e6, 0.0)


def _up(value: float) -> Decimal:
    """A decimal number above a float that was computed with an error of a few last bits."""
    if not math.isfinite(value):
        raise ArithmeticError(value)
    return Decimal(repr(math.nextafter(value * (1 + 1e-9) + 1e-12, math.inf)))
