"""Answers of networks that are matched again, with all that they were asked with."""

from __future__ import annotations

import torch
from torch import Tensor

from limbeck.nets.training.pool import Pool
from limbeck.vault.api import FeatureResidual


class Memory:
    """The last answers and what they were asked with, as tensors that a checkpoint can hold."""

    def __init__(self, size: int, pool: Pool, classes: int, waves: int, device: torch.device) -> None:
        self.bodies = torch.zeros(size, pool.body_numbers, device=device)
        self.centres = torch.zeros(size, classes, pool.features, device=device)
        self.wave_centres = torch.zeros(size, classes, waves, device=device)
        self.targets = torch.zeros(size, classes, pool.features + waves, device=device)
        self.scales = torch.zeros(size, dtype=torch.float64)
        self.wave_scales = torch.zeros(size, dtype=torch.float64)
        self.steps = torch.zeros(size, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def state(self) -> dict[str, Tensor]:
        waves = {"memory.wave_centres": self.wave_centres, "memory.wave_scales": self.wave_scales}
        return {
            "memory.bodies": self.bodies,
            "memory.centres": self.centres,
            "memory.targets": self.targets,
            "memory.scales": self.scales,
            "memory.steps": self.steps,
            **(waves if self.wave_centres.numel() else {}),
        }

    def add(self, step: int, question: FeatureResidual, body: Tensor, target: Tensor) -> None:
        place = step % len(self)
        self.bodies[place], self.centres[place], self.targets[place] = body, question.centre, target
        self.scales[place], self.steps[place] = question.scale, step
        if question.waves is not None:
            self.wave_centres[place], self.wave_scales[place] = question.waves.centre, question.waves.scale

    def draw(self, count: int, step: int, generator: torch.Generator) -> list[int]:
        """Places of `count` answers up to this step."""
        places: list[int] = torch.randint(min(step + 1, len(self)), (count,), generator=generator).tolist()
        return places
