"""What the methods with teachers share: sizes of the ensemble, the training of the generator, and the set that it makes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from limbeck.errors import BadInput, BadSettings
from limbeck.methods.base import Chosen, Method, SyntheticSet, TrainedGenerator
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.queries import Query, TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Discriminator, EnsembleSpec, Question, check_ensemble

MADE_AT_ONCE = 500
VOTES = "votes"
SERIES = ("size of the noised answer", "movement of the generator's records")  # root mean squares, by step
WATCHED = 20  # records whose movement is measured
Asked = TypeVar("Asked", bound=Question)
Own = dict[str, Any]  # arguments of a kind of question that the others do not have


@dataclass(frozen=True, kw_only=True)
class TeacherSteps(Chosen):
    """Steps of the generator, each with one answer of the teachers."""

    T: int


@dataclass(frozen=True, kw_only=True)
class TeacherMethod(Method):
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


class GeneratorTraining:
    """A generator in training: its weights, Adam, and the sets that were kept."""

    def __init__(
        self,
        method: Method,
        spec: GeneratorSpec,
        schema: Schema,
        device: torch.device,
        *,
        steps: int,
        snapshots: int,
        eta: float,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.spec, self.device = spec, device
        self.generator = self._built(method, schema)
        self._adam = Adam(list(self.generator.parameters()), eta, betas)
        self._labels = method.labels(schema)
        self._latents = spec.latents(len(self._labels), method.rng("set"))
        self._kept = torch.zeros(snapshots, len(self._labels), *schema.shape)
        self._after = [math.ceil((index + 1) * steps / snapshots) for index in range(snapshots)]
        self._series = torch.zeros(steps, len(SERIES), dtype=torch.float64)
        self._watched = slice(None, None, math.ceil(len(self._labels) / WATCHED))
        self._seen = self._shown()

    def _shown(self) -> Tensor:
        return self._made_by(self.generator, self._latents[self._watched], self._labels[self._watched])

    def _built(self, method: Method, schema: Schema) -> nn.Module:
        built = build_generator(self.spec, schema.shape, len(schema.classes), method.seed_at("generator"))
        return built.to(self.device)

    @property
    def released(self) -> nn.Module:
        """The generator that makes the set and goes into the release."""
        return self.generator

    @property
    def state(self) -> dict[str, Tensor]:
        kept = {"snapshots": self._kept} if len(self._kept) else {}
        return self._adam.state | kept | {"course": self._series, "seen": self._seen}

    def descend(self, loss: Tensor) -> None:
        self._adam.move(torch.autograd.grad(loss, self._adam.parameters))

    def fit(self, latents: Tensor, labels: Tensor, target: Tensor, steps: int) -> None:
        """Learn to make `target` of these latents."""
        wanted = target.to(self.device)
        for _ in range(steps):
            self.descend((self.drawn(latents, labels) - wanted).square().mean())

    def follow(self, records: Tensor, slope: Tensor) -> None:
        """One step of Adam along `slope`, the gradient with respect to records that were `drawn`."""
        self._adam.move(torch.autograd.grad(records, self._adam.parameters, slope))

    def drawn(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Records that the generator can learn through."""
        records: Tensor = self.generator(latents.to(self.device), labels.to(self.device))
        return records

    def made(self, latents: Tensor, labels: Tensor) -> Tensor:
        """The same as finished records, on the CPU."""
        return self._made_by(self.generator, latents, labels)

    @torch.no_grad()
    def _made_by(self, generator: nn.Module, latents: Tensor, labels: Tensor) -> Tensor:
        parts = zip(torch.split(latents, MADE_AT_ONCE), torch.split(labels, MADE_AT_ONCE), strict=True)
        return torch.cat([generator(z.to(self.device), y.to(self.device)).cpu() for z, y in parts])

    def note(self, step: int, answer: Tensor) -> None:
        """Write down how large the answer was and how far some records moved; keep the set, if a snapshot is due."""
        moved = self._shown()
        self._series[step] = torch.stack([root_mean_square(answer), root_mean_square(moved - self._seen)])
        self._seen.copy_(moved)
        if step + 1 in self._after:
            self._kept[self._after.index(step + 1)] = self._made_by(self.released, self._latents, self._labels)

    def result(self) -> SyntheticSet:
        weights = {name: value.detach().cpu() for name, value in self.released.state_dict().items()}
        return SyntheticSet(
            self._made_by(self.released, self._latents, self._labels).numpy(),
            self._labels.numpy(),
            self._kept.numpy() if len(self._kept) else None,
            tuple(self._after),
            TrainedGenerator(self.spec, weights),
            {name: self._series[:, index].tolist() for index, name in enumerate(SERIES)},
        )


def root_mean_square(numbers: Tensor) -> Tensor:
    return numbers.detach().cpu().double().square().mean().sqrt()
