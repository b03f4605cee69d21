"""PATE-GAN: teachers vote whether generated records look real; a student learns from noised votes, a generator from the student.

Jordon, Yoon and van der Schaar, "PATE-GAN: Generating Synthetic Data with Differential Privacy Guarantees", Algorithm 1.

Where we differ, and why:
- Gaussian noise on the sum of votes, priced exactly and independently of the data. The paper's Laplace noise comes with a bound
  that depends on the data, which could not be published. One teacher moves one record's vote by 1, a batch by sqrt(batch).
- A record counts as real if it has more noised votes than the median record of its class in the same step. The paper asks for
  a majority of the teachers, which no early record gets: the student would learn only that everything is fake.
- Teachers are asked about pictures with public noise on them (`stray`). Those of the generator alone differ in a few directions,
  and along all others, of which the student then hears nothing, the generator runs off. Noise and all that the student sees are
  coarse (`coarse`), so that its gradient has no part that it was not told about. Of so many the student learns the ranks.
- The generator is fitted to pictures that are moved along the student's gradient (`gamma`); with 0 it lowers its loss, as in the
  paper. Pictures only: tables are asked about as they are made, and runs that were booked before 0.7.0 go on like that.
- Student and generator see the noised votes alone, so they may take as many steps as they like (`student_steps`).
- Labels are given to all networks; networks and ensemble as in DataLens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.parts.smoothing import smoothed
from limbeck.methods.parts.teaching import VOTES, TeacherMethod, TeacherSteps
from limbeck.methods.settings import setting
from limbeck.nets.architectures.discriminator import StackedDiscriminator
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, BeliefVote, Question

HALF = math.log(0.5)  # a teacher scores log D, and believes what it gives more than even chances


@dataclass(frozen=True, kw_only=True)
class StudentSteps(TeacherSteps):
    """The steps, and how far asked pictures stray; the names are those of the settings."""

    student_steps: int
    stray: float
    coarse: float
    learners: int
    gamma: float


PICTURES = StudentSteps(
    teachers=2000, T=40, batch=400, teacher_steps=5, latent=3, fit=30, student_steps=20,
    stray=0.7, coarse=1.3, learners=60, gamma=0.15,
)  # fmt: skip
# Nearer to the paper.
TABLES = StudentSteps(
    teachers=2000, T=60, batch=64, teacher_steps=2, latent=30, fit=5, student_steps=5,
    stray=0.0, coarse=0.0, learners=64, gamma=0.0,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PATEGAN(TeacherMethod):
    """student_steps: of the student for each batch of votes. student_eta: Adam's step of the student. teacher_decay is the
    student's too, which otherwise goes on believing records that the generator has long left behind.

    stray: std of the noise on pictures that are asked about; 0 for none. coarse: std, in pixels, of the Gaussian that this noise
    and all that the student sees is smoothed with. learners: records that the generator learns from at a step. gamma: how far
    these are to go along the student's gradient, root mean square; 0: the generator lowers its loss, as in the paper.
    """

    name: ClassVar[str] = "pategan"
    title: ClassVar[str] = "PATE-GAN: a student that learns from noised votes of teachers"
    paper: ClassVar[str] = "Jordon, Yoon and van der Schaar, PATE-GAN, Algorithm 1"
    needs: ClassVar[str] = "images or tables; as DataLens"

    student_steps: int | None = setting(None, least=1)
    student_eta: float = setting(3e-3, above=0)
    # A run that was booked before these were there has none of them: it goes on without.
    stray: float | None = setting(None, least=0)
    coarse: float | None = setting(None, least=0)
    learners: int | None = setting(None, least=1)
    gamma: float | None = setting(None, least=0)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> StudentSteps:
        return self.filled(PICTURES if schema.is_image else TABLES)

    def clip(self, schema: Schema) -> float:
        return math.sqrt(self.chosen(schema).batch)

    def vote(self) -> type[Question]:
        return BeliefVote

    def training(self, schema: Schema, device: torch.device) -> GeneratorTraining:
        return StudentTraining(self, schema, device)

    def take_step(self, training: GeneratorTraining, schema: Schema, ask: Ask, step: int) -> None:
        assert isinstance(training, StudentTraining)
        device, chosen = training.device, self.chosen(schema)
        latents = self.latents(schema, step, VOTES, chosen.batch)
        labels = self.spread_labels(schema, step, chosen.batch)
        asked = self._strayed(training.made(latents, labels), VOTES, step)
        question = self.question(BeliefVote, schema, training, step, asked, labels, {"threshold": HALF})
        answer = ask(VOTES, step, question).tensor(device)
        believed = self._believed(answer, labels.to(device))
        seen = self._seen(asked.to(device))
        for _ in range(chosen.student_steps):
            training.student.learn(seen, labels.to(device), believed)
        if self.gamma:
            self._climb(training, schema, step, self.gamma)
        else:
            for turn in range(chosen.fit):
                self._follow(training, schema, step * chosen.fit + turn)
        training.note(step, answer)

    @torch.no_grad()
    def fakes(self, training: GeneratorTraining, schema: Schema, step: int) -> tuple[Tensor, Tensor]:
        """They stray as well, or teachers would learn that noise is fake."""
        made, labels = super().fakes(training, schema, step)
        return self._strayed(made, "fakes", step), labels

    def _strayed(self, made: Tensor, purpose: str, step: int) -> Tensor:
        """Records with public noise: of many directions, and not of the few that the generator goes in, votes then tell."""
        if not self.stray:
            return made
        noise = self._seen(torch.randn(made.shape, generator=self.rng("stray", purpose, step)))
        return (made + self.stray * noise / noise.square().mean().sqrt()).clamp(-1, 1)

    def _seen(self, x: Tensor) -> Tensor:
        """What the student sees of records: its gradient has no part that it was not told about."""
        return smoothed(x, self.coarse) if self.coarse and x.dim() == 4 else x

    def _believed(self, votes: Tensor, labels: Tensor) -> Tensor:
        """Within its class in this step: 1 for a record with more noisy votes than the median, else 0. Of the many that stray,
        their ranks, from 0 to 1."""
        believed = torch.zeros_like(votes)
        for label in labels.unique(sorted=True):  # type: ignore[no-untyped-call]
            own = labels == label
            if self.stray:
                believed[own] = votes[own].argsort().argsort().to(votes) / max(int(own.sum()) - 1, 1)
            else:
                believed[own] = (votes[own] > votes[own].median()).to(votes)
        return believed

    def _drawn(self, schema: Schema, step: int) -> tuple[Tensor, Tensor]:
        count = self.learners or self.chosen(schema).batch
        return self.latents(schema, step, "follow", count), self.spread_labels(schema, step, count)

    def _climb(self, training: StudentTraining, schema: Schema, step: int, far: float) -> None:
        """Let the generator's records go `far` towards what the student takes for real."""
        latents, labels = self._drawn(schema, step)
        made = training.made(latents, labels).to(training.device).requires_grad_()
        (slope,) = torch.autograd.grad(
            training.student.logits(self._seen(made), labels.to(training.device)).sum(), made
        )
        size = slope.flatten(1).square().mean(1).sqrt().clamp_min(torch.finfo(slope.dtype).tiny)
        moved = made.detach() + far * slope / size.view(-1, *[1] * len(schema.shape))
        training.fit(latents, labels, moved.clamp(-1, 1), self.chosen(schema).fit)

    def _follow(self, training: StudentTraining, schema: Schema, step: int) -> None:
        """One step of the generator towards what the student takes for real."""
        latents, labels = self._drawn(schema, step)
        logits = training.student.logits(self._seen(training.drawn(latents, labels)), labels.to(training.device))
        training.descend(F.softplus(-logits).mean())

    def student(self, schema: Schema, device: torch.device) -> Student:
        chosen = self.chosen(schema)
        net = StackedDiscriminator(
            shape=schema.shape, classes=len(schema.classes), first=self.first, second=self.second, hidden=chosen.hidden
        )
        return Student(net, self.seed_at("student"), self.student_eta, chosen.teacher_decay, device)


