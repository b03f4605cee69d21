"""G-PATE: teachers vote, in a random projection, on how each generated record should change.

Long et al., "G-PATE: Scalable Differentially Private Data Generator via Private Aggregation of Teacher Discriminators". Each
teacher's gradient is projected to a few dimensions, each coordinate goes into one of several bins, and the bin with most noisy
votes wins.

Where we differ, and why:
- Gaussian noise on the histogram of votes, priced exactly and independently of the data; the paper's bound depends on the
  data, so it could not be published. A teacher that changes its mind moves each histogram by sqrt(2), all of a step by
  sqrt(2 kept batch).
- A projection of its own for every step, so that the steps together see all directions.
- Networks, ensemble and the rest as in DataLens, so that the two differ only in what is voted on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.methods.parts.teaching import VOTES, Own, TeacherMethod, TeacherSteps
from limbeck.methods.settings import setting
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, BinVote, Question


@dataclass(frozen=True, kw_only=True)
class GPATE(TeacherMethod):
    """kept: dimension of the projection. bins: of a coordinate, between -c and c. confident: share of the teachers that the
    winning bin needs, or the coordinate counts as 0. gamma: step towards the winner."""

    name: ClassVar[str] = "gpate"
    title: ClassVar[str] = "G-PATE: votes on gradients in a random projection"
    paper: ClassVar[str] = "Long et al., G-PATE, Algorithms 1 and 2"
    needs: ClassVar[str] = "images or tables; as DataLens"

    teachers: int = setting(2000, least=1)
    T: int = setting(60, least=1)
    teacher_steps: int = setting(2, least=1)
    fit: int = setting(10, least=1)
    kept: int = setting(10, least=1)
    bins: int = setting(10, least=2)
    c: float = setting(1e-3, above=0)
    confident: float = setting(0.1, least=0, most=1)
    gamma: float = setting(0.5, above=0)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> TeacherSteps:
        return TeacherSteps(T=self.T)

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if self.kept > schema.numbers:
            raise BadSettings(
                f"kept={self.kept} is more than the {schema.numbers} numbers of a record of '{schema.name}'; choose fewer."
            )

    def clip(self, schema: Schema) -> float:
        return math.sqrt(2 * self.kept * self.batch)

    def vote(self) -> type[Question]:
        return BinVote

    def take_step(self, training: GeneratorTraining, schema: Schema, ask: Ask, step: int) -> None:
        latents, labels = self.latents(step, VOTES, self.batch), self.spread_labels(schema, step, self.batch)
        made = training.made(latents, labels)
        own: Own = {"kept": self.kept, "bins": self.bins, "c": self.c}
        own["projection_seed"] = self.seed_at("projection", step)
        question = self.question(BinVote, schema, training, step, made, labels, own)
        answer = ask(VOTES, step, question).tensor()
        winners = self._winners(answer.view(self.batch, self.kept, self.bins))
        target = made + self.gamma * question.projection().back(winners).view(made.shape)
        training.fit(latents, labels, target, self.fit)
        training.note(step, answer)

    def _winners(self, votes: Tensor) -> Tensor:
        """The middle of the winning bin, in [-1, 1]; 0 where too few agree."""
        most, winner = votes.max(dim=2)
        middle = (winner.float() + 0.5) / self.bins * 2 - 1
        return middle * (most >= self.confident * self.teachers)
