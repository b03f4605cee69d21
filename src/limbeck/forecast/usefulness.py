"""How useful a set will be: the accuracy of a model trained on it, forecast from public numbers alone, and what would be needed.

The surface over those numbers (`surface.py`) was fitted once to sets made of public data (benchmarks/forecast_fit.py,
`fitted.py`). How far apart real records lie nobody can know before paying, unless it is said (`real_accuracy`); else it is that
of data of middling difficulty among the public ones. `low` and `high` are what eight of ten sets of public data lay between: the
curve's for a smaller and a larger signal, which are far apart where noise begins to win and close together where it has lost,
and for a smaller and a larger share of the distance.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from limbeck.forecast.facts import Facts
from limbeck.forecast.fitted import CASES, CURVES, HARDNESS, MARGIN, MARGIN_SAID, METHODS, SIZE
from limbeck.forecast.separation import accuracy_of, separation_of
from limbeck.forecast.surface import Surface
from limbeck.methods.elixir.method import MANY

CLOSE_TO_CHANCE = 0.3  # of the way from chance to 100 %: below, a set is of little use
USEFUL = 0.5  # what a warning says how to reach
ONE_IN_THREE = 1 / 3  # of the margin downwards: about one set in three ends below
MOST_EPSILON = 10.0  # more is no advice that anybody should follow
MOST_RECORDS = 100_000  # per class
USUAL_ANSWERS = 500


@dataclass(frozen=True, kw_only=True)
class Usefulness:
    """Accuracies in per cent. `chance` is that of guessing."""

    accuracy: float
    low: float
    high: float
    chance: float

    @property
    def share(self) -> float:
        return (self.accuracy - self.chance) / (100 - self.chance)


def usefulness(facts: Facts) -> Usefulness | None:
    """None where nobody has measured such sets.

    >>> facts = Facts(method="elixir", kind="colour", classes=2, records=150, numbers=3072, epsilon=1, size=50)
    >>> found = usefulness(facts)
    >>> found.low <= found.accuracy <= found.high
    True
    """
    if not facts.known:
        return None
    accuracy, low, high = (_accuracy(facts, doubt) for doubt in (0.0, -1.0, 1.0))
    return Usefulness(accuracy=accuracy, low=low, high=high, chance=round(100 * max(facts.all_shares), 1))


@functools.cache
def shipped() -> Surface:
    return Surface(curves=CURVES, size=SIZE, hardness=HARDNESS, cases=np.array(CASES, dtype=np.float64))


def _accuracy(facts: Facts, doubt: float) -> float:
    """doubt: -1 and 1 at the ends of the margin. Another method than the default one keeps a share of what that keeps."""
    margin = (MARGIN if facts.real_accuracy is None else MARGIN_SAID)[facts.kind]
    surface, share = shipped(), METHODS[facts.kind, facts.method]
    found = surface.at(facts, surface.moved(facts), margin, doubt)
    if share != 1:
        found = accuracy_of(share * separation_of(found, facts.all_shares), facts.all_shares)
    return round(found, 1)


def is_close_to_chance(facts: Facts, useful: Usefulness) -> bool:
    """Also where it may well be: of few pictures, whose set no networks ask about, one set in three."""
    few = facts.kind != "table" and not facts.answers
    return useful.share < CLOSE_TO_CHANCE or (few and _share(facts, _one_in_three(facts)) < CLOSE_TO_CHANCE)


def records_for(facts: Facts, share: float = USEFUL) -> int | None:
    """How many records of all classes together such a set needs; None where even very many would not do."""
    least = _least(lambda each: _is_useful(_with_records(facts, each), share), facts.records, MOST_RECORDS)
    return None if least is None else _rounded_up(least * facts.classes)


def _with_records(facts: Facts, each: float) -> Facts:
    """With so many of a class; Elixir's networks ask as soon as it is worth it."""
    asks = facts.method == "elixir" and facts.kind != "table" and each >= MANY and not facts.answers
    return replace(facts, records=each, answers=USUAL_ANSWERS if asks else facts.answers)


def epsilon_for(facts: Facts, share: float = USEFUL) -> float | None:
    """Which epsilon it needs with the records that there are; None where 10 would not do."""
    least = _least(lambda each: _is_useful(replace(facts, epsilon=each), share), facts.epsilon, MOST_EPSILON)
    return None if least is None else math.ceil(10 * least) / 10 if least < 2 else float(math.ceil(least))


def _is_useful(facts: Facts, share: float) -> bool:
    found = usefulness(facts)
    return found is not None and found.share >= share and _share(facts, _one_in_three(facts)) >= CLOSE_TO_CHANCE


def _one_in_three(facts: Facts) -> float:
    """The accuracy that one set in three stays below, about."""
    return _accuracy(facts, -ONE_IN_THREE)


def _share(facts: Facts, accuracy: float) -> float:
    """Of the way from chance to 100 %."""
    chance = 100 * max(facts.all_shares)
    return (accuracy - chance) / (100 - chance)


def _least(enough: Callable[[float], bool], low: float, high: float) -> float | None:
    if high <= low or not enough(high):
        return None
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _rounded_up(value: float) -> int:
    """To two digits, as nobody knows it better."""
    step = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return int(math.ceil(value / step) * step)
