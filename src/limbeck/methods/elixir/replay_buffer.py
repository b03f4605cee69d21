"""The replay buffer of Elixir: the last answers, with all that they were asked with, so that the set is matched to them again.

An answer is paid for once and may be used for ever. The buffer is a ring of tensors that a checkpoint can hold; their names
there ("memory.bodies", ...) belong to the format of checkpoints and stay.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.nets.training.pool import Pool
from limbeck.vault.api import FeatureResidual


@dataclass(frozen=True, eq=False)
class Replay:
    """One answer: the step that asked, the network's weights, centres and scales of the question, and the target."""

    step: int
    body: Tensor
    centre: Tensor
    scale: float
    fourier_centre: Tensor
    fourier_scale: float
    target: Tensor


class ReplayBuffer:
    """`size` answers; a new one takes the row of the oldest."""

    def __init__(self, size: int, pool: Pool, classes: int, fourier: int, device: torch.device) -> None:
        self._bodies = torch.zeros(size, pool.body_dimension, device=device)
        self._centres = torch.zeros(size, classes, pool.features, device=device)
        self._fourier_centres = torch.zeros(size, classes, fourier, device=device)
        self._targets = torch.zeros(size, classes, pool.features + fourier, device=device)
        self._scales = torch.zeros(size, dtype=torch.float64)
        self._fourier_scales = torch.zeros(size, dtype=torch.float64)
        self._steps = torch.zeros(size, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, row: int) -> Replay:
        return Replay(
            step=int(self._steps[row]),
            body=self._bodies[row],
            centre=self._centres[row],
            scale=float(self._scales[row]),
            fourier_centre=self._fourier_centres[row],
            fourier_scale=float(self._fourier_scales[row]),
            target=self._targets[row],
        )

    @property
    def state(self) -> dict[str, Tensor]:
        fourier = {"memory.wave_centres": self._fourier_centres, "memory.wave_scales": self._fourier_scales}
        return {
            "memory.bodies": self._bodies,
            "memory.centres": self._centres,
            "memory.targets": self._targets,
            "memory.scales": self._scales,
            "memory.steps": self._steps,
            **(fourier if self._fourier_centres.numel() else {}),
        }

    def add(self, step: int, question: FeatureResidual, body: Tensor, target: Tensor) -> None:
        row = step % len(self)
        self._bodies[row], self._centres[row], self._targets[row] = body, question.centre, target
        self._scales[row], self._steps[row] = question.scale, step
        if question.waves is not None:
            self._fourier_centres[row], self._fourier_scales[row] = question.waves.centre, question.waves.scale

    def kept(self, asked: int) -> list[Replay]:
        """All that are there after so many answers, oldest first."""
        return sorted((self[row] for row in range(min(asked, len(self)))), key=lambda replay: replay.step)

    def draw(self, count: int, step: int, rng: torch.Generator) -> list[Replay]:
        """`count` answers up to this step, with repetition."""
        rows: list[int] = torch.randint(min(step + 1, len(self)), (count,), generator=rng).tolist()
        return [self[row] for row in rows]
