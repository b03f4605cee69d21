"""A comparison of continual learning on paper: its stages, their plans, and what each party pays. Reads no record."""

from __future__ import annotations

import contextlib
import functools
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from limbeck.data.parts import part_text
from limbeck.errors import BadInput, BudgetRefused
from limbeck.methods import METHODS, method_named
from limbeck.privacy.numbers import require_positive
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.release.model import read_model
from limbeck.runs.planning import make_plan
from limbeck.runs.request import Request
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.sums import budget_command, check_fits, rounded_up, total

DP_SGD_EPOCHS = 10  # of the supplement, to balance learning against forgetting


@dataclass(frozen=True, kw_only=True)
class Continual:
    """A comparison: which methods, with which settings each, in how many stages, and how it is scored."""

    request: Request
    epsilon: float
    delta: float
    methods: dict[str, dict[str, Any]]
    stages: int = 5
    model: str = "convnet"
    preset: str = "cpu"
    repeats: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        if not self.methods:
            raise BadInput("Name at least one method, with commas between them.", "limbeck methods")
        if self.repeats < 1:
            raise BadInput(f"Expected repeats={self.repeats} to be at least 1.")
        for name, settings in self.methods.items():
            if not method_named(name, settings).private:
                raise BadInput(f"Method '{name}' is not private, so it is no choice here.", "limbeck methods")

    def stage_request(self, method: str, stage: int, start: Path | None = None) -> Request:
        """A model must know all classes from the start; a set has the classes of its stage."""
        part = part_text(f"stage-{stage + 1}", self.classes[stage], keep_all=hands_on(method))
        options = replace(self.request.options, start=None if start is None else str(start))
        return Request(data=replace(self.request.data, part=part), options=options)

    @functools.cached_property
    def schema(self) -> Schema:
        """Of all classes together."""
        return self.request.data.source().schema

    @functools.cached_property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The class indices of each stage."""
        return stage_classes(len(self.schema.classes), self.stages)

    def class_names(self, stage: int) -> list[str]:
        return [self.schema.classes[index] for index in self.classes[stage]]

    def described(self) -> dict[str, Any]:
        """What a folder of this comparison is recognised by."""
        return {
            "data": self.request.data.data,
            "insecure_seed": self.request.options.insecure_seed,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "methods": self.methods,
            "stages": self.stages,
            "model": self.model,
            "preset": self.preset,
            "repeats": self.repeats,
            "seed": self.seed,
        }


def stage_classes(classes: int, stages: int) -> tuple[tuple[int, ...], ...]:
    """The class indices of each stage.

    >>> stage_classes(6, 3)
    ((0, 1), (2, 3), (4, 5))
    """
    each, left = divmod(classes, max(stages, 1))
    if stages < 1 or left or each < 2:
        raise BadInput(f"{classes} classes cannot be shared out to {stages} stages of equally many, at least 2 each.")
    return tuple(tuple(range(start, start + each)) for start in range(0, classes, each))


def hands_on(name: str) -> bool:
    """Whether the method trains a model, which goes from party to party."""
    return METHODS[name].makes == "model"


def stage_plan(spec: Continual, method: str, stage: int, start: Path | None = None) -> Plan:
    schema = spec.stage_request(method, stage).data.source().schema
    settings = dict(spec.methods[method])
    if method == "psg":
        settings = {"R": 200, **settings}
    if method == "dpsgd":
        query = method_named(method, settings).queries(schema, 1.0)[0]
        assert isinstance(query, ClippedSum)
        settings = {"T": max(1, round(DP_SGD_EPOCHS / query.rate[0])), **settings}
    if start is not None:
        settings["start"] = read_model(start).model.fingerprint()
    return make_plan(schema, method_named(method, settings), spec.epsilon, spec.delta)


def require_budgets(spec: Continual, plans: dict[str, list[Plan]]) -> None:
    """Refuse unless the owner has set a budget for every party, and each covers what this comparison costs it.

    Guarantee: no account of a party is opened by a run. The records of a stage are records of the whole too, so budgets of
    stages that opened by themselves would be a second budget for a data set that is spent.
    """
    lacking: dict[str, str] = {}
    path = spec.request.options.ledger_path
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open_to_read(path)) if path.exists() else None
        for stage in range(spec.stages):
            planned = [plans[name][stage] for name in plans]
            party = planned[0].dataset
            epsilon = rounded_up(total(plan.price.epsilon for plan in planned))
            delta = rounded_up(total(plan.price.delta for plan in planned))
            account = ledger.account(party) if ledger is not None and ledger.has_budget(party) else None
            if account is None:
                lacking[party] = budget_command(party, epsilon, delta) or ""
                continue
            try:
                check_fits(account, epsilon, delta)
            except BudgetRefused as refused:
                lacking[party] = refused.next_command or ""
    if lacking:
        option = f" --ledger {shlex.quote(str(path))}" if spec.request.options.ledger else ""
        raise BudgetRefused(
            f"No budget, or one that does not cover this course, is set for {', '.join(lacking)}. Nothing was booked. Each "
            f"stage is an account of its own, beside that of the whole data set, whose records it shares: what the stages may "
            "spend as well is the data owner's decision.",
            " && ".join(f"{command}{option}" for command in lacking.values() if command) or None,
        )
