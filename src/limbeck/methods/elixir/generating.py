"""A generator matched to remembered answers, as the set is: its pictures' class means move towards them.

Fresh latents at every step, so that it learns the class and not a few pictures; the weights are averaged, because each step
sees few pictures and one or two answers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import TrainedGenerator, given
from limbeck.methods.elixir.initial_set import GAUSSIAN
from limbeck.methods.elixir.rematching import Rematching
from limbeck.methods.elixir.working_size import LARGE, at_size, size_of_generator
from limbeck.methods.parts.optimisers import Adam
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.nets.kernels.hardware import has_fast_bfloat16
from limbeck.privacy.schema import Schema

PREFIX = "generator."
WARM = 50  # steps until the step size is whole
DRAWN_AT_ONCE = 500
LEAST = 0.02  # of it at the end
SMOOTH, UPSAMPLING = "smooth_dcgan", "upsampling"
KINDS = (SMOOTH, UPSAMPLING, GAUSSIAN)
WIDTHS = {SMOOTH: 32, UPSAMPLING: 16}
STEPS = 2.5  # for each answer of networks: a fourth of the time of the run
BLOCK = 8  # steps that take about as long as one answer does, which moves the set for eight
RngAt = Callable[[str, int], torch.Generator]


@dataclass(frozen=True, kw_only=True)
class GeneratorSchedule:
    """steps of Adam; pictures of each class and answers in one step; latents; kind and width; step size; decay of the average.

    half: products in bfloat16, with the channels innermost, where the CPU has them: about twice as fast. Weights, averages
    and what is released are in single precision either way. False is what runs were that said nothing of it.
    block: steps that count as one where progress is shown, and after which a run may be taken up.
    size: the longer side of what the network makes, where pictures are set up afterwards; 0 where they have that size.
    """

    steps: int
    pictures: int = 20
    answers: int = 2
    latent: int = 24
    kind: str = UPSAMPLING
    width: int = 16
    eta: float = 2e-3
    average: float = 0.99
    half: bool = False
    block: int = 1
    size: int = 0

    @property
    def spec(self) -> GeneratorSpec:
        """Of the network, for pictures of the size that it makes."""
        return GeneratorSpec(kind=self.kind, latent=self.latent, width=self.width)

    def eta_at(self, step: int) -> float:
        falling = LEAST + (1 - LEAST) * (1 + math.cos(math.pi * step / self.steps)) / 2
        return self.eta * min(1.0, (step + 1) / WARM) * falling


def network_for(shape: tuple[int, ...]) -> str:
    """Of large pictures one whose weights do not grow so fast with them.

    >>> network_for((1, 28, 28)), network_for((3, 32, 64))
    ('smooth_dcgan', 'upsampling')
    """
    return SMOOTH if max(shape[1:]) <= LARGE else UPSAMPLING


def usual_generator(schema: Schema, answers: int, kept: bool, steps: int | None, size: int) -> tuple[int, str | None]:
    """Steps and kind for a run with so many answers of networks, of which a release keeps some or not. steps: what was asked for;
    size: at which pictures are looked at.

    In proportion to the answers, so that a short run stays short. Without any the set is one of samples of the first set's model,
    which gives more of the same.
    """
    if not schema.is_image:
        return steps or 0, None
    if not answers:
        return steps or 0, GAUSSIAN if steps is None else None
    steps = given(steps, round(STEPS * answers) if kept else 0)
    return steps, network_for(at_size(schema, size).shape) if steps else None


def check_generator(schema: Schema, answers: int, steps: int | None, kind: str | None) -> None:
    """Refuse a generator that would not be made, or not in this way."""
    if steps and not (answers and schema.is_image):
        raise BadSettings(f"generator={steps} needs answers of networks about images; here are none.")
    if kind is None:
        return
    if not schema.is_image:
        raise BadSettings(f"generator_kind={kind} makes pictures, and '{schema.name}' is a table; leave it out.")
    if kind == GAUSSIAN and answers:
        raise BadSettings(
            f"generator_kind={kind} is the first set's model; with T={answers} choose a network, or leave it out."
        )
    if kind != GAUSSIAN and not steps:
        raise BadSettings(
            f"generator_kind={kind} is matched in steps, got generator={steps}; choose more, or leave it out."
        )


class GeneratorFit:
    """A generator on its way. `state` is all that a checkpoint needs."""

    def __init__(
        self,
        schedule: GeneratorSchedule,
        schema: Schema,  # of the pictures that the network makes
        rng: RngAt,
        seed: int,
        device: torch.device,
    ) -> None:
        self._schedule, self._rng, self._device = schedule, rng, device
        self._shape, self._classes = schema.shape, len(schema.classes)
        self._labels = torch.arange(len(schema.classes), device=device).repeat_interleave(schedule.pictures)
        self._network = build_generator(schedule.spec, schema.shape, len(schema.classes), seed).to(device)
        self._half = schedule.half and has_fast_bfloat16(device)
        if self._half:
            self._network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._adam = Adam(list(self._network.parameters()), schedule.eta, betas=(0.5, 0.99))
        self._average = [value.detach().clone() for value in self._network.parameters()]

    @property
    def state(self) -> dict[str, Tensor]:
        averages = {f"average.{index}": value for index, value in enumerate(self._average)}
        return {f"{PREFIX}{name}": value for name, value in (self._adam.state | averages).items()}

    @property
    def blocks(self) -> int:
        return math.ceil(self._schedule.steps / self._schedule.block)

    def move_on(self, block: int, answers: Rematching) -> None:
        """All steps of a block."""
        size = self._schedule.block
        for step in range(block * size, min((block + 1) * size, self._schedule.steps)):
            self.move(step, answers)

    def move(self, step: int, answers: Rematching) -> float:
        """One step; gives the loss that it saw."""
        rng = self._rng("generator", step)
        latents = self._schedule.spec.latents(len(self._labels), rng).to(self._device)
        rows: list[int] = torch.randint(len(answers), (self._schedule.answers,), generator=rng).tolist()
        loss = answers.mean_loss(rows, self._pictures(latents), self._labels, elsewhere=1.0)
        self._adam.eta = self._schedule.eta_at(step)
        self._adam.move(torch.autograd.grad(loss, self._adam.parameters))
        decay = min(self._schedule.average, (step + 1) / (step + 10))
        for average, value in zip(self._average, self._adam.parameters, strict=True):
            average.mul_(decay).add_(value.detach(), alpha=1 - decay)
        return float(loss.detach())

    def _pictures(self, latents: Tensor) -> Tensor:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._half):
            pictures: Tensor = self._network(latents, self._labels)
        return pictures.float()

    @torch.no_grad()
    def draw(self, labels: Tensor, rng: torch.Generator) -> Tensor:
        """Pictures of the averaged generator."""
        network = build_generator(self._schedule.spec, self._shape, self._classes, seed=0)
        network.load_state_dict(self.made().weights)
        spec = self._schedule.spec
        return torch.cat(
            [network(spec.latents(len(part), rng), part) for part in torch.split(labels.cpu(), DRAWN_AT_ONCE)]
        )

    def made(self) -> TrainedGenerator:
        names = [name for name, _ in self._network.named_parameters()]
        weights = [value.cpu().contiguous() for value in self._average]
        spec = dataclasses.replace(self._schedule.spec, size=self._schedule.size)
        return TrainedGenerator(spec, dict(zip(names, weights, strict=True)))


def fit_of(
    steps: int, kind: str | None, schema: Schema, size: int | None, rng: RngAt, seed: int, device: torch.device
) -> GeneratorFit | None:
    """What a run makes after its set, if any. size: at which the method looks at pictures.

    kind: None where the plan has no word on it; such a run goes on as it was begun, with pictures of the full size.
    """
    if not steps:
        return None
    if kind is None:
        return GeneratorFit(GeneratorSchedule(steps=steps), schema, rng, seed, device)
    # A plan states steps and kind alone, so what a kind means stays as it is; another schedule gets another name.
    sizes = {"width": WIDTHS[kind], "block": BLOCK, "size": size_of_generator(schema, size)}
    schedule = GeneratorSchedule(steps=steps, kind=kind, half=True, **sizes)
    return GeneratorFit(schedule, at_size(schema, size), rng, seed, device)
