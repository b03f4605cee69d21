"""From queries to epsilon: two accountants side by side, exact where nothing is subsampled, rounded against the user.

Epsilon never depends on data (rule 9). Adjacency is add/remove throughout (rule 10), of one unit: a record, or a person with all
of their records. A query's event is the same for both, because the vault samples, clips and noises by the unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dp_accounting import ComposedDpEvent, DpEvent

from limbeck.errors import BadInput
from limbeck.privacy.accountants import (
    Term,
    epsilon_pld,
    epsilon_rdp,
    event_of,
    gaussian_epsilon,
    is_gridded,
    is_plain,
    mu_of,
    terms_of,
)
from limbeck.privacy.numbers import SMALLEST_NORMAL, apart, finite_or_word, number_from, require_count, require_positive
from limbeck.privacy.queries import Query
from limbeck.privacy.schema import ADD_REMOVE

DISCRETISATION = 1e-4
DECIMALS = 6


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


def require_delta(delta: float, units: int | None = None, by_person: bool = False) -> None:
    """Delta must be a small positive number; at 1/N a mechanism may publish a whole record now and then.

    `units` is N: the number of records, or of persons where `by_person`.
    """
    require_positive("delta", delta)
    if delta >= 1:
        raise BadInput(f"delta must be below 1, got delta={delta}.")
    if units is not None and delta >= 1 / units:
        shown, limit = apart(delta, 1 / units)
        noun, leak = ("persons", "all records of a person") if by_person else ("records", "whole records")
        raise BadInput(
            f"delta={shown} is not below 1/N = {limit} for N = {units} {noun}: it would allow {leak} "
            f"to leak. Choose --delta {_power_of_ten_below(1 / units):g} or less."
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
    terms = terms_of(event)
    if terms == ():
        raise BadInput("There is nothing to price: no query is given.")
    if terms is None:
        return Price(epsilon=math.inf, delta=delta, epsilon_pld=math.inf, epsilon_rdp=math.inf)
    rdp = round_up(epsilon_rdp(terms, delta))
    pld = round_up(epsilon_pld(terms, delta, DISCRETISATION)) if is_gridded(terms, delta) else math.inf
    exact = None
    if is_plain(terms):
        exact = round_up(gaussian_epsilon(mu_of(terms), delta))
    best = min(value for value in (pld, rdp, exact) if value is not None)
    return Price(epsilon=best, delta=delta, epsilon_pld=pld, epsilon_rdp=rdp, epsilon_exact=exact)


def sampled_gaussian(rate: float, steps: int, noise_multiplier: float, delta: float) -> Price:
    """Price of `steps` Gaussian answers, each over a Poisson sample at `rate`."""
    return price_event(event_of((Term(checked_rate(rate), noise_multiplier, checked_steps(steps)),)), delta)


def checked_rate(rate: float) -> float:
    if not SMALLEST_NORMAL <= rate <= 1:
        raise BadInput(f"rate must lie in (0, 1], got rate={rate}.")
    return rate


def checked_steps(steps: int) -> int:
    require_count("steps", steps)
    return steps


def round_up(value: float) -> float:
    """Six decimals, always upwards: a printed epsilon is never below the computed one (rule 9)."""
    if math.isinf(value):
        return value
    scaled: float = math.ceil(value * 10.0**DECIMALS) / 10.0**DECIMALS
    return scaled if scaled >= value else scaled + 10.0**-DECIMALS
