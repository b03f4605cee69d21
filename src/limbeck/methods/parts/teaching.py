"""What the methods with teachers share: sizes of the ensemble, the questions, and how often they are put."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from limbeck.errors import BadInput, BadSettings
from limbeck.methods.base import Chosen
from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.methods.parts.stepped import SteppedMethod
from limbeck.methods.settings import setting
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.privacy.queries import Query, TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Discriminator, EnsembleSpec, Question, check_ensemble

VOTES = "votes"
Asked = TypeVar("Asked", bound=Question)
Own = dict[str, Any]  # arguments of a kind of question that the others do not have


@dataclass(frozen=True, kw_only=True)
class TeacherSteps(Chosen):
    """Steps of the generator, each with one answer of the teachers."""

    T: int


@dataclass(frozen=True, kw_only=True)
class TeacherMethod(SteppedMethod):
    """The defaults are for two cores; see `datalens.py` for the papers' sizes.

    teachers      how many, each with its own part of the records
    T             steps of the generator; none, where allowed, lets the budget decide
    batch         records that are voted on in a step
    teacher_batch, teacher_steps, first_steps
                  records of a teacher's step; its steps for each step of the generator, and before the first one
    teacher_eta, eta
                  Adam's step size for teachers and generator
    teacher_decay how strongly a teacher's weights are pulled to 0, which keeps its votes up with the generator
    first, second, hidden
                  sizes of a teacher; first=0 leaves out its convolutions, which is many times as fast, and hidden=0 with it
                  all but a template for each class
    fit           steps of the generator for each answer
    latent, width of the generator
    sigma         std of the noise on every number of the votes' sum; left out, it follows from epsilon
    snapshots     sets kept during the run, for the curve of accuracy against epsilon
    """

    label: ClassVar[str] = VOTES

    teachers: int = setting(5000, least=1)
    T: int | None = setting(None, least=1)
    batch: int = setting(20, least=1)
    teacher_batch: int = setting(10, least=1)
    teacher_steps: int = setting(5, least=1)
    first_steps: int = setting(20, least=1)
    teacher_eta: float = setting(3e-3, above=0)
    teacher_decay: float = setting(10.0, least=0)
    first: int = setting(0, least=0)
    second: int = setting(42, least=1)
    hidden: int = setting(0, least=0)
    eta: float = setting(1e-3, above=0)
    fit: int = setting(30, least=1)
    latent: int = setting(3, least=1)
    width: int = setting(32, least=1)
    sigma: float | None = setting(None, above=0)
    snapshots: int = setting(0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first and not self.hidden:
            raise BadSettings(f"hidden=0 goes with first=0 only, got first={self.first}; choose hidden of at least 1.")
        if self.T is not None and self.snapshots > self.T:
            raise BadSettings(f"snapshots must lie in 0 ... T = {self.T}, got snapshots={self.snapshots}.")

    def chosen(self, schema: Schema, epsilon: float | None = None) -> TeacherSteps:
        raise NotImplementedError

    def check(self, schema: Schema) -> None:
        super().check(schema)
        try:
            check_ensemble(self.ensemble(), schema)
        except BadInput as refused:
            raise BadSettings(refused.message) from None

    @property
    def fixed_noise(self) -> float | None:
        # Per number, as in the papers; `queries` divides by the clip.
        return self.sigma

    def clip(self, schema: Schema) -> float:
        """How far one record can move the sum of all votes of a step."""
        raise NotImplementedError

    def vote(self) -> type[Question]:
        """The kind of question that the votes answer."""
        raise NotImplementedError

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        clip = self.clip(schema)
        noise = noise_multiplier if self.sigma is None else self.sigma / clip
        kind = self.vote().kind
        steps = self.chosen(schema).T
        return (
            TeacherVote(label=VOTES, map=kind, clip=clip, noise_multiplier=noise, teachers=self.teachers, count=steps),
        )

    def ensemble(self) -> EnsembleSpec:
        return EnsembleSpec(
            teachers=self.teachers,
            batch=self.teacher_batch,
            steps=self.teacher_steps,
            first=self.first_steps,
            seed=self.seed_at("teachers"),
        )

    def teacher(self, schema: Schema) -> Discriminator:
        return Discriminator(
            shape=schema.shape,
            classes=len(schema.classes),
            eta=self.teacher_eta,
            beta1=0.5,
            first=self.first,
            second=self.second,
            hidden=self.hidden,
            decay=self.teacher_decay,
        )

    def generator_spec(self) -> GeneratorSpec:
        return GeneratorSpec(kind="datalens", latent=self.latent, width=self.width)

    def rounds(self, schema: Schema) -> int:
        return self.chosen(schema).T

    def training(self, schema: Schema, device: torch.device) -> GeneratorTraining:
        steps = self.chosen(schema).T
        return GeneratorTraining(
            self, self.generator_spec(), schema, device, steps=steps, snapshots=self.snapshots, eta=self.eta
        )

    def question(
        self, kind: type[Asked], schema: Schema, training: GeneratorTraining, step: int, x: Tensor, y: Tensor, own: Own
    ) -> Asked:
        """What the ensemble is asked about x at this step; `own` is what this kind of question has besides."""
        fakes, fake_labels = self.fakes(training, schema, step)
        given = {"fakes": fakes, "fake_labels": fake_labels, "x": x, "y": y}
        return kind(teacher=self.teacher(schema), ensemble=self.ensemble(), **given, **own)

    def latents(self, step: int, purpose: str, count: int) -> Tensor:
        return self.generator_spec().latents(count, self.rng("latents", purpose, step))

    def spread_labels(self, schema: Schema, step: int, count: int) -> Tensor:
        """All classes in turn, so that over the steps each is asked about equally often."""
        return (torch.arange(count) + step * count) % len(schema.classes)

    @torch.no_grad()
    def fakes(self, training: GeneratorTraining, schema: Schema, step: int) -> tuple[Tensor, Tensor]:
        """What the teachers learn from at this step."""
        count = self.teacher_batch * self.ensemble().steps_at(step)
        # In turn, not by chance: all teachers share them, so what chance leaves uneven would not average out.
        labels = self.spread_labels(schema, step, count)
        latents = self.latents(step, "fakes", count)
        return training.made(latents, labels), labels
