"""A plan: all queries that a run may ask, priced before any record is read. It is a public value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from limbeck.errors import BadInput, BudgetRefused
from limbeck.privacy.accounting import Price, price, require_delta
from limbeck.privacy.calibration import calibrate
from limbeck.privacy.numbers import apart, require_positive
from limbeck.privacy.queries import Choice, ClippedSum, Query, query_from_dict
from limbeck.privacy.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What will be asked of one data set, by which method with which settings, and at what price.

    >>> from limbeck.privacy.queries import ClippedSum
    >>> asked = (ClippedSum(label="sums", map="identity", clip=1.0, noise_multiplier=4.0, rate=(0.1,), count=10),)
    >>> plan = Plan(dataset="scans", method="mine", settings={}, queries=asked, price=price(asked, delta=1e-5))
    >>> plan.counts, plan.shares, plan.price.epsilon < 0.5
    ({'sums': 10}, (1.0,), True)
    """

    dataset: str
    method: str
    settings: dict[str, Any]
    queries: tuple[Query, ...]
    price: Price

    def __post_init__(self) -> None:
        labels = [query.label for query in self.queries]
        if not labels or len(set(labels)) != len(labels):
            raise BadInput(f"A plan needs queries with different labels, got {labels}.")

    @property
    def is_private(self) -> bool:
        return math.isfinite(self.price.epsilon)

    @property
    def counts(self) -> dict[str, int]:
        """How often each query may be asked. The ledger counts against this, not against a configuration (rule 1)."""
        return {query.label: query.count for query in self.queries}

    @property
    def shares(self) -> tuple[float, ...]:
        """About how much of the price each query makes up: their weights add up over Gaussian answers."""
        weights = [query.weight for query in self.queries]
        total = sum(weights)
        return tuple(1 / len(weights) if math.isinf(total) else weight / total for weight in weights)

    def query(self, label: str) -> Query | None:
        return next((query for query in self.queries if query.label == label), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "method": self.method,
            "settings": self.settings,
            "queries": [query.to_dict() for query in self.queries],
            "price": self.price.to_dict(),
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Plan:
        try:
            return Plan(
                dataset=values["dataset"],
                method=values["method"],
                settings=values["settings"],
                queries=tuple(query_from_dict(query) for query in values["queries"]),
                price=Price.from_dict(values["price"]),
            )
        except (KeyError, TypeError) as error:
            raise BadInput(f"A plan does not have the right form: {error}.") from None


def for_unit(query: Query, schema: Schema) -> Query:
    """A method's query as it is asked where the unit is a person: its clip, and with it the noise, is that of a whole person.

    The vault clips one record to the method's own clip, which is this one divided by the schema's `reach`. A choice is made by
    what a whole person adds, too. A person is in one teacher, so questions to teachers stay as they are.
    """
    if not isinstance(query, ClippedSum | Choice) or schema.reach == 1:
        return query
    return dataclasses.replace(query, clip=query.clip * schema.reach)


def draw_up(
    *,
    schema: Schema,
    method: str,
    settings: dict[str, Any],
    queries_at: Callable[[float], Sequence[Query]],
    epsilon: float | None,
    delta: float,
    noise_multiplier: float | None = None,
) -> Plan:
    """Price a method's queries, with the noise that `epsilon` asks for or with the noise that the user fixed.

    Guarantee: reads no record. The plan's price is at most `epsilon` wherever `epsilon` is given.
    """
    schema.require_confirmed()
    require_delta(delta, schema.privacy_units, schema.by_person)
    if epsilon is not None and not math.isinf(epsilon):
        require_positive("epsilon", epsilon)
    if noise_multiplier is None:
        if epsilon is None:
            raise BadInput("Give --epsilon, or fix the noise with --set sigma=... and let epsilon follow.")
        noise_multiplier = 0.0 if math.isinf(epsilon) else calibrate(queries_at, epsilon, delta)
    queries = tuple(for_unit(query, schema) for query in queries_at(noise_multiplier))
    cost = price(queries, delta)
    if epsilon is not None and cost.epsilon > epsilon:
        costs, asked = apart(cost.epsilon, epsilon)
        raise BudgetRefused(
            f"With noise_multiplier={noise_multiplier:g} the plan costs epsilon={costs}, more than the "
            f"epsilon={asked} that was asked for (difference {cost.epsilon - epsilon:g}). Raise sigma, lower the number of "
            f"iterations, or leave sigma out so that it is chosen for you."
        )
    return Plan(dataset=schema.name, method=method, settings=settings, queries=queries, price=cost)
