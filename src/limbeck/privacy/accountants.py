"""What answers cost by each accountant: dp-accounting's PLD and RDP, our own Renyi curves for subsets, and exactly.

A composition is flattened to terms first: so many Gaussian answers with so much noise over so large a sample, or so many choices.
"""

from __future__ import annotations

import functools
import logging
import math
from typing import NamedTuple

import numpy as np
from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism
from dp_accounting.rdp import RdpAccountant
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from limbeck.errors import BadInput
from limbeck.privacy import bounded_range, renyi
from limbeck.privacy.bounded_range import BoundedRangeDpEvent
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
    """Gaussian answers, so many `times`, each over a Poisson sample at `rate`, or over a subset with a share of `rate`; or
    choices of bounded range 2 / noise, over all records."""

    rate: float
    noise: float
    times: int
    subset: bool = False
    choice: bool = False

    @property
    def range(self) -> float:
        """Of one choice. Guarantee: an upper bound, though noise was itself computed from a range."""
        return 2 / self.noise * (1 + 1e-15)


Terms = tuple[Term, ...]


def has_subsets(terms: Terms) -> bool:
    return any(term.subset for term in terms)


def has_choices(terms: Terms) -> bool:
    return any(term.choice for term in terms)


def is_plain(terms: Terms) -> bool:
    """Whether all of them are Gaussians over all records, which compose to one Gaussian."""
    return all(term.rate == 1 and not term.choice for term in terms)


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
        case BoundedRangeDpEvent():
            return (Term(1.0, 2 / float(event.range), 1, choice=True),)
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
    """The event of terms without subsets, with rates that dp-accounting prices well; for it a choice is zero-concentrated."""
    parts = []
    for term in terms:
        once: DpEvent = GaussianDpEvent(checked_noise(term.noise))
        if term.choice:
            once = ZCDpEvent(term.range**2 / 8)
        sampled = once if term.rate == 1 else PoissonSampledDpEvent(max(term.rate, SMALLEST_RATE), once)
        parts.append(SelfComposedDpEvent(sampled, term.times))
    return ComposedDpEvent(parts)


@functools.lru_cache(maxsize=4096)
def epsilon_pld(terms: Terms, delta: float, interval: float) -> float:
    """By privacy-loss distributions on a grid of this interval. Guarantee: an upper bound, whatever the interval."""
    return _on_grid(terms, delta, interval)


def _on_grid(terms: Terms, delta: float, interval: float) -> float:
    if has_choices(terms):
        plain = tuple(term for term in terms if is_plain((term,)))
        others = [_losses(term, interval) for term in terms if not is_plain((term,))]
        if plain:  # so many Gaussians are one
            others.append(from_gaussian_mechanism(1 / mu_of(plain), value_discretization_interval=interval))
        return float(functools.reduce(PrivacyLossDistribution.compose, others).get_epsilon_for_delta(delta))
    accountant = PLDAccountant(value_discretization_interval=interval)
    return float(accountant.compose(event_of(terms)).get_epsilon(delta))


def _losses(term: Term, interval: float) -> PrivacyLossDistribution:
    """Of all answers of a term that is no plain Gaussian, as dp-accounting's own accountant has them."""
    noise = checked_noise(term.noise)
    if term.choice:
        return bounded_range.loss_distribution(term.range, interval).self_compose(term.times)
    rate = max(term.rate, SMALLEST_RATE)
    once = from_gaussian_mechanism(noise, value_discretization_interval=interval, sampling_prob=rate)
    return once.self_compose(term.times)


@functools.lru_cache(maxsize=4096)
def epsilon_rdp(terms: Terms, delta: float) -> float:
    if not has_subsets(terms):
        return float(RdpAccountant().compose(event_of(terms)).get_epsilon(delta))
    # One curve for all terms, at whole orders, where each kind of sampling has a closed form.
    curves = [term.times * curve_of(term, renyi.ORDERS) for term in terms]
    return renyi.epsilon(sum(curves[1:], start=curves[0]), delta)


def curve_of(term: Term, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Renyi curve of one answer of a term, at whole orders. Guarantee: an upper bound at each."""
    noise, rate = checked_noise(term.noise), max(term.rate, SMALLEST_RATE)
    if term.choice:
        return bounded_range.renyi(term.range, orders)
    if term.subset:
        return renyi.subset_gaussian(rate, noise, orders)
    return renyi.poisson_gaussian(rate, noise, orders)


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
