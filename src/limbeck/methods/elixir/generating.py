"""A generator matched to remembered answers, as the set is: its pictures' class means move towards them.

Fresh latents at every step, so that it learns the class and not a few pictures; the weights are averaged, because each step
sees few pictures and one or two answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.methods.base import TrainedGenerator
from limbeck.methods.elixir.rematching import Rematching
from limbeck.methods.parts.optimisers import Adam
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.nets.kernels.hardware import has_fast_bfloat16
from limbeck.privacy.schema import Schema

PREFIX = "generator."
WARM = 50  # steps until the step size is whole
DRAWN_AT_ONCE = 500
LEAST = 0.02  # of it at the end
SMOOTH, UPSAMPLING = "smooth_dcgan", "upsampling"


@dataclass(frozen=True, kw_only=True)
class GeneratorSchedule:
    """steps of Adam; pictures of each class and answers in one step; latents; kind and width; step size; decay of the average.

    half: products in bfloat16, with the channels innermost, where the CPU has them: about twice as fast. Weights, averages
    and what is released are in single precision either way. False is what runs were that said nothing of it.
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

    @property
    def spec(self) -> GeneratorSpec:
        return GeneratorSpec(kind=self.kind, latent=self.latent, width=self.width)

    def eta_at(self, step: int) -> float:
        falling = LEAST + (1 - LEAST) * (1 + math.cos(math.pi * step / self.steps)) / 2
        return self.eta * min(1.0, (step + 1) / WARM) * falling


class GeneratorFit:
    """A generator on its way. `state` is all that a checkpoint needs."""

    def __init__(
        self,
        schedule: GeneratorSchedule,
        schema: Schema,
        rng: Callable[[str, int], torch.Generator],
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
        return TrainedGenerator(self._schedule.spec, dict(zip(names, weights, strict=True)))
