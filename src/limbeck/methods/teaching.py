"""What the methods with teachers share: sizes of the ensemble, the generator on its way, and what comes out of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from limbeck.errors import BadInput, BadSettings
from limbeck.methods.base import Method, SyntheticSet, TrainedGenerator
from limbeck.methods.optimisers import Adam
from limbeck.nets.generators import GeneratorSpec, build_generator
from limbeck.queries import Query, TeacherVote
from limbeck.schema import Schema
from limbeck.vault.api import Discriminator, EnsembleSpec, Question, check_ensemble

MADE_AT_ONCE = 500
VOTES = "votes"


@dataclass(frozen=True, kw_only=True)
class TeacherMethod(Method):
    """teachers: how many, each with its own part of the records. T: steps. batch: records that are voted on in a step.
    teacher_batch, teacher_steps, first_steps: records of a teacher's step, its steps per step of the generator, and before
    the first one. teacher_eta, eta: Adam's steps of teachers and generator. teacher_decay: how strongly a teacher's weights are
    pulled to 0, which keeps its votes up with the generator. first, second, hidden: sizes of a teacher; first=0 leaves its
    convolutions out, which is many times as fast, and hidden=0 with it all but a template for each class. latent, width: of
    the generator. sigma: std of the noise on every number of the votes' sum; left out, it follows from epsilon. snapshots:
    sets on the way that are kept for the curve.
    """

    teachers: int = 4000
    T: int = 149
    batch: int = 15
    teacher_batch: int = 15
    teacher_steps: int = 2
    first_steps: int = 10
    teacher_eta: float = 1e-3
    teacher_decay: float = 0.0
    first: int = 11
    second: int = 42
    hidden: int = 256
    eta: float = 1e-3
    latent: int = 50
    width: int = 128
    sigma: float | None = None
    snapshots: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = (
            "teachers", "T", "batch", "teacher_batch", "teacher_steps", "first_steps", "second", "latent", "width"
        )  # fmt: skip
        for name in counts:
            if getattr(self, name) < 1:
                raise BadSettings(f"{name} must be at least 1, got {name}={getattr(self, name)}.")
        for name in ("first", "hidden"):
            if getattr(self, name) < 0:
                raise BadSettings(f"{name} must be at least 0, got {name}={getattr(self, name)}.")
        if self.first and not self.hidden:
            raise BadSettings(f"hidden=0 goes with first=0 only, got first={self.first}; choose hidden of at least 1.")
        for name in ("eta", "teacher_eta"):
            if not 0 < getattr(self, name) < math.inf:
                raise BadSettings(f"{name} must be positive, got {name}={getattr(self, name)}.")
        if not 0 <= self.teacher_decay < math.inf:
            raise BadSettings(f"teacher_decay must be at least 0, got teacher_decay={self.teacher_decay}.")
        if self.sigma is not None and not 0 < self.sigma < math.inf:
            raise BadSettings(f"sigma must be positive, got sigma={self.sigma}.")
        if not 0 <= self.snapshots <= self.T:
            raise BadSettings(f"snapshots must lie in 0 ... T = {self.T}, got snapshots={self.snapshots}.")

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
        return (
            TeacherVote(label=VOTES, map=kind, clip=clip, noise_multiplier=noise, teachers=self.teachers, count=self.T),
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

    def course(self, schema: Schema, device: torch.device) -> Course:
        built = build_generator(self.generator_spec(), schema.shape, len(schema.classes), self.seed_at("generator"))
        return Course(self, schema, built.to(device), device)

    def latents(self, step: int, purpose: str, count: int) -> Tensor:
        return self.generator_spec().latents(count, self.generator("latents", purpose, step))

    def spread_labels(self, schema: Schema, step: int, count: int) -> Tensor:
        """All classes in turn, so that over the steps each is asked about equally often."""
        return (torch.arange(count) + step * count) % len(schema.classes)

    @torch.no_grad()
    def fakes(self, course: Course, schema: Schema, step: int) -> tuple[Tensor, Tensor]:
        """What the teachers learn from at this step."""
        count = self.teacher_batch * self.ensemble().steps_at(step)
        # In turn, not by chance: all teachers share them, so what chance leaves uneven would not average out.
        labels = self.spread_labels(schema, step, count)
        latents = self.latents(step, "fakes", count)
        return course.made(latents, labels), labels


class Course:
    """A generator on its way: its weights, Adam, and the sets that were kept."""

    def __init__(self, method: TeacherMethod, schema: Schema, generator: nn.Module, device: torch.device) -> None:
        self.generator, self.device = generator, device
        self._adam = Adam(list(generator.parameters()), method.eta)
        self._labels = method.labels(schema)
        self._latents = method.generator_spec().latents(len(self._labels), method.generator("set"))
        self._kept = torch.zeros(method.snapshots, len(self._labels), *schema.shape)
        self._after = [math.ceil((place + 1) * method.T / method.snapshots) for place in range(method.snapshots)]

    @property
    def state(self) -> dict[str, Tensor]:
        return self._adam.state | ({"snapshots": self._kept} if len(self._kept) else {})

    def descend(self, loss: Tensor) -> None:
        self._adam.move(torch.autograd.grad(loss, self._adam.parameters))

    def drawn(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Records that the generator can learn through."""
        records: Tensor = self.generator(latents.to(self.device), labels.to(self.device))
        return records

    @torch.no_grad()
    def made(self, latents: Tensor, labels: Tensor) -> Tensor:
        """The same as finished records, on the CPU."""
        parts = zip(torch.split(latents, MADE_AT_ONCE), torch.split(labels, MADE_AT_ONCE), strict=True)
        return torch.cat([self.drawn(z, y).cpu() for z, y in parts])

    def note(self, step: int) -> None:
        """Keep the set as it is now, if the curve wants one here."""
        if step + 1 in self._after:
            self._kept[self._after.index(step + 1)] = self.made(self._latents, self._labels)

    def result(self, method: TeacherMethod) -> SyntheticSet:
        weights = {name: value.detach().cpu() for name, value in self.generator.state_dict().items()}
        return SyntheticSet(
            self.made(self._latents, self._labels).numpy(),
            self._labels.numpy(),
            self._kept.numpy() if len(self._kept) else None,
            tuple(self._after),
            TrainedGenerator(method.generator_spec(), weights),
        )
