"""Methods whose run is a generator that takes steps, each along one answer of teachers; and where it takes them.

Usually here, with one question for each step. Where the teachers are far away the generator can go there instead and stay for a
block of steps (GS-WGAN, Algorithm 2 of its supplement): the steps follow from answers that are booked and paid for, so it does
not matter who takes them. `stay` is what is done there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.methods.base import Logbook, Method, SyntheticSet
from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask


class Away(Protocol):
    """A way to where the teachers are, for blocks of steps."""

    def end(self, step: int) -> int:
        """Where the block ends that `step` is in."""
        ...

    def __call__(self, label: str, step: int, count: int, luggage: dict[str, Tensor]) -> None:
        """Have so many steps taken there, from `step` on. The luggage is what it is after them, in place."""
        ...


@dataclass(frozen=True, kw_only=True)
class SteppedMethod(Method):
    """label: of the query that every step has one answer of."""

    label: ClassVar[str] = ""

    def rounds(self, schema: Schema) -> int:
        """How many steps there are."""
        raise NotImplementedError

    def training(self, schema: Schema, device: torch.device) -> GeneratorTraining:
        raise NotImplementedError

    def take_step(self, training: GeneratorTraining, schema: Schema, ask: Ask, step: int) -> None:
        """Put the question of this step, and let the generator follow the answer."""
        raise NotImplementedError

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        training, total = self.training(schema, device), self.rounds(schema)
        away: Away | None = getattr(ask, "away", None)
        if away is None:
            for step in logbook.steps(total, training.state, self.label):
                self.take_step(training, schema, ask, step)
                training.keep(step)
            return training.result()
        end = away.end

        def ends(step: int) -> int:
            return min(end(step), training.next_snapshot(step) or total, total)

        for step in logbook.steps(total, training.state, self.label, ends):
            away(self.label, step, ends(step) - step, training.luggage)
            training.keep(ends(step) - 1)
        return training.result()


def stay(
    method: Method,
    schema: Schema,
    ask: Ask,
    step: int,
    count: int,
    luggage: Mapping[str, Tensor],
    device: torch.device,
) -> dict[str, Tensor]:
    """Take `count` steps where the teachers are, from `step` on, with a generator that came along; what it is afterwards.

    The luggage is somebody else's word. Guarantee: it is numbers in the form that this method's own state has, or refused; the
    steps touch records by `ask` alone.
    """
    if not isinstance(method, SteppedMethod):
        raise BadInput(f"Method '{method.name}' has no generator that could stay.")
    if not 0 <= step < step + count <= method.rounds(schema):
        raise BadInput(f"There are no {count} steps from step {step} on.")
    training = method.training(schema, device)
    unpacked(training.luggage, luggage)
    for each in range(step, step + count):
        method.take_step(training, schema, ask, each)
    return {name: value.detach().cpu().clone() for name, value in training.luggage.items()}


def unpacked(own: Mapping[str, Tensor], luggage: Mapping[str, Tensor]) -> None:
    """Fill `own` in place. Raises BadInput, before anything is changed, if names, shapes or types are not the same."""
    forms = ({name: (value.shape, value.dtype) for name, value in each.items()} for each in (own, luggage))
    if len({repr(sorted(form.items(), key=lambda item: item[0])) for form in forms}) != 1:
        raise BadInput("The generator's state is not of the form that its method has.")
    for name, value in own.items():
        value.copy_(luggage[name])