class Student:
    """A discriminator that never sees a record."""

    def __init__(self, net: StackedDiscriminator, seed: int, eta: float, decay: float, device: torch.device) -> None:
        self._net, self._decay = net, decay
        started = {name: torch.nn.Parameter(value.to(device)) for name, value in net.start([seed]).items()}
        self._weights: dict[str, Tensor] = dict(started)
        self.adam = Adam(list(started.values()), eta)

    def logits(self, x: Tensor, y: Tensor) -> Tensor:
        return self._net.logits(self._weights, x[None], y[None])[0]

    def learn(self, x: Tensor, y: Tensor, believed: Tensor) -> None:
        squares = torch.stack([value.square().sum() for value in self._weights.values()]).sum()
        loss = F.binary_cross_entropy_with_logits(self.logits(x, y), believed) + self._decay / 2 * squares
        self.adam.move(torch.autograd.grad(loss, self.adam.parameters))


class StudentTraining(GeneratorTraining):
    """A generator in training beside its student."""

    def __init__(self, method: PATEGAN, schema: Schema, device: torch.device) -> None:
        super().__init__(
            method,
            method.generator_spec(schema),
            schema,
            device,
            steps=method.rounds(schema),
            snapshots=method.snapshots,
            eta=method.eta,
        )
        self.student = method.student(schema, device)

    @property
    def state(self) -> dict[str, Tensor]:
        return super().state | {f"student.{name}": value for name, value in self.student.adam.state.items()}
