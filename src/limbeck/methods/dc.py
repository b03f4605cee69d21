"""DC and DSA: gradient matching without privacy. The ceilings that PSG is measured against.

Zhao, Mopuri and Bilen, "Dataset Condensation with Gradient Matching" (DC, Algorithm 1), and Zhao and Bilen, "Dataset
Condensation with Differentiable Siamese Augmentation" (DSA): class by class, with the same augmentation for real and
synthetic records. They ask the vault like any other method, with noise 0 and no clip, so their price is infinite.

Where we differ: the set starts from noise, as PSG's does; batches are Poisson samples; the networks are trained on the set
in between without augmentation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.methods.base import Logbook, SyntheticSet, group_rates
from limbeck.methods.parts.gradients import GradientMatching, Walk, distance
from limbeck.methods.parts.optimisers import Momentum
from limbeck.methods.settings import setting
from limbeck.nets import Augmentation
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, NetworkGradient


@dataclass(frozen=True, kw_only=True)
class DC(GradientMatching):
    """L: mean sample per class."""

    name: ClassVar[str] = "dc"
    title: ClassVar[str] = "Dataset condensation by gradient matching (not private)"
    paper: ClassVar[str] = "Zhao, Mopuri and Bilen, Dataset Condensation with Gradient Matching"
    needs: ClassVar[str] = "an infinite budget: its release is not private; a day on two cores at the paper's size"
    private: ClassVar[bool] = False
    augmented: ClassVar[bool] = False

    K: int = setting(1, least=1)
    L: int = setting(256, least=1)

    @property
    def fixed_noise(self) -> float | None:
        return 0.0

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        return (
            ClippedSum(
                label="gradients",
                map="network_gradient",
                clip=math.inf,
                noise_multiplier=0.0,
                rate=group_rates(schema, self.L),
                count=self.answers(schema),
            ),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        labels = self.labels(schema).to(device)
        walk = self.walk(schema, labels, logbook, device)
        descent = Momentum(self.initial_images(schema, labels), self.eta, self.momentum)
        for i in walk.steps(descent.state, "gradients", descent.images):
            mapping = self.real_gradient(schema, walk, i)
            sums = ask("gradients", i, mapping).tensor(device)
            slopes = [self._slope(walk, descent.images, labels, c, sums[c], mapping) for c in range(len(sums))]
            descent.move(torch.stack(slopes).sum(0))
        return walk.result(descent.images)

    def real_gradient(self, schema: Schema, walk: Walk, step: int) -> NetworkGradient:
        families = schema.augmentation if self.augmented and schema.is_image else ()
        return NetworkGradient(
            net=self.matched(schema),
            shape=schema.shape,
            classes=len(schema.classes),
            weights={name: value.detach().cpu().clone() for name, value in walk.weights.items()},
            augmentation=Augmentation(families) if families else None,
            seed=self.seed_at("augmentation", step) if families else 0,
        )

    def _slope(
        self, walk: Walk, images: Tensor, labels: Tensor, c: int, real: Tensor, mapping: NetworkGradient
    ) -> Tensor:
        """How the images move the distance between one class's gradients."""
        mine = labels == c
        with torch.enable_grad():
            records = images.detach().requires_grad_(True)
            seen = mapping.augmented(records[mine], labels[mine])
            target = walk.by_name(real)
            _, slope = walk.gradients.pull_back(
                walk.weights, seen.detach(), labels[mine], lambda synthetic: distance(synthetic, target)
            )
            return torch.autograd.grad(seen, records, slope)[0]


@dataclass(frozen=True, kw_only=True)
class DSA(DC):
    name: ClassVar[str] = "dsa"
    title: ClassVar[str] = "Gradient matching with siamese augmentation (not private)"
    paper: ClassVar[str] = "Zhao and Bilen, Dataset Condensation with Differentiable Siamese Augmentation"
    augmented: ClassVar[bool] = True
