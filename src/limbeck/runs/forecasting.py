"""What an owner wants to know before paying: how useful the set will be, how long it takes, what is left of the budget.

Guarantee: made of the plan, the schema and the ledger's sums; no record is read and nothing is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, LimbeckError
from limbeck.forecast.duration import seconds_for, slowness
from limbeck.forecast.facts import Facts
from limbeck.forecast.usefulness import Usefulness, epsilon_for, is_close_to_chance, records_for, usefulness
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import may_exist

AS_HARD_AS = {"grey": "between MNIST and Fashion-MNIST", "colour": "as hard as CIFAR-10", "table": "as hard as Adult"}


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """useful: None where sets of this kind have never been scored. seconds: None where nobody has timed the method.

    remaining_after: the epsilon that is left of the budget, negative if the plan does not fit; None where the ledger is not here.
    first: no budget is set, so this plan would be the budget itself. real_accuracy: of a usual model on real records, as said.
    """

    kind: str
    useful: Usefulness | None
    seconds: float | None
    warning: str | None
    remaining_after: float | None = None
    first: bool = False
    real_accuracy: float | None = None

    def to_dict(self) -> dict[str, Any]:
        useful = self.useful
        return {
            "accuracy": None if useful is None else useful.accuracy,
            "accuracy_low": None if useful is None else useful.low,
            "accuracy_high": None if useful is None else useful.high,
            "chance": None if useful is None else useful.chance,
            "real_accuracy": self.real_accuracy,
            "seconds": self.seconds,
            "warning": self.warning,
            "remaining_after": self.remaining_after,
        }

    @property
    def lines(self) -> list[str]:
        """For people."""
        useful, left = self.useful, self.remaining_after
        lines = [
            "time      not known for this method" if self.seconds is None else f"time      {time_words(self.seconds)}"
        ]
        if useful is None:
            lines.append("accuracy  no forecast: sets of this kind have not been scored")
        else:
            lines.append(
                f"accuracy  about {useful.accuracy:.0f} % ({useful.low:.0f} to {useful.high:.0f}; guessing gives "
                f"{useful.chance:.0f}) for data {self._hardness}; forecast from public numbers alone"
            )
        if left is not None and left < 0:
            lines.append(f"budget    too small: it lacks epsilon {-left:g}")
        elif self.first:
            lines.append("budget    none is set, so this plan would be the whole budget; 'limbeck budget set' sets one")
        elif left is not None:
            lines.append(f"budget    epsilon {left:g} is left afterwards")
        if self.warning is not None:
            lines.append(f"WARNING   {self.warning}")
        return lines

    @property
    def _hardness(self) -> str:
        if self.real_accuracy is None:
            return f"{AS_HARD_AS[self.kind]} (--real-accuracy says how hard yours are)"
        return f"whose real records give {self.real_accuracy:g} %"


def forecast(schema: Schema, plan: Plan, ledger: Path | None = None, real_accuracy: float | None = None) -> Forecast:
    """ledger: where the budgets are; None for a vault elsewhere, which does not show its own. real_accuracy: per cent."""
    if real_accuracy is not None:
        check_real_accuracy(real_accuracy, len(schema.classes))
    facts = Facts.of(schema, plan, real_accuracy)
    useful = usefulness(facts)
    left, first = (None, False) if ledger is None else remaining_after(plan, ledger)
    return Forecast(
        kind=facts.kind,
        useful=useful,
        seconds=seconds_for(schema, plan, slowness()),
        warning=warning_of(facts, useful),
        remaining_after=left,
        first=first,
        real_accuracy=real_accuracy,
    )


def check_real_accuracy(percent: float, classes: int) -> None:
    """A share, such as 0.85, is refused too: nobody who means 85 % would notice what is forecast for it."""
    guessing = 100 / classes if classes > 1 else 0.0
    if not guessing < percent <= 100:
        raise BadInput(
            f"Expected --real-accuracy {percent:g} to be a percentage above {guessing:.0f}, which guessing gives with {classes} "
            "classes, and at most 100. Leave it out if you do not know it."
        )


def warning_of(facts: Facts, useful: Usefulness | None) -> str | None:
    """Text where the set will be close to chance, with what would be needed."""
    if useful is None or not is_close_to_chance(facts, useful):
        return None
    records, epsilon = records_for(facts), epsilon_for(facts)
    ways = [
        *([] if records is None else [f"about {records:,} records"]),
        *([] if epsilon is None else [f"epsilon {epsilon:g}"]),
    ]
    needed = (
        f"A useful set would need {' or '.join(ways)}." if ways else "Neither more records nor more epsilon would help."
    )
    return (
        f"This set may be close to guessing: about {useful.accuracy:.0f} % ({useful.low:.0f} to {useful.high:.0f}) where "
        f"guessing gives {useful.chance:.0f} %, from "
        f"{facts.records * facts.classes:,.0f} records at epsilon {facts.epsilon:.3g}. {needed}"
    )


def remaining_after(plan: Plan, ledger: Path) -> tuple[float | None, bool]:
    """What is left of the budget, at least; and whether there is none yet. Opens the ledger to read."""
    if not may_exist(ledger):
        return 0.0, True
    try:
        with Ledger.open_to_read(ledger) as book:
            account = book.account(plan.dataset)
    except LimbeckError:
        return None, False  # whoever books will be told; a forecast needs no ledger
    if account is None:
        return 0.0, True
    if not math.isfinite(plan.price.epsilon):
        return None, False
    return round(account.remaining_epsilon - plan.price.epsilon, 6), False


def time_words(seconds: float) -> str:
    """
    >>> time_words(8), time_words(472), time_words(9000)
    ('about 10 seconds', 'about 8 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        return f"about {max(5, 5 * round(seconds / 5))} seconds"
    return f"about {round(seconds / 60)} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"
