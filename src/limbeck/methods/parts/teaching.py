"""What the methods with teachers share: sizes of the ensemble, the questions, and how often they are put."""

from __future__ import annotations

import dataclasses
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
from limbeck.vault.api import Discriminator, EnsembleSpec, FeatureTeacher, Question, Teacher, check_ensemble

VOTES = "votes"
LITTLE_NOISE = 3.0  # epsilon, from which on other settings are better than those for much noise; 1 and 10 were tried
Asked = TypeVar("Asked", bound=Question)
Own = dict[str, Any]  # arguments of a kind of question that the others do not have


Usual = TypeVar("Usual", bound="TeacherSteps")


@dataclass(frozen=True, kw_only=True)
class TeacherSteps(Chosen):
    """What suits the data and the budget: the teachers, the steps of the generator, each with one answer of theirs, and how it
    follows. The names are those of the settings."""

    teachers: int = 5000
    T: int
    batch: int = 20
    teacher_batch: int = 10
    teacher_steps: int = 5
    teacher_decay: float = 10.0
    hidden: int = 0
    features: int = 0
    fit: int = 30
    latent: int = 3


@dataclass(frozen=True, kw_only=True)
class TeacherMethod(SteppedMethod):
    """The defaults are for two cores; see `datalens.py` for the papers' sizes. What is left out suits the data and the budget
    (`chosen`).

    teachers      how many, each with its own part of the records
    T             steps of the generator
    batch         records that are voted on in a step
    teacher_batch, teacher_steps, first_steps
                  records of a teacher's step; its steps for each step of the generator, and before the first one
    teacher_eta, eta
                  Adam's step size for teachers and generator
    teacher_decay how strongly a teacher's weights are pulled to 0, which keeps its votes up with the generator
    first, second, hidden
                  sizes of a teacher; first=0 leaves out its convolutions, which is many times as fast, and hidden=0 with it
                  all but a template for each class
    features      public random features of records that a teacher is linear in, beside the templates; needs hidden=0
    fit           steps of the generator for each answer
    latent, width of the generator
    sigma         std of the noise on every number of the votes' sum; left out, it follows from epsilon
    snapshots     sets kept during the run, for the curve of accuracy against epsilon
    """

    label: ClassVar[str] = VOTES

    teachers: int | None = setting(None, least=1)
    T: int | None = setting(None, least=1)
    batch: int | None = setting(None, least=1)
    teacher_batch: int | None = setting(None, least=1)
    teacher_steps: int | None = setting(None, least=1)
    first_steps: int = setting(20, least=1)
    teacher_eta: float = setting(3e-3, above=0)
    teacher_decay: float | None = setting(None, least=0)
    first: int = setting(0, least=0)
    second: int = setting(42, least=1)
    hidden: int | None = setting(None, least=0)
    # A run that was booked before there were any has none.
    features: int | None = setting(None, least=0)
    eta: float = setting(1e-3, above=0)
    fit: int | None = setting(None, least=1)
    latent: int | None = setting(None, least=1)
    width: int = setting(32, least=1)
    sigma: float | None = setting(None, above=0)
    snapshots: int = setting(0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first and not self.hidden:
            raise BadSettings(f"hidden=0 goes with first=0 only, got first={self.first}; choose hidden of at least 1.")
        if self.hidden and self.features:
            raise BadSettings(f"features={self.features} go with hidden=0 only, got hidden={self.hidden}.")
        if self.T is not None and self.snapshots > self.T:
            raise BadSettings(f"snapshots must lie in 0 ... T = {self.T}, got snapshots={self.snapshots}.")

    def chosen(self, schema: Schema, epsilon: float | None = None) -> TeacherSteps:
        raise NotImplementedError

    def filled(self, usual: Usual) -> Usual:
        """What was given, and the usual for the rest."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(usual)}
        return dataclasses.replace(usual, **{name: value for name, value in own.items() if value is not None})

    def check(self, schema: Schema) -> None:
        super().check(schema)
        try:
            check_ensemble(self.ensemble(schema), schema)
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
        chosen = self.chosen(schema)
        vote = TeacherVote(
            label=VOTES, map=kind, clip=clip, noise_multiplier=noise, teachers=chosen.teachers, count=chosen.T
        )
        return (vote,)

    def ensemble(self, schema: Schema) -> EnsembleSpec:
        chosen = self.chosen(schema)
        return EnsembleSpec(
            teachers=chosen.teachers,
            batch=chosen.teacher_batch,
            steps=chosen.teacher_steps,
            first=self.first_steps,
            seed=self.seed_at("teachers"),
        )

    def teacher(self, schema: Schema) -> Teacher:
        chosen = self.chosen(schema)
        if self.features:  # of the setting itself, for runs that were booked without it
            return FeatureTeacher(
                shape=schema.shape,
                classes=len(schema.classes),
                eta=self.teacher_eta,
                beta1=0.5,
                decay=chosen.teacher_decay,
                features=self.features,
                features_seed=self.seed_at("features"),
            )
        return Discriminator(
            shape=schema.shape,
            classes=len(schema.classes),
            eta=self.teacher_eta,
            beta1=0.5,
            first=self.first,
            second=self.second,
            hidden=chosen.hidden,
            decay=chosen.teacher_decay,
        )

    def generator_spec(self, schema: Schema) -> GeneratorSpec:
        return GeneratorSpec(kind="datalens", latent=self.chosen(schema).latent, width=self.width)

    def rounds(self, schema: Schema) -> int:
        return self.chosen(schema).T

    def training(self, schema: Schema, device: torch.device) -> GeneratorTraining:
        steps = self.chosen(schema).T
        return GeneratorTraining(
            self, self.generator_spec(schema), schema, device, steps=steps, snapshots=self.snapshots, eta=self.eta
        )

    def question(
        self, kind: type[Asked], schema: Schema, training: GeneratorTraining, step: int, x: Tensor, y: Tensor, own: Own
    ) -> Asked:
        """What the ensemble is asked about x at this step; `own` is what this kind of question has besides."""
        fakes, fake_labels = self.fakes(training, schema, step)
        given = {"fakes": fakes, "fake_labels": fake_labels, "x": x, "y": y}
        return kind(teacher=self.teacher(schema), ensemble=self.ensemble(schema), **given, **own)

    def latents(self, schema: Schema, step: int, purpose: str, count: int) -> Tensor:
        return self.generator_spec(schema).latents(count, self.rng("latents", purpose, step))

    def spread_labels(self, schema: Schema, step: int, count: int) -> Tensor:
        """All classes in turn, so that over the steps each is asked about equally often."""
        return (torch.arange(count) + step * count) % len(schema.classes)

    @torch.no_grad()
    def fakes(self, training: GeneratorTraining, schema: Schema, step: int) -> tuple[Tensor, Tensor]:
        """What the teachers learn from at this step."""
        ensemble = self.ensemble(schema)
        count = ensemble.batch * ensemble.steps_at(step)
        # In turn, not by chance: all teachers share them, so what chance leaves uneven would not average out.
        labels = self.spread_labels(schema, step, count)
        latents = self.latents(schema, step, "fakes", count)
        return training.made(latents, labels), labels
