"""Sets that are to be made and paid for, one by one: where each goes, and what they cost together. Books nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, BudgetRefused
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.runs.paying import budget_for, wanted_plan
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.sums import rounded_up, total


@dataclass(frozen=True, kw_only=True)
class Job:
    """One set, with its plan, which is priced before any record is read. values: what tells it from the others."""

    values: Mapping[str, str]
    repeat: int
    plan: Plan
    folder: Path

    @property
    def release(self) -> Path:
        return self.folder / f"set-{self.repeat}"

    @property
    def evaluation(self) -> Path:
        """Beside the release, never inside it."""
        return self.folder / f"evaluation-{self.repeat}.json"

    @property
    def seconds(self) -> Path:
        return self.folder / f"seconds-{self.repeat}.json"

    @property
    def epsilon(self) -> float | str:
        return finite_or_word(self.plan.price.epsilon)

    def described(self) -> dict[str, Any]:
        """What its plan says of price and noise."""
        return {
            "epsilon": self.epsilon,
            "delta": self.plan.price.delta,
            "noise_multiplier": self.plan.queries[0].noise_multiplier,
        }


def repeated(plan: Plan, repeats: int, values: Mapping[str, str], folder: Path) -> list[Job]:
    """The same plan so many times: other weights and another start for every set; the noise is fresh in any case."""
    return [
        Job(
            values=values,
            repeat=repeat,
            plan=replace(plan, settings={**plan.settings, "seed": plan.settings["seed"] + repeat - 1}),
            folder=folder,
        )
        for repeat in range(1, repeats + 1)
    ]


def require_repeats(repeats: int, what: str, option: str) -> None:
    if repeats < 1:
        raise BadInput(f"Every {what} needs at least one set, got {option} {repeats}.")


@dataclass(frozen=True)
class Cost:
    """What some sets cost together, added up exactly, as the ledger does it."""

    sets: int
    epsilon: float
    delta: float

    @staticmethod
    def of(jobs: Sequence[Job]) -> Cost:
        prices = [job.plan.price for job in jobs]
        private = all(math.isfinite(price.epsilon) for price in prices)
        epsilon = rounded_up(total(price.epsilon for price in prices)) if private else math.inf
        return Cost(len(jobs), epsilon, rounded_up(total(price.delta for price in prices)))

    def to_dict(self) -> dict[str, Any]:
        return {"sets": self.sets, "epsilon": finite_or_word(self.epsilon), "delta": self.delta}


def require_budget(ledger: Ledger | None, unpaid: Sequence[Job], noun: str) -> None:
    """noun: what the sets are for, such as "sweep". Guarantee: returns only if the budget covers all these sets together."""
    if not unpaid:
        return
    dataset, cost = unpaid[0].plan.dataset, Cost.of(unpaid)
    wanted = [wanted_plan(job.plan) for job in unpaid]
    if ledger is not None and ledger.account(dataset) is not None:
        ledger.check(wanted)
    elif len(unpaid) > 1 or math.isinf(cost.epsilon):
        # Without a budget the first set's price would become the budget, and the second set be refused.
        raise BudgetRefused(
            f"Data set {dataset!r} has no budget, and this {noun} costs epsilon {cost.epsilon} and delta {cost.delta} in "
            "all. Nothing was booked. Setting a budget is the data owner's decision.",
            budget_for(ledger, dataset, wanted),
        )
