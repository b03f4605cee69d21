"""From an epsilon to the noise that it needs: the smallest multiplier whose queries cost at most that much."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from dp_accounting import ComposedDpEvent
from scipy.optimize import brentq

from limbeck.errors import BadInput
from limbeck.privacy.accountants import (
    SMALLEST_MULTIPLIER,
    Terms,
    epsilon_pld,
    epsilon_rdp,
    gaussian_epsilon,
    has_subsets,
    is_gridded,
    is_plain,
    mu_of,
    terms_of,
)
from limbeck.privacy.accounting import DISCRETISATION, checked_rate, checked_steps, require_delta, round_up
from limbeck.privacy.numbers import require_positive
from limbeck.privacy.queries import ClippedSum, Query

COARSE = 1e-3
LARGEST_MULTIPLIER = 1e6

Accountant = Literal["best", "rdp"]


def calibrate(
    queries_at: Callable[[float], Sequence[Query]], epsilon: float, delta: float, accountant: Accountant = "best"
) -> float:
    """The smallest noise multiplier (to four decimals, rounded up) whose queries cost at most `epsilon`.

    Guarantee: the price at the returned value, computed as it will be booked, does not exceed `epsilon`.
    """
    require_positive("epsilon", epsilon)
    require_delta(delta)

    def terms(multiplier: float) -> Terms:
        flat = terms_of(ComposedDpEvent([query.event() for query in queries_at(multiplier)]))
        if flat is None:
            raise BadInput("Queries without noise cannot be brought to a finite epsilon.")
        return flat

    # A query over a small sample may have far less noise than the multiplier; the search stays where all can be priced.
    # By a hair, because a query rounds on the way from the multiplier to its own noise.
    lowest = SMALLEST_MULTIPLIER * (1 + 1e-12) / min(1.0, *(term.noise for term in terms(1.0)))
    # The cheap accountant brackets the answer for the dear one: a fine privacy-loss grid takes half a second.
    safe = _root_from_above(lambda s: epsilon_rdp(terms(s), delta) - epsilon, epsilon, lowest)
    if accountant == "rdp" or has_subsets(terms(safe)):
        return _polish(lambda s: epsilon_rdp(terms(s), delta), safe, epsilon)
    if is_plain(terms(safe)):
        return _polish(lambda s: gaussian_epsilon(mu_of(terms(s)), delta), safe, epsilon)
    if not is_gridded(terms(safe), delta):  # less noise costs more, so the root would not be on a grid either
        return _polish(lambda s: epsilon_rdp(terms(s), delta), safe, epsilon)
    root = _root_below(lambda s: epsilon_pld(terms(s), delta, COARSE) - epsilon, safe, lowest)
    if not is_gridded(terms(root), delta):  # the booking would not use the grid either
        return _polish(lambda s: epsilon_rdp(terms(s), delta), safe, epsilon)
    near, at = (epsilon_pld(terms(s), delta, COARSE) for s in (root * 0.99, root))
    # With enough noise delta alone covers everything and epsilon is 0, which has no logarithm.
    slope = math.log(near / at) if near > at > 0 else math.log(1 / 0.99)
    fine = lambda s: min(epsilon_rdp(terms(s), delta), epsilon_pld(terms(s), delta, DISCRETISATION))  # noqa: E731
    return _polish(fine, root, epsilon, slope / math.log(0.99))


def calibrate_sampled_gaussian(
    rate: float, steps: int, epsilon: float, delta: float, accountant: Accountant = "best"
) -> float:
    """The noise multiplier of `steps` sampled Gaussian answers that cost at most `epsilon` together."""
    rate, steps = checked_rate(rate), checked_steps(steps)
    return calibrate(
        lambda s: (
            ClippedSum(label="answer", map="identity", clip=1.0, noise_multiplier=s, rate=(rate,), count=steps),
        ),
        epsilon,
        delta,
        accountant,
    )


def _root_from_above(excess: Callable[[float], float], epsilon: float, lowest: float) -> float:
    high = max(1.0, lowest)
    while high > LARGEST_MULTIPLIER or excess(high) > 0:
        high *= 2
        if high > LARGEST_MULTIPLIER:
            raise BadInput(
                f"epsilon={epsilon:g} cannot be reached with any noise multiplier up to {LARGEST_MULTIPLIER:g}."
            )
    low = high / 2
    while low >= lowest and excess(low) <= 0:
        low, high = low / 2, low
    return high if low < lowest else _log_root(excess, low, high, 1e-4)


def _root_below(excess: Callable[[float], float], high: float, lowest: float) -> float:
    low = high
    while low > lowest and excess(low) <= 0:
        low, high = max(low * 0.85, lowest), low
    return high if low == high or excess(low) <= 0 else _log_root(excess, low, high, 1e-5)


def _log_root(excess: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    solution = brentq(lambda logarithm: excess(math.exp(logarithm)), math.log(low), math.log(high), xtol=tolerance)
    return math.exp(float(solution))


def _polish(cost: Callable[[float], float], start: float, epsilon: float, known_slope: float | None = None) -> float:
    """Refine a root by secants in logarithms, then step up in units of the last decimal until the target holds.

    `known_slope` is d log(cost) / d log(multiplier) near the root. With it a small step is as good as exact (its error is
    the square of the step), and a dear cost is computed once less.
    """
    start = math.ceil(start * 1e4) / 1e4 if known_slope else start
    guess, value, slope = start, cost(start), known_slope or -1.0
    if known_slope and round_up(value) <= epsilon < value * (1 - known_slope * 1e-4 / start):
        return start  # it holds, and one decimal less would not
    close = 5e-3 * start if known_slope else 1e-4
    for _ in range(4):
        if value <= 0:
            break
        proposal = guess * (epsilon / value) ** (1 / slope)
        if abs(proposal - guess) < close:
            guess = proposal if known_slope else guess
            break
        previous, before = guess, value
        guess, value = proposal, cost(proposal)
        if guess != previous and value != before and value > 0:
            slope = math.log(value / before) / math.log(guess / previous)
    ticks = math.ceil(guess * 1e4 - 1e-6)
    while round_up(cost(ticks / 1e4)) > epsilon:
        ticks += 1
    return ticks / 1e4
