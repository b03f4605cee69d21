"""A comparison of continual learning on paper: its stages, their plans, and what it costs the data set. Reads no record."""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections.abc import Iterator
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
from limbeck.runs.paying import budget_for, wanted_plan
from limbeck.runs.planning import make_plan
from limbeck.runs.request import Request
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import may_exist
from limbeck.vault.ledger.splits import Split, split_by_class
from limbeck.vault.part_records import part_of_source

SIZE = "size"  # in a course; courses without it saw pictures as they are
DP_SGD_EPOCHS = 10  # of the supplement, to balance learning against forgetting


@dataclass(frozen=True, kw_only=True)
class Continual:
    """A comparison: which methods, with which settings each, in how many stages, and how it is scored.

    size: that networks see pictures of sets at, as in `limbeck evaluate`; None leaves it to the releases.
    """

    request: Request
    epsilon: float
    delta: float
    methods: dict[str, dict[str, Any]]
    stages: int = 5
    model: str = "convnet"
    preset: str = "cpu"
    repeats: int = 3
    seed: int = 0
    size: int | None = None

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
        part = part_text(f"{self.split_name}/{stage + 1}", self.classes[stage], keep_all=hands_on(method))
        options = replace(self.request.options, start=None if start is None else str(start))
        return Request(data=replace(self.request.data, part=part), options=options)

    @functools.cached_property
    def schema(self) -> Schema:
        """Of all classes together.

        Guarantee: a record is in one stage and nothing else is protected, so what the stages cost does not add up.
        """
        schema = self.request.data.source().schema
        if schema.by_person:
            raise BadInput(
                f"The unit of '{schema.name}' is {schema.unit_words}, who may have records in several stages; the stages of a "
                "comparison are made for records that are in one stage each."
            )
        return schema

    @functools.cached_property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The class indices of each stage."""
        return stage_classes(len(self.schema.classes), self.stages)

    @property
    def split_name(self) -> str:
        """The split of the data set that the stages are parts of; courses with equally many stages share it."""
        return f"stages-{self.stages}"

    @property
    def split(self) -> Split:
        return split_by_class(self.schema.name, self.split_name, self.classes, self.schema.unit)

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
            SIZE: self.size,
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


def require_budget(spec: Continual, plans: dict[str, list[Plan]]) -> None:
    """Refuse unless the owner has set a budget for the whole data set that covers all stages of all methods.

    Guarantee: sets no budget and books nothing; it declares the split into stages, which costs nothing.
    """
    path, dataset = spec.request.options.ledger_path, spec.schema.name
    wanted = [
        wanted_plan(plan, part_of_source(spec.stage_request(name, stage).data.source()))
        for name, planned in plans.items()
        for stage, plan in enumerate(planned)
    ]
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open_to_read(path)) if may_exist(path) else None
        if ledger is None or not ledger.has_budget(dataset):
            raise _refused(
                spec,
                f"Nobody has set a budget for data set {dataset!r}, which the stages of this course spend from. Nothing was "
                "booked. Setting one is the data owner's decision.",
                budget_for(ledger, dataset, wanted, spec.split),
            )
    with declared(spec) as ledger:
        try:
            ledger.check(wanted)
        except BudgetRefused as refused:
            raise _refused(spec, refused.message, refused.next_command) from None


@contextlib.contextmanager
def declared(spec: Continual) -> Iterator[Ledger]:
    """The ledger, which knows the split into stages from now on."""
    with Ledger.open(spec.request.options.ledger_path, create=False) as ledger:
        ledger.declare_split(spec.schema.name, spec.split_name, classes=spec.classes, unit=spec.schema.unit)
        yield ledger


def _refused(spec: Continual, message: str, command: str | None) -> BudgetRefused:
    """With the ledger in every command, if it is not the default one."""
    option = f" --ledger {shlex.quote(spec.request.options.ledger)}" if spec.request.options.ledger else ""
    return BudgetRefused(message, command and " && ".join(f"{each}{option}" for each in command.split(" && ")))
