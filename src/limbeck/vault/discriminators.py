"""Teachers that tell records from synthetic ones: the discriminators of DataLens, G-PATE and PATE-GAN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.discriminator import StackedDiscriminator
from limbeck.queries import require_count
from limbeck.vault.teachers import Batch, Teacher, Weights


@dataclass(frozen=True, kw_only=True)
class Discriminator(Teacher):
    """Lowers -log D(real) - log(1 - D(fake)), and scores an image with log D. first, second, hidden: sizes of the
    network; first = 0 leaves its convolutions out."""

    kind: ClassVar[str] = "discriminator"

    first: int = 11
    second: int = 42
    hidden: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("second", "hidden"):
            require_count(name, getattr(self, name))
        if self.first:
            require_count("first", self.first)

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
        as_fake = (F.softplus(logits[:, split:]) * fake.weight).mean(1)
        return as_real + as_fake

    def score(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return F.logsigmoid(self._net().logits(weights, x, y))
