"""A sweep on paper: its points, the sets to make at each, and what all of it costs. Reads no record, books nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from limbeck.data import DataSource
from limbeck.errors import BadInput, BudgetRefused
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.runs.paying import budget_for, wanted_plan
from limbeck.runs.planning import plan_for
from limbeck.runs.request import DataReference
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.sums import rounded_up, total

EPSILON = "epsilon"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What is varied and what is not; equal specifications go on in the same folder.

    vary: the values of each varied setting; `epsilon` is one. repeat: sets at every point. networks: fits per set.
    """

    method: str
    vary: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Any]
    epsilon: float | None
    delta: float
    repeat: int
    test: str
    models: tuple[str, ...] | None = None
    preset: str | None = None
    networks: int | None = None

    def __post_init__(self) -> None:
        if not self.vary:
            raise BadInput("Say what to vary, such as --vary epsilon=0.5,1,2.")
        if self.repeat < 1:
            raise BadInput(f"Every point needs at least one set, got --repeat {self.repeat}.")
        for key, values in self.vary.items():
            if not values or len(set(values)) != len(values):
                raise BadInput(f"--vary {key} needs different values, got '{','.join(values)}'.")
            if key in self.settings or (key == EPSILON and self.epsilon is not None):
                raise BadInput(f"'{key}' is given once for all points and varied as well; leave one of the two out.")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One set of one point, with its plan, which is priced before any record is read."""

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
    def epsilon(self) -> float | str:
        return finite_or_word(self.plan.price.epsilon)


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


def plan_jobs(sweep: Sweep, data: DataReference, out: Path) -> tuple[list[Job], DataSource]:
    """All sets of all points. The points are the combinations of the varied values, the first one slowest."""
    jobs: list[Job] = []
    source = data.source()
    for number, values in enumerate(_points(sweep.vary), 1):
        settings = {**sweep.settings, **{key: value for key, value in values.items() if key != EPSILON}}
        epsilon = _epsilon_value(values[EPSILON]) if EPSILON in values else sweep.epsilon
        plan, _ = plan_for(data, sweep.method, settings, epsilon, sweep.delta)
        for repeat in range(1, sweep.repeat + 1):
            # Other weights and another start for every set; the noise is fresh in any case.
            seeded = {**plan.settings, "seed": plan.settings["seed"] + repeat - 1}
            folder = out / "points" / f"{number:03d}"
            jobs.append(Job(values=values, repeat=repeat, plan=replace(plan, settings=seeded), folder=folder))
    return jobs, source


def _points(vary: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    for chosen in itertools.product(*vary.values()):
        yield dict(zip(vary, chosen, strict=True))


def _epsilon_value(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise BadInput(f"epsilon must be a positive number or 'inf', got --vary epsilon={text}.")
    return value


def require_budget(ledger: Ledger | None, unpaid: Sequence[Job]) -> None:
    """Guarantee: returns only if the budget covers all these sets together."""
    if not unpaid:
        return
    dataset, cost = unpaid[0].plan.dataset, Cost.of(unpaid)
    wanted = [wanted_plan(job.plan) for job in unpaid]
    if ledger is not None and ledger.account(dataset) is not None:
        ledger.check(wanted)
    elif len(unpaid) > 1 or math.isinf(cost.epsilon):
        # Without a budget the first set's price would become the budget, and the second set be refused.
        raise BudgetRefused(
            f"Data set {dataset!r} has no budget, and this sweep costs epsilon {cost.epsilon} and delta {cost.delta} in "
            "all. Nothing was booked. Setting a budget is the data owner's decision.",
            budget_for(ledger, dataset, wanted),
        )
