"""What Gaussian answers cost by each accountant: dp-accounting's PLD and RDP, our own Renyi curves for subsets, and exactly.

A composition is flattened to terms first: so many Gaussian answers with so much noise over so large a sample.
"""

from __future__ import annotations

import functools
import logging
import math
from typing import NamedTuple

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
from limbeck.privacy.numbers import apart, require_positive

# Below this multiplier one record is all but visible, and the privacy-loss grids grow beyond memory.
SMALLEST_MULTIPLIER = 0.05
# Beyond this the grids lose their precision; nobody needs it.
LARGEST_PRICED = 1e9
# Below this rate the Renyi accountant loses all digits and may say 0. Epsilon rises with the rate, so a smaller rate is
# priced as this one.
SMALLEST_RATE = 1e-9
LARGEST_GRID = 1e3

# dp-accounting says for each Renyi order that does not converge that it leaves it out, which is sound and of no use to
# an owner who only asked for a price.
logging.getLogger("absl").addFilter(lambda record: "failed to converge" not in str(record.msg))


class Term(NamedTuple):
    """Gaussian answers, so many `times`, each over a Poisson sample at `rate`, or over a subset with a share of `rate`."""

    rate: float
    noise: float
    times: int
    subset: bool = False


Terms = tuple[Term, ...]


def has_subsets(terms: Terms) -> bool:
    return any(term.subset for term in terms)


def terms_of(event: DpEvent) -> Terms | None:
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
            inner = terms_of(event.event)
            return None if inner is None else tuple(term._replace(times=term.times * event.count) for term in inner)
        case ComposedDpEvent():
            parts = [terms_of(part) for part in event.events]
            return (
                None if any(part is None for part in parts) else tuple(term for part in parts if part for term in part)
            )
    raise BadInput(f"No accountant is proved for the event {type(event).__name__}.")


def checked_noise(multiplier: float) -> float:
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


def event_of(terms: Terms) -> DpEvent:
    """The event of terms without subsets, with rates that dp-accounting prices well."""
    parts = []
    for term in terms:
        once: DpEvent = GaussianDpEvent(checked_noise(term.noise))
        sampled = once if term.rate == 1 else PoissonSampledDpEvent(max(term.rate, SMALLEST_RATE), once)
        parts.append(SelfComposedDpEvent(sampled, term.times))
    return ComposedDpEvent(parts)


@functools.lru_cache(maxsize=4096)
def epsilon_pld(terms: Terms, delta: float, interval: float) -> float:
    """By privacy-loss distributions on a grid of this interval. Guarantee: an upper bound, whatever the interval."""
    return _on_grid(terms, delta, interval)


def _on_grid(terms: Terms, delta: float, interval: float) -> float:
    accountant = PLDAccountant(value_discretization_interval=interval)
    return float(accountant.compose(event_of(terms)).get_epsilon(delta))


@functools.lru_cache(maxsize=4096)
def epsilon_rdp(terms: Terms, delta: float) -> float:
    if not has_subsets(terms):
        return float(RdpAccountant().compose(event_of(terms)).get_epsilon(delta))
    # One curve for all terms, at whole orders, where each kind of sampling has a closed form.
    curves = [
        term.times
        * (renyi.subset_gaussian if term.subset else renyi.poisson_gaussian)(
            max(term.rate, SMALLEST_RATE), checked_noise(term.noise)
        )
        for term in terms
    ]
    return renyi.epsilon(sum(curves[1:], start=curves[0]), delta)


def is_gridded(terms: Terms, delta: float) -> bool:
    """A grid for a huge epsilon would fill the memory, and none is proved for subsets; leaving an accountant out is sound."""
    return not has_subsets(terms) and epsilon_rdp(terms, delta) <= LARGEST_GRID


def mu_of(terms: Terms) -> float:
    """Sensitivity / std of the one Gaussian that unsampled Gaussian answers compose to."""
    return math.sqrt(sum(term.times / term.noise**2 for term in terms))


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
