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
- The paper projects to some ten numbers and has ten bins. As much noise tells more of a picture with two bins, one for each way,
  of hundreds of numbers; and moves of neighbouring pixels, which a projection takes apart, are smoothed after the noise.
- Linear teachers see the mean of a class only, and without noise pictures of a class come out alike: from epsilon 3 on fewer
  teachers have hidden units.
  The form before 0.7.0, nearer to the paper's: kept=10 bins=10 c=0.001 confident=0.1 T=60 fit=10 smooth=0 teachers=2000
  teacher_steps=2 hidden=0. Tables keep to it.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.methods.parts.smoothing import smoothed
from limbeck.methods.parts.teaching import LITTLE_NOISE, VOTES, Own, TeacherMethod, TeacherSteps
from limbeck.methods.settings import setting
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, BinVote, Question


@dataclass(frozen=True, kw_only=True)
class ProjectedSteps(TeacherSteps):
    """The steps, and how a step asks and moves; the names are those of the settings."""

    kept: int
    bins: int
    c: float
    confident: float
    gamma: float
    smooth: float


# Two bins for each number, one for each way, and projections to hundreds of numbers, for which the noise is a third of the votes.
LARGE_NOISE = ProjectedSteps(T=20, kept=300, bins=2, c=0.01, confident=0.6, gamma=0.5, smooth=0.8, fit=20)
# Fewer teachers, which know more, and not only the mean of a class: pictures of a class then differ.
SMALL_NOISE = ProjectedSteps(
    teachers=1000, hidden=32, teacher_batch=20, teacher_steps=3, teacher_decay=0.5, latent=6,
    T=60, kept=100, bins=2, c=0.01, confident=0.52, gamma=0.5, smooth=0.8, fit=20,
)  # fmt: skip
# Nearer to the paper.
TABLES = ProjectedSteps(
    teachers=2000, teacher_steps=2, T=60, kept=10, bins=10, c=1e-3, confident=0.1, gamma=0.5, smooth=0.0, fit=10
)


@dataclass(frozen=True, kw_only=True)
class GPATE(TeacherMethod):
    """kept: dimension of the projection. bins: of a coordinate, between -c and c. confident: share of the teachers that the
    winning bin needs, or the coordinate counts as 0. gamma: step towards the winner. smooth: std, in pixels, of the Gaussian
    that moves of pictures are smoothed with; 0 for none. Left out, these and T suit the data (`chosen`)."""

    name: ClassVar[str] = "gpate"
    title: ClassVar[str] = "G-PATE: votes on gradients in a random projection"
    paper: ClassVar[str] = "Long et al., G-PATE, Algorithms 1 and 2"
    needs: ClassVar[str] = "images or tables; as DataLens"

    kept: int | None = setting(None, least=1)
    bins: int | None = setting(None, least=2)
    c: float | None = setting(None, above=0)
    confident: float | None = setting(None, least=0, most=1)
    gamma: float | None = setting(None, above=0)
    smooth: float | None = setting(None, least=0)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> ProjectedSteps:
        usual = TABLES
        if schema.is_image:
            usual = SMALL_NOISE if epsilon is not None and epsilon >= LITTLE_NOISE else LARGE_NOISE
        return self.filled(dataclasses.replace(usual, kept=min(usual.kept, schema.numbers)))

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if self.kept is not None and self.kept > schema.numbers:
            raise BadSettings(
                f"kept={self.kept} is more than the {schema.numbers} numbers of a record of '{schema.name}'; choose fewer."
            )

    def clip(self, schema: Schema) -> float:
        chosen = self.chosen(schema)
        return math.sqrt(2 * chosen.kept * chosen.batch)

    def vote(self) -> type[Question]:
        return BinVote

    def take_step(self, training: GeneratorTraining, schema: Schema, ask: Ask, step: int) -> None:
        chosen = self.chosen(schema)
        latents, labels = (
            self.latents(schema, step, VOTES, chosen.batch),
            self.spread_labels(schema, step, chosen.batch),
        )
        made = training.made(latents, labels)
        own: Own = {"kept": chosen.kept, "bins": chosen.bins, "c": chosen.c}
        own["projection_seed"] = self.seed_at("projection", step)
        question = self.question(BinVote, schema, training, step, made, labels, own)
        answer = ask(VOTES, step, question).tensor()
        moves = question.projection().back(self._winners(answer, chosen)).view(made.shape)
        # Of the setting itself: a run that was booked before there was one smooths nothing.
        if self.smooth and schema.is_image:
            moves = smoothed(moves, self.smooth)
        training.fit(latents, labels, made + chosen.gamma * moves, chosen.fit)
        training.note(step, answer)

    def _winners(self, answer: Tensor, chosen: ProjectedSteps) -> Tensor:
        """The middle of the winning bin, in [-1, 1]; 0 where too few agree."""
        most, winner = answer.view(chosen.batch, chosen.kept, chosen.bins).max(dim=2)
        middle = (winner.float() + 0.5) / chosen.bins * 2 - 1
        return middle * (most >= chosen.confident * chosen.teachers)
