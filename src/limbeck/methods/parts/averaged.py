"""A generator in training, with the EMA of its weights, which is what is released."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from limbeck.methods.base import Method
from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.privacy.schema import Schema

BETAS = (0.5, 0.9)


class AveragedTraining(GeneratorTraining):
    """decay: of the average, which is faster in the first steps."""

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
        decay: float,
        betas: tuple[float, float] = BETAS,
    ) -> None:
        super().__init__(method, spec, schema, device, steps=steps, snapshots=snapshots, eta=eta, betas=betas)
        self._decay, self._ema = decay, self._built(method, schema)

    @property
    def released(self) -> nn.Module:
        return self._ema

    @property
    def state(self) -> dict[str, Tensor]:
        return super().state | {f"average.{name}": value.detach() for name, value in self._ema.named_parameters()}

    @torch.no_grad()
    def note(self, step: int, answer: Tensor) -> None:
        share = 1 - min(self._decay, (1 + step) / (10 + step))
        for value, average in zip(self.generator.parameters(), self._ema.parameters(), strict=True):
            average.lerp_(value, share)
        super().note(step, answer)
