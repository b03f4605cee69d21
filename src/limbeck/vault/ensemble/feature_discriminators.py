"""Teachers that see more than the mean of a class and learn as fast: discriminators over public random features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets.architectures.feature_discriminator import FeatureDiscriminator
from limbeck.privacy.numbers import require_count
from limbeck.vault.ensemble.teachers import Batch, Teacher, Weights, balanced


@dataclass(frozen=True, kw_only=True)
class FeatureTeacher(Teacher):
    """As a `Discriminator` of templates, with so many public features beside the numbers of a record. features_seed: which."""

    kind: ClassVar[str] = "feature_discriminator"

    features: int = 256
    features_seed: int = 0
    decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("features", self.features)
        if not 0 <= self.decay < float("inf"):
            raise BadInput(f"decay must be at least 0, got decay={self.decay}.")

    def _net(self) -> FeatureDiscriminator:
        return FeatureDiscriminator(
            shape=self.shape, classes=self.classes, features=self.features, seed=self.features_seed
        )

    def start(self, seeds: Sequence[int]) -> Weights:
        return self._net().start(seeds)

    def loss(self, weights: Weights, real: Batch, fake: Batch, random: torch.Generator) -> Tensor:
        # Fakes are the same for all teachers, and their features are worked out once.
        reals, fakes = (self._net().logits(weights, batch.x, batch.y) for batch in (real, fake))
        as_real = (F.softplus(-reals) * real.weight).mean(1)
        as_fake = (F.softplus(fakes) * balanced(real, fake, self.classes)).mean(1)
        squares = torch.stack([value.flatten(1).square().sum(1) for value in weights.values()])
        return as_real + as_fake + self.decay / 2 * squares.sum(0)

    def score(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return F.logsigmoid(self._net().logits(weights, x, y))
