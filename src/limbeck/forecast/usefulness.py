"""How useful a set will be: the accuracy of a model trained on it, forecast from public numbers alone.

A set teaches less than real records do: its classes lie closer together (`separation.py`). By how much follows from how a record
stands beside the noise, as for a classifier whose direction is a noisy mean: it keeps 1 / root(1 + (level / signal)^(2 p)) of the
distance. The signal is records of a class, times what one record is worth in standard deviations of the noise; of pictures, over
a power of the numbers of a record. Levels, powers and what is kept at best were fitted once to sets made of public data
(benchmarks/forecast_fit.py, `fitted.py`). How far apart real records lie nobody can know before paying, unless it is said
(`real_accuracy`); else it is that of data of middling difficulty among the public ones. `low` and `high` are what eight of ten
sets of public data lay between: the forecasts for a smaller and a larger signal, which are far apart where noise begins to win
and close together where it has lost, and for a smaller and a larger share of the distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from limbeck.forecast.fitted import CURVES, HARDNESS, MARGIN, MARGIN_SAID, METHODS, SIZE
from limbeck.forecast.separation import accuracy_of, separation_of
from limbeck.methods.elixir.method import MANY
from limbeck.methods.elixir.working_size import at_size
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema

CLOSE_TO_CHANCE = 0.3  # of the way from chance to 100 %: below, a set is of little use
USEFUL = 0.5  # what a warning says how to reach
ONE_IN_THREE = 1 / 3  # of the margin downwards: about one set in three ends below
MOST_EPSILON = 10.0  # more is no advice that anybody should follow
MOST_RECORDS = 100_000  # per class
USUAL_NUMBERS = 784
USUAL_ANSWERS = 500
MOST_CLASSES = 1000  # for as many accuracy is reckoned; more are much the same
BEST = 99.5  # per cent: who says more of real records is believed this


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The public numbers that a forecast needs.

    kind: grey, colour or table. records: of a class, on average. numbers: of one record, as the method looks at it. size:
    synthetic records of a class. answers: of networks, that the set is matched to. shares: of the classes, where they are public.
    real_accuracy: what a usual model reaches on real records, if somebody says it.
    """

    method: str
    kind: str
    classes: int
    records: float
    numbers: int
    epsilon: float
    size: float
    delta: float = 1e-5
    answers: int = 0
    shares: tuple[float, ...] = ()
    real_accuracy: float | None = None

    @staticmethod
    def of(schema: Schema, plan: Plan, real_accuracy: float | None = None) -> Facts:
        classes, settings = len(schema.classes), plan.settings
        rows = settings.get("rows")
        size = settings.get("per_class") or (rows or schema.records) / classes
        colour = schema.is_image and schema.shape[0] > 1
        sizes = schema.class_sizes or ()
        elixir = plan.method == "elixir"
        return Facts(
            method=plan.method,
            kind=("colour" if colour else "grey") if schema.is_image else "table",
            classes=classes,
            records=schema.privacy_units / classes,
            numbers=at_size(schema, settings.get("size")).numbers if elixir else schema.numbers,
            epsilon=plan.price.epsilon,
            delta=plan.price.delta,
            size=float(size),
            answers=int(settings.get("T") or 0) if elixir else 0,
            shares=tuple(each / sum(sizes) for each in sizes) if min(sizes, default=0) > 0 else (),
            real_accuracy=real_accuracy,
        )

    @property
    def known(self) -> bool:
        """Whether sets of this kind were scored: by this method, with classes, under privacy."""
        return (self.kind, self.method) in METHODS and self.classes > 1 and 0 < self.epsilon < math.inf

    @property
    def curve(self) -> str:
        """Of networks that ask, of the first set alone, or of a table."""
        few = self.method == "elixir" and not self.answers
        return self.kind if self.kind == "table" else f"{self.kind} first" if few else f"{self.kind} answers"

    @property
    def all_shares(self) -> tuple[float, ...]:
        """Equal ones, where none are public."""
        count = min(self.classes, MOST_CLASSES)
        return self.shares if len(self.shares) == count else (1 / count,) * count


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
    accuracy, low, high = (_accuracy(facts, separation(facts, doubt)) for doubt in (0.0, -1.0, 1.0))
    return Usefulness(accuracy=accuracy, low=low, high=high, chance=round(100 * max(facts.all_shares), 1))


def _accuracy(facts: Facts, apart: float) -> float:
    return round(accuracy_of(max(apart, 0.0), facts.all_shares), 1)


def _margin(facts: Facts) -> dict[str, float]:
    return (MARGIN if facts.real_accuracy is None else MARGIN_SAID)[facts.kind]


def separation(facts: Facts, doubt: float = 0.0) -> float:
    """How far apart the classes of the set will lie. doubt: -1 and 1 at the ends of the margin."""
    share = METHODS[facts.kind, facts.method]
    kept = doubted_share(facts, CURVES[facts.curve], SIZE, _margin(facts), doubt)
    return hardness(facts) * kept * share


def doubted_share(facts: Facts, curve: dict[str, float], size: float, margin: dict[str, float], doubt: float) -> float:
    """margin: `signal`, the logarithm of how much more or less the records may say, and `share`, of the distance."""
    kept = kept_share(facts, curve, size, math.exp(doubt * margin["signal"]))
    return kept * (1 + doubt * margin["share"])


def hardness(facts: Facts) -> float:
    """How far apart real records lie: as said, or as of public sets of the kind."""
    if facts.real_accuracy is None:
        return HARDNESS[facts.kind]
    return separation_of(min(facts.real_accuracy, BEST), facts.all_shares)


def kept_share(facts: Facts, curve: dict[str, float], size: float, louder: float = 1.0) -> float:
    """Of the distance between classes. curve: what is kept at best; level and power of the noise; how it grows with the numbers
    of a record, and with the classes. louder: how many times the signal."""
    level = curve["level"] * (facts.classes / 2) ** curve["classes"]
    noise = (level / (louder * signal(facts, curve["spread"]))) ** (2 * curve["power"])
    larger = (min(max(facts.size, 1), 200) / 50) ** size if facts.kind != "table" else 1.0
    return curve["best"] * larger / math.sqrt(1 + noise)


def signal(facts: Facts, spread: float) -> float:
    """How far the mean of a class stands above its noise, but for a factor. spread: 1/2 if all numbers count alike."""
    return facts.records * one_record(facts.epsilon, facts.delta) / math.pow(facts.numbers / USUAL_NUMBERS, spread)


def one_record(epsilon: float, delta: float) -> float:
    """What a record is worth in standard deviations of the noise of one answer, about: by zero-concentrated privacy.

    >>> round(one_record(1.0, 1e-5), 2)
    0.2
    """
    logarithm = -math.log(delta)
    return math.sqrt(2) * (math.sqrt(logarithm + epsilon) - math.sqrt(logarithm))


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
    return _accuracy(facts, separation(facts, -ONE_IN_THREE))


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
