"""Teachers that tell records from synthetic ones: the discriminators of DataLens, G-PATE and PATE-GAN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets.architectures.discriminator import StackedDiscriminator
from limbeck.privacy.numbers import require_count
from limbeck.vault.ensemble.teachers import Batch, Teacher, Weights, balanced


@dataclass(frozen=True, kw_only=True)
class Discriminator(Teacher):
    """Lowers -log D(real) - log(1 - D(fake)), and scores an image with log D. first, second, hidden: sizes of the
    network; first = 0 leaves its convolutions out, and hidden = 0 with it all but the templates. decay: half of it times the
    squared weights is lowered as well."""

    kind: ClassVar[str] = "discriminator"

    first: int = 11
    second: int = 42
    hidden: int = 256
    decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("second", self.second)
        if self.hidden or self.first:
            require_count("hidden", self.hidden)
        if self.first:
            require_count("first", self.first)
        if not 0 <= self.decay < math.inf:
            raise BadInput(f"decay must be at least 0, got decay={self.decay}.")

    def _net(self) -> StackedDiscriminator:
        return StackedDiscriminator(
            shape=self.shape, classes=self.classes, first=self.first, second=self.second, hidden=self.hidden
        )

    def start(self, seeds: Sequence[int]) -> Weights:
        return self._net().start(seeds)

    def loss(self, weights: Weights, real: Batch, fake: Batch, random: torch.Generator) -> Tensor:
        # One pass for both halves: small networks are bound by the number of operations.
        teachers = real.x.shape[0]
        x = torch.cat([real.x, fake.x.expand(teachers, *fake.x.shape[1:])], dim=1)
        y = torch.cat([real.y, fake.y.expand(teachers, fake.y.shape[1])], dim=1)
        logits = self._net().logits(weights, x, y)
        split = real.x.shape[1]
        as_real = (F.softplus(-logits[:, :split]) * real.weight).mean(1)
        as_fake = (F.softplus(logits[:, split:]) * balanced(real, fake, self.classes)).mean(1)
        if not self.decay:
            return as_real + as_fake
        squares = torch.stack([value.flatten(1).square().sum(1) for value in weights.values()])
        return as_real + as_fake + self.decay / 2 * squares.sum(0)

    def score(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return F.logsigmoid(self._net().logits(weights, x, y))
