"""DataLens: teachers inside the vault vote on how each generated record should change; a generator follows the noised vote.

Wang et al., "DataLens: Scalable Privacy Preserving Training via Gradient Compression and Aggregation", Algorithms 1 to 3; Table
7's switches are `top_k`, `stochastic` and `threshold`, Table 5's aggregators are `aggregate=topagg`, `d2pfed` and `fetchsgd`.

Where we differ, and why:
- Nothing is sampled and votes are noised by Gaussians, so the price is that of one Gaussian, exactly: for k 200, sigma 5000 and a
  batch of 15 epsilon 1 pays for 149 steps. The paper's route (RDP, then Mironov's conversion) pays for 86.
- A record's teacher comes from a keyed hash of the record, so parts are of about equal size only, and adding or removing one
  record changes one teacher; no record is in two parts. Every teacher has its own Adam moments, and noise has no seed.
- D2P-Fed and FetchSGD in their sound forms: noise on what the teachers add up (levels in the rotated frame, cells of the
  sketch), everything after it is post-processing; sensitivities 2 (levels - 1) sqrt(d n) and 2 sqrt(rows k n) for n images.
- All teachers learn at the same time, from the same fakes. The generator may take several steps of Adam towards
  one answer (`fit`), which costs nothing.
- The gradient that teachers vote on is that of log D, uphill; the paper prints the opposite sign in Algorithm 1.
- No batch norm in either network.
- The defaults are for two cores, not the paper's. 5000 teachers are templates only, a linear discriminator for each class, held
  small by weight decay so that votes turn soon after a pixel has gone too far; few, clean steps (20 of 20 images); a generator
  with few latents, which fits every answer closely; votes on pictures are smoothed before the threshold (`smooth`). All this is
  either inside of a teacher or after the noise. Such teachers see the mean of a class only, so pictures of a class differ
  little, and with less noise less still: from epsilon 3 on there are more and smaller steps, on all coordinates.
  The paper's: teachers=4000 T=149 batch=15 teacher_batch=15 teacher_steps=2 first_steps=10 teacher_eta=0.001 teacher_decay=0
  first=11 hidden=256 latent=50 width=128 k=200 beta=0.7 gamma=1 fit=1 smooth=0.
- To a teacher, each class of fakes has the weight of that class among its own records; labels of fakes come in turn. With few
  records for each teacher, it would otherwise learn which labels it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.methods.parts.smoothing import smoothed
from limbeck.methods.parts.teaching import LITTLE_NOISE, VOTES, Own, TeacherMethod, TeacherSteps
from limbeck.methods.settings import setting
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, LevelVote, Question, SignVote, SketchVote

VOTE_OF: dict[str, type[Question]] = {"topagg": SignVote, "d2pfed": LevelVote, "fetchsgd": SketchVote}


@dataclass(frozen=True, kw_only=True)
class VoteSteps(TeacherSteps):
    """The steps, the coordinates that a teacher votes on, the share that must agree, and how far a step goes."""

    k: int
    beta: float
    gamma: float


@dataclass(frozen=True, kw_only=True)
class DataLens(TeacherMethod):
    """k, c, beta, gamma: the paper's; k, beta, gamma and T, left out, suit the budget (`chosen`). A coordinate counts if its
    noisy votes pass beta * teachers; between sigma / (2 teachers) and sigma / teachers is right without `smooth`, a third of
    that with it. smooth: std, in pixels, of the Gaussian that votes on pictures are smoothed with; 0 for none, and tables have
    none. aggregate: topagg, d2pfed (with levels, reach) or fetchsgd (with rows, columns of the sketch). top_k, stochastic,
    threshold: parts of TopAgg that can be left out.
    """

    name: ClassVar[str] = "datalens"
    title: ClassVar[str] = "DataLens: a generator that follows noised votes of teachers"
    paper: ClassVar[str] = "Wang et al., DataLens, Algorithms 1 to 3"
    needs: ClassVar[str] = "images or tables; minutes on two cores, hours with the paper's teachers"

    aggregate: str = setting("topagg", choices=tuple(VOTE_OF))
    k: int | None = setting(None, least=1)
    c: float = setting(1e-5, above=0)
    beta: float | None = setting(None, least=0)
    gamma: float | None = setting(None, above=0)
    smooth: float = setting(0.8, least=0)
    top_k: bool = setting(True)
    stochastic: bool = setting(True)
    threshold: bool = setting(True)
    levels: int = setting(16, least=2)
    reach: float = setting(3.0, above=0)
    rows: int = setting(5, least=1)
    columns: int = setting(200, least=1)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> VoteSteps:
        little_noise = self.aggregate == "topagg" and epsilon is not None and epsilon >= LITTLE_NOISE
        steps, k = (60, schema.numbers) if little_noise else (20, min(300, schema.numbers))
        beta, gamma = (0.05, 0.1) if little_noise else (0.15, 0.3)
        return self.filled(VoteSteps(T=steps, k=k, beta=beta, gamma=gamma))

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if self.top_k and self.k is not None and self.k > schema.numbers:
            raise BadSettings(
                f"k={self.k} is more than the {schema.numbers} numbers of a record of '{schema.name}'; choose "
                f"k={max(schema.numbers // 4, 1)} or so, or top_k=false."
            )

    def clip(self, schema: Schema) -> float:
        """How far one record can move the sum of votes for all images of a step: twice the norm of one teacher's vote."""
        kept, batch = self._votes_on(schema), self.chosen(schema).batch
        if self.aggregate == "d2pfed":
            padded = 1 << max(schema.numbers - 1, 0).bit_length()
            return 2 * (self.levels - 1) * math.sqrt(padded * batch)
        if self.aggregate == "fetchsgd":
            return 2 * math.sqrt(self.rows * kept * batch)
        return 2 * math.sqrt(kept * batch)

    def _votes_on(self, schema: Schema) -> int:
        """On how many coordinates of an image a teacher votes."""
        return min(self.chosen(schema).k, schema.numbers) if self.top_k else schema.numbers

    def vote(self) -> type[Question]:
        return VOTE_OF[self.aggregate]

    def take_step(self, training: GeneratorTraining, schema: Schema, ask: Ask, step: int) -> None:
        chosen = self.chosen(schema)
        latents, labels = (
            self.latents(schema, step, VOTES, chosen.batch),
            self.spread_labels(schema, step, chosen.batch),
        )
        made = training.made(latents, labels)
        question, undo = self._question(schema, training, step, made, labels)
        answer = ask(VOTES, step, question).tensor()
        noisy = undo(answer.view(chosen.batch, -1))
        if self.smooth and schema.is_image:
            noisy = smoothed(noisy.view(made.shape), self.smooth).flatten(1)
        target = made + chosen.gamma * self._direction(noisy, chosen).view(made.shape)
        training.fit(latents, labels, target, chosen.fit)
        training.note(step, answer)

    def _direction(self, noisy: Tensor, chosen: VoteSteps) -> Tensor:
        """Algorithm 3, phase III: where enough votes agree, and which way. Without a threshold the votes as they are."""
        if self.aggregate == "fetchsgd":
            kept = noisy.abs() >= noisy.abs().topk(min(chosen.k, noisy.shape[1]), dim=1).values[:, -1:]
            noisy = noisy * kept
        if not self.threshold:
            return noisy / chosen.teachers
        return torch.sign(noisy) * (noisy.abs() >= chosen.beta * chosen.teachers)

    def _question(
        self, schema: Schema, training: GeneratorTraining, step: int, x: Tensor, y: Tensor
    ) -> tuple[Question, Callable[[Tensor], Tensor]]:
        """The question, and what takes its answer back to the coordinates of an image."""
        about = (schema, training, step, x, y)
        if self.aggregate == "d2pfed":
            grid: Own = {"c": self.c, "levels": self.levels, "reach": self.reach}
            level = self.question(LevelVote, *about, grid | {"rotation_seed": self.seed_at("rotation", step)})
            scale = self.reach / (self.levels - 1)
            return level, lambda noisy: level.rotation().back(noisy * scale)
        signs: Own = {"k": self._votes_on(schema), "c": self.c, "stochastic": self.stochastic}
        if self.aggregate == "fetchsgd":
            cells: Own = {"rows": self.rows, "columns": self.columns, "sketch_seed": self.seed_at("sketch", step)}
            sketch = self.question(SketchVote, *about, signs | cells)
            return sketch, lambda noisy: sketch.sketch().back(noisy)
        return self.question(SignVote, *about, signs), lambda noisy: noisy
