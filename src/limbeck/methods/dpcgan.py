"""DP-CGAN: a conditional GAN whose discriminator learns by DP-SGD.

Torkzadehmahani, Kairouz and Paten, "DP-CGAN: Differentially Private Synthetic Data and Label Generation", Algorithm 1. The
gradients of real and of made records are clipped apart, and noise is added to those of the real ones; every step is a query,
booked before the first record is read.

Where we differ, and why:
- The discriminator has two outputs for each class, "real and of this class" and "made and of this class", and learns by
  cross-entropy over all. The difference of a class's two outputs is then the log ratio of the two densities given the class,
  which is what the paper's discriminator of (x, y) learns; and one record's loss is the cross-entropy that the vault has a
  map for.
- Records are Poisson-sampled, as the accounting assumes; the paper draws batches of a fixed size and prices them as if they were
  sampled. The noised sum is divided by the expected batch.
- Adam moves both networks on what was answered. The generator that is released is an average over the steps.
- The paper's 30,000 steps with batches of 600 are days on two cores; the defaults are 2000 steps with batches of 1000. With 600
  of them pictures of a class are still alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from limbeck.methods.parts.adversary import Adversarial
from limbeck.methods.settings import setting
from limbeck.privacy.schema import Schema
from limbeck.vault.api import NetworkGradient


@dataclass(frozen=True, kw_only=True)
class DPCGAN(Adversarial):
    """See Adversarial for the settings."""

    name: ClassVar[str] = "dpcgan"
    title: ClassVar[str] = "DP-CGAN: a conditional GAN with a DP-SGD discriminator"
    paper: ClassVar[str] = "Torkzadehmahani, Kairouz and Paten, DP-CGAN, Algorithm 1"
    needs: ClassVar[str] = "minutes on two cores; images or tables; a large epsilon"
    map_kind: ClassVar[str] = NetworkGradient.kind

    T: int = setting(2000, least=1)
    B: int = setting(1000, least=1)

    def outputs(self, schema: Schema) -> int:
        return 2 * len(schema.classes)

    def gradient(self, schema: Schema, weights: dict[str, Tensor]) -> NetworkGradient:
        return NetworkGradient(
            net=self.discriminator(), shape=schema.shape, classes=self.outputs(schema), weights=weights
        )

    def made_gradient(self, mapping: NetworkGradient, x: Tensor, y: Tensor, schema: Schema) -> Tensor:
        return mapping.public_sum(x, len(schema.classes) + y, self.C)

    def generator_loss(self, outputs: Tensor, y: Tensor, schema: Schema) -> Tensor:
        classes = len(schema.classes)
        real, made = outputs[:, :classes], outputs[:, classes:]
        ratio = (real - made).gather(1, y[:, None])
        return F.softplus(-ratio).mean()
