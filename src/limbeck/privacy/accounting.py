"""From queries to epsilon: two accountants side by side, exact where nothing is subsampled, rounded against the user.

The events are dp-accounting's and so are the accountants; this module only joins, caches and searches. Epsilon never
depends on data (rule 9). Adjacency is add/remove one record throughout (rule 10).
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import norm

from limbeck.errors import BadInput
from limbeck.privacy import renyi
from limbeck.privacy.queries import (
    SMALLEST_NORMAL,
    ClippedSum,
    Query,
    apart,
    finite_or_word,
    number_from,
    require_count,
    require_positive,
)
from limbeck.privacy.schema import ADD_REMOVE

DISCRETISATION = 1e-4
COARSE = 1e-3
DECIMALS = 6
# Below this multiplier one record is all but visible, and the privacy-loss grids grow beyond memory.
SMALLEST_MULTIPLIER = 0.05
LARGEST_MULTIPLIER = 1e6
# Beyond this the grids lose their precision; nobody needs it.
LARGEST_PRICED = 1e9
# Below this rate the Renyi accountant loses all digits and may say 0. Epsilon rises with the rate, so a smaller rate is
# priced as this one.
SMALLEST_RATE = 1e-9
LARGEST_GRID = 1e3

Accountant = Literal["best", "rdp"]

# dp-accounting says for each Renyi order that does not converge that it leaves it out, which is sound and of no use to
# an owner who only asked for a price.
logging.getLogger("absl").addFilter(lambda record: "failed to converge" not in str(record.msg))


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a composition of queries costs. `epsilon` is the smallest sound value, the others are shown beside it."""

    epsilon: float
    delta: float
    epsilon_pld: float
    epsilon_rdp: float
    epsilon_exact: float | None = None
    adjacency: str = ADD_REMOVE

    def to_dict(self) -> dict[str, Any]:
        exact = None if self.epsilon_exact is None else finite_or_word(self.epsilon_exact)
        return {
            "epsilon": finite_or_word(self.epsilon),
            "delta": self.delta,
            "epsilon_pld": finite_or_word(self.epsilon_pld),
            "epsilon_rdp": finite_or_word(self.epsilon_rdp),
            "epsilon_exact": exact,
            "adjacency": self.adjacency,
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Price:
        try:
            exact = values["epsilon_exact"]
            return Price(
                epsilon=number_from(values["epsilon"]),
                delta=float(values["delta"]),
                epsilon_pld=number_from(values["epsilon_pld"]),
                epsilon_rdp=number_from(values["epsilon_rdp"]),
                epsilon_exact=None if exact is None else number_from(exact),
                adjacency=values["adjacency"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"A price does not have the right form: {error}.") from None


def require_delta(delta: float, records: int | None = None) -> None:
    """Delta must be a small positive number; at 1/N a mechanism may publish a whole record now and then."""
    require_positive("delta", delta)
    if delta >= 1:
        raise BadInput(f"delta must be below 1, got delta={delta}.")
    if records is not None and delta >= 1 / records:
        shown, limit = apart(delta, 1 / records)
        raise BadInput(
            f"delta={shown} is not below 1/N = {limit} for N = {records} records: it would allow whole records "
            f"to leak. Choose --delta {_power_of_ten_below(1 / records):g} or less."
        )


def _power_of_ten_below(value: float) -> float:
    return float(10.0 ** (math.ceil(math.log10(value)) - 1))


def price(queries: Sequence[Query], delta: float) -> Price:
    """Price a sequence of queries.

    Guarantee: an upper bound on epsilon at this delta for all answers of all queries together, adaptively chosen.
    """
    return price_event(ComposedDpEvent([query.event() for query in queries]), delta)


def price_event(event: DpEvent, delta: float) -> Price:
    require_delta(delta)
    terms = _terms(event)
    if terms == ():
        raise BadInput("There is nothing to price: no query is given.")
    if terms is None:
        return Price(epsilon=math.inf, delta=delta, epsilon_pld=math.inf, epsilon_rdp=math.inf)
    rdp = _round_up(_epsilon_rdp(terms, delta))
    pld = _round_up(_epsilon_pld(terms, delta, DISCRETISATION)) if _is_gridded(terms, delta) else math.inf
    exact = None
    if all(term.rate == 1 for term in terms):
        exact = _round_up(gaussian_epsilon(_mu(terms), delta))
    best = min(value for value in (pld, rdp, exact) if value is not None)
    return Price(epsilon=best, delta=delta, epsilon_pld=pld, epsilon_rdp=rdp, epsilon_exact=exact)


def _is_gridded(terms: Terms, delta: float) -> bool:
    """A grid for a huge epsilon would fill the memory, and none is proved for subsets; leaving an accountant out is sound."""
    return not _has_subsets(terms) and _epsilon_rdp(terms, delta) <= LARGEST_GRID


def sampled_gaussian(rate: float, steps: int, noise_multiplier: float, delta: float) -> Price:
    """Price of `steps` Gaussian answers, each over a Poisson sample at `rate`."""
    return price_event(_event((Term(_checked_rate(rate), noise_multiplier, _checked_steps(steps)),)), delta)


def calibrate(
    queries_at: Callable[[float], Sequence[Query]], epsilon: float, delta: float, accountant: Accountant = "best"
) -> float:
    """The smallest noise multiplier (to four decimals, rounded up) whose queries cost at most `epsilon`.

    Guarantee: the price at the returned value, computed as it will be booked, does not exceed `epsilon`.
    """
    require_positive("epsilon", epsilon)
    require_delta(delta)

    def terms(multiplier: float) -> Terms:
        flat = _terms(ComposedDpEvent([query.event() for query in queries_at(multiplier)]))
        if flat is None:
            raise BadInput("Queries without noise cannot be brought to a finite epsilon.")
        return flat

    # A query over a small sample may have far less noise than the multiplier; the search stays where all can be priced.
    lowest = SMALLEST_MULTIPLIER / min(1.0, *(term.noise for term in terms(1.0)))
    # The cheap accountant brackets the answer for the dear one: a fine privacy-loss grid takes half a second.
    safe = _root_from_above(lambda s: _epsilon_rdp(terms(s), delta) - epsilon, epsilon, lowest)
    if accountant == "rdp" or _has_subsets(terms(safe)):
        return _polish(lambda s: _epsilon_rdp(terms(s), delta), safe, epsilon)
    if all(term.rate == 1 for term in terms(safe)):
        return _polish(lambda s: gaussian_epsilon(_mu(terms(s)), delta), safe, epsilon)
    root = _root_below(lambda s: _epsilon_pld(terms(s), delta, COARSE) - epsilon, safe, lowest)
    if not _is_gridded(terms(root), delta):  # the booking would not use the grid either
        return _polish(lambda s: _epsilon_rdp(terms(s), delta), safe, epsilon)
    near, at = (_epsilon_pld(terms(s), delta, COARSE) for s in (root * 0.99, root))
    # With enough noise delta alone covers everything and epsilon is 0, which has no logarithm.
    slope = math.log(near / at) if near > at > 0 else math.log(1 / 0.99)
    fine = lambda s: min(_epsilon_rdp(terms(s), delta), _epsilon_pld(terms(s), delta, DISCRETISATION))  # noqa: E731
    return _polish(fine, root, epsilon, slope / math.log(0.99))


def calibrate_sampled_gaussian(
    rate: float, steps: int, epsilon: float, delta: float, accountant: Accountant = "best"
) -> float:
    """The noise multiplier of `steps` sampled Gaussian answers that cost at most `epsilon` together."""
    rate, steps = _checked_rate(rate), _checked_steps(steps)
    return calibrate(
        lambda s: (
            ClippedSum(label="answer", map="identity", clip=1.0, noise_multiplier=s, rate=(rate,), count=steps),
        ),
        epsilon,
        delta,
        accountant,
    )


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Exact epsilon of the Gaussian mechanism with sensitivity / std = mu (Balle and Wang, 2018)."""

    def excess(epsilon: float) -> float:
        first = norm.cdf(mu / 2 - epsilon / mu)
        second = math.exp(epsilon + float(norm.logcdf(-mu / 2 - epsilon / mu)))
        return float(first - second - delta)

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-12, rtol=1e-12)) + 1e-9


def _checked_rate(rate: float) -> float:
    if not SMALLEST_NORMAL <= rate <= 1:
        raise BadInput(f"rate must lie in (0, 1], got rate={rate}.")
    return rate


def _checked_steps(steps: int) -> int:
    require_count("steps", steps)
    return steps


def _round_up(value: float) -> float:
    """Six decimals, always upwards: a printed epsilon is never below the computed one (rule 9)."""
    if math.isinf(value):
        return value
    scaled: float = math.ceil(value * 10.0**DECIMALS) / 10.0**DECIMALS
    return scaled if scaled >= value else scaled + 10.0**-DECIMALS


class Term(NamedTuple):
    """Gaussian answers, so many `times`, each over a Poisson sample at `rate`, or over a subset with a share of `rate`."""

    rate: float
    noise: float
    times: int
    subset: bool = False


Terms = tuple[Term, ...]


def _has_subsets(terms: Terms) -> bool:
    return any(term.subset for term in terms)


def _terms(event: DpEvent) -> Terms | None:
    """Flatten an event; None where it is not private; refuse what is not known."""
    match event:
        case NonPrivateDpEvent():
            return None
        case GaussianDpEvent():
            return (Term(1.0, float(event.noise_multiplier), 1),)
        case PoissonSampledDpEvent() if isinstance(event.event, GaussianDpEvent):
            return (Term(float(event.sampling_probability), float(event.event.noise_multiplier), 1),)
        case SampledWithoutReplacementDpEvent() if isinstance(event.event, GaussianDpEvent):
            share = event.sample_size / event.source_dataset_size
            return (Term(share, float(event.event.noise_multiplier), 1, subset=share < 1),)
        case SelfComposedDpEvent():
            inner = _terms(event.event)
            return None if inner is None else tuple(term._replace(times=term.times * event.count) for term in inner)
        case ComposedDpEvent():
            parts = [_terms(part) for part in event.events]
            return (
                None if any(part is None for part in parts) else tuple(term for part in parts if part for term in part)
            )
    raise BadInput(f"No accountant is proved for the event {type(event).__name__}.")


def _checked_noise(multiplier: float) -> float:
    require_positive("noise_multiplier", multiplier)
    if multiplier > LARGEST_PRICED:
        shown, limit = apart(multiplier, LARGEST_PRICED)
        raise BadInput(f"noise_multiplier={shown} is above {limit}; use less noise.")
    if multiplier < SMALLEST_MULTIPLIER:
        shown, limit = apart(multiplier, SMALLEST_MULTIPLIER)
        raise BadInput(
            f"noise_multiplier={shown} is below {limit}, where epsilon is in the hundreds; use more "
            f"noise or a non-private method."
        )
    return multiplier


def _event(terms: Terms) -> DpEvent:
    """The event of terms without subsets, with rates that dp-accounting prices well."""
    parts = []
    for term in terms:
        once: DpEvent = GaussianDpEvent(_checked_noise(term.noise))
        sampled = once if term.rate == 1 else PoissonSampledDpEvent(max(term.rate, SMALLEST_RATE), once)
        parts.append(SelfComposedDpEvent(sampled, term.times))
    return ComposedDpEvent(parts)


@functools.lru_cache(maxsize=4096)
def _epsilon_pld(terms: Terms, delta: float, interval: float) -> float:
    accountant = PLDAccountant(value_discretization_interval=interval)
    return float(accountant.compose(_event(terms)).get_epsilon(delta))


@functools.lru_cache(maxsize=4096)
def _epsilon_rdp(terms: Terms, delta: float) -> float:
    if not _has_subsets(terms):
        return float(RdpAccountant().compose(_event(terms)).get_epsilon(delta))
    # One curve for all terms, at whole orders, where each kind of sampling has a closed form.
    curves = [
        term.times
        * (renyi.subset_gaussian if term.subset else renyi.poisson_gaussian)(
            max(term.rate, SMALLEST_RATE), _checked_noise(term.noise)
        )
        for term in terms
    ]
    return renyi.epsilon(sum(curves[1:], start=curves[0]), delta)


def _mu(terms: Terms) -> float:
    """Sensitivity / std of the one Gaussian that unsampled Gaussian answers compose to."""
    return math.sqrt(sum(term.times / term.noise**2 for term in terms))


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
    if known_slope and _round_up(value) <= epsilon < value * (1 - known_slope * 1e-4 / start):
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
    while _round_up(cost(ticks / 1e4)) > epsilon:
        ticks += 1
    return ticks / 1e4
