"""How useful a set will be: the accuracy of a model trained on it, forecast from public numbers alone.

The scale is the share of the way from chance to 100 %: 0 is guessing, 1 is perfect. On its logit the forecast is a straight line
in the logarithms of records per class times epsilon (up to some thousands), of the classes, and of the size of the set. It was
fitted once to sets made of public data (benchmarks/forecast_fit.py, `fitted.py`). Nobody can know before paying how hard the data
is, so the forecast is for data of middling difficulty among the public ones, and `low` and `high` are what eight of ten public
cases that were held out lay between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from limbeck.forecast.fitted import COEFFICIENTS, MARGIN, METHODS
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema

CLOSE_TO_CHANCE = 0.3  # of the way from chance to 100 %: below, a set is of little use
USEFUL = 0.5  # what a warning says how to reach
MOST_EPSILON = 10.0  # more is no advice that anybody should follow
MOST_RECORDS = 100_000  # per class
FLOOR = 0.05  # what is left of the error where records and epsilon abound


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The public numbers that a forecast needs.

    kind: grey, colour or table. records: of a class, on average. numbers: of one record. size: synthetic records of a class.
    answers: of networks, that the set is matched to. least: the share of the largest class, where it is public.
    """

    method: str
    kind: str
    classes: int
    records: float
    numbers: int
    epsilon: float
    size: float
    answers: int = 0
    least: float = 0.0

    @staticmethod
    def of(schema: Schema, plan: Plan) -> Facts:
        classes, settings = len(schema.classes), plan.settings
        rows = settings.get("rows")
        size = settings.get("per_class") or (rows or schema.records) / classes
        colour = schema.is_image and schema.shape[0] > 1
        sizes = schema.class_sizes
        return Facts(
            method=plan.method,
            kind=("colour" if colour else "grey") if schema.is_image else "table",
            classes=classes,
            records=schema.privacy_units / classes,
            numbers=schema.numbers,
            epsilon=plan.price.epsilon,
            size=float(size),
            answers=int(settings.get("T") or 0) if plan.method == "elixir" else 0,
            least=max(sizes) / sum(sizes) if sizes else 0.0,
        )

    @property
    def known(self) -> bool:
        """Whether sets of this kind were scored: by this method, with classes, under privacy."""
        return (self.kind, self.method) in METHODS and self.classes > 1 and 0 < self.epsilon < math.inf


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
    middle, chance = score(facts), 100 / facts.classes
    least = max(chance, 100 * facts.least)

    def accuracy(logit: float) -> float:
        return round(max(least, chance + (100 - chance) / (1 + math.exp(-logit))), 1)

    margin = MARGIN[facts.kind]
    return Usefulness(
        accuracy=accuracy(middle), low=accuracy(middle - margin), high=accuracy(middle + margin), chance=round(least, 1)
    )


def score(facts: Facts) -> float:
    """The logit of the share of the way from chance to 100 %."""
    coefficients = COEFFICIENTS[facts.kind]
    line = sum(coefficients[name] * value for name, value in features(facts).items())
    return line + METHODS[facts.kind, facts.method]


def features(facts: Facts) -> dict[str, float]:
    """What the straight line is of. Every one is a public number of the plan."""
    signal = -math.log(100 / (facts.records * facts.epsilon) + FLOOR)
    return {
        "one": 1.0,
        # Of noise and of records that are few; above some thousands neither is what holds a set back.
        "signal": signal,
        "classes": math.log(facts.classes - 1),
        "size": math.log(min(facts.size, 200) / 50) if facts.kind != "table" else 0.0,
        "answers": 1.0 if facts.answers else 0.0,
        "signal of answers": signal if facts.answers else 0.0,
    }


def is_close_to_chance(facts: Facts, useful: Usefulness) -> bool:
    """Also where it may be: of few pictures, whose set no networks ask about, a hard kind ends at the low end."""
    few = facts.kind != "table" and not facts.answers
    return useful.share < CLOSE_TO_CHANCE or (few and _low_share(facts) < CLOSE_TO_CHANCE)


def records_for(facts: Facts, share: float = USEFUL) -> int | None:
    """How many records of all classes together such a set needs; None where even very many would not do."""
    least = _least(lambda each: _is_useful(replace(facts, records=each), share), facts.records, MOST_RECORDS)
    return None if least is None else _rounded_up(least * facts.classes)


def epsilon_for(facts: Facts, share: float = USEFUL) -> float | None:
    """Which epsilon it needs with the records that there are; None where 10 would not do."""
    least = _least(lambda each: _is_useful(replace(facts, epsilon=each), share), facts.epsilon, MOST_EPSILON)
    return None if least is None else math.ceil(10 * least) / 10 if least < 2 else float(math.ceil(least))


def _is_useful(facts: Facts, share: float) -> bool:
    return 1 / (1 + math.exp(-score(facts))) >= share and _low_share(facts) >= CLOSE_TO_CHANCE


def _low_share(facts: Facts) -> float:
    return 1 / (1 + math.exp(MARGIN[facts.kind] - score(facts)))


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
