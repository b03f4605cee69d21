"""The public numbers that a forecast of usefulness needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from limbeck.forecast.fitted import METHODS
from limbeck.methods.elixir.working_size import at_size
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema

MOST_CLASSES = 1000  # for as many accuracy is reckoned; more are much the same
USUAL_NUMBERS = 784


@dataclass(frozen=True, kw_only=True)
class Facts:
    """kind: grey, colour or table. records: of a class, on average. numbers: of one record, as the method looks at it. size:
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
    def way(self) -> str:
        """Of networks that ask, of the first set alone, or of a table."""
        return (
            "table" if self.kind == "table" else "first" if self.method == "elixir" and not self.answers else "answers"
        )

    @property
    def curve(self) -> str:
        return self.kind if self.kind == "table" else f"{self.kind} {self.way}"

    @property
    def all_shares(self) -> tuple[float, ...]:
        """Equal ones, where none are public."""
        count = min(self.classes, MOST_CLASSES)
        return self.shares if len(self.shares) == count else (1 / count,) * count

    @property
    def signal(self) -> float:
        """The logarithm of the records of a class, times what one record is worth."""
        return math.log(max(self.records, 1e-3) * one_record(self.epsilon, self.delta))

    @property
    def more_numbers(self) -> float:
        """The logarithm of how many more numbers than usual a picture has; of tables their numbers told nothing."""
        return 0.0 if self.kind == "table" else math.log(self.numbers / USUAL_NUMBERS)


def one_record(epsilon: float, delta: float) -> float:
    """What a record is worth in standard deviations of the noise of one answer, about: by zero-concentrated privacy.

    >>> round(one_record(1.0, 1e-5), 2)
    0.2
    """
    logarithm = -math.log(delta)
    return math.sqrt(2) * (math.sqrt(logarithm + epsilon) - math.sqrt(logarithm))
