"""PATE-GAN: teachers vote whether generated records look real; a student learns from noised votes, a generator from the student.

Jordon, Yoon and van der Schaar, "PATE-GAN: Generating Synthetic Data with Differential Privacy Guarantees", Algorithm 1.

Where we differ, and why:
- Gaussian noise on the sum of votes, priced exactly and independently of the data. The paper's Laplace noise comes with a bound
  that depends on the data, which could not be published. One teacher moves one record's vote by 1, a batch by sqrt(batch).
- A record counts as real if it has more noised votes than the median record of its class in the same step. The paper asks for
  a majority of the teachers, which no early record gets: the student would learn only that everything is fake.
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
from limbeck.methods.parts.teaching import VOTES, TeacherMethod, TeacherSteps
from limbeck.methods.settings import setting
from limbeck.nets.architectures.discriminator import StackedDiscriminator
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, BeliefVote, Question

HALF = math.log(0.5)  # a teacher scores log D, and believes what it gives more than even chances


@dataclass(frozen=True, kw_only=True)
class PATEGAN(TeacherMethod):
    """student_steps: of the student for each batch of votes. student_eta: Adam's step of the student. teacher_decay is the
    student's too, which otherwise goes on believing records that the generator has long left behind."""

    name: ClassVar[str] = "pategan"
    title: ClassVar[str] = "PATE-GAN: a student that learns from noised votes of teachers"
    paper: ClassVar[str] = "Jordon, Yoon and van der Schaar, PATE-GAN, Algorithm 1"
    needs: ClassVar[str] = "images or tables; as DataLens"

    teachers: int = setting(2000, least=1)
    T: int = setting(60, least=1)
    batch: int = setting(64, least=1)
    teacher_steps: int = setting(2, least=1)
    latent: int = setting(30, least=1)
    fit: int = setting(5, least=1)
    student_steps: int = setting(5, least=1)
    student_eta: float = setting(3e-3, above=0)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> TeacherSteps:
        return TeacherSteps(T=self.T)

    def clip(self, schema: Schema) -> float:
        return math.sqrt(self.batch)

    def vote(self) -> type[Question]:
        return BeliefVote

    def training(self, schema: Schema, device: torch.device) -> GeneratorTraining:
        return StudentTraining(self, schema, device)

    def take_step(self, training: GeneratorTraining, schema: Schema, ask: Ask, step: int) -> None:
        assert isinstance(training, StudentTraining)
        device = training.device
        latents, labels = self.latents(step, VOTES, self.batch), self.spread_labels(schema, step, self.batch)
        made = training.made(latents, labels)
        question = self.question(BeliefVote, schema, training, step, made, labels, {"threshold": HALF})
        answer = ask(VOTES, step, question).tensor(device)
        believed = self._believed(answer, labels.to(device))
        for _ in range(self.student_steps):
            training.student.learn(made.to(device), labels.to(device), believed)
        for turn in range(self.fit):
            self._follow(training, schema, step * self.fit + turn)
        training.note(step, answer)

    def _believed(self, votes: Tensor, labels: Tensor) -> Tensor:
        """1 for the records with more noisy votes than the median of their class in this step, 0 for the others."""
        median = torch.stack([votes[labels == label].median() for label in labels])
        return (votes > median).float()

    def _follow(self, training: StudentTraining, schema: Schema, step: int) -> None:
        """One step of the generator towards what the student takes for real."""
        latents, labels = self.latents(step, "follow", self.batch), self.spread_labels(schema, step, self.batch)
        logits = training.student.logits(training.drawn(latents, labels), labels.to(training.device))
        training.descend(F.softplus(-logits).mean())

    def student(self, schema: Schema, device: torch.device) -> Student:
        net = StackedDiscriminator(
            shape=schema.shape, classes=len(schema.classes), first=self.first, second=self.second, hidden=self.hidden
        )
        return Student(net, self.seed_at("student"), self.student_eta, self.teacher_decay, device)


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
            method.generator_spec(),
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
