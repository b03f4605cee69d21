"""DP-GAN: a Wasserstein GAN whose critic learns by DP-SGD.

Xie, Lin, Wang, Wang and Zhou, "Differentially Private Generative Adversarial Network", Algorithm 1; the baseline DP-GAN of
DataLens. Noise is added to the critic's gradients on real records, and its weights are cut to [-c, c] after every step.

Where we differ, and why:
- The paper relies on the cut weights to bound a gradient, by a constant that it does not compute. Here the gradient of one
  record is clipped to C in the vault, so the bound holds whatever the network.
- A critic has an output for each class, so that the set has labels; the gradient of a record is that of its own class's output.
- Records are Poisson-sampled, as the accounting assumes, and the noised sum is divided by the expected batch.
- Gradients of made records are clipped like those of the real ones: a critic whose two halves are clipped differently pushes
  all that it gives up, or down.
- Adam moves both networks, in place of RMSProp; the generator that is released is an average over the steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.methods.parts.adversary import Adversarial
from limbeck.methods.settings import setting
from limbeck.privacy.schema import Schema
from limbeck.vault.api import NetworkGradient, ScoreGradient


@dataclass(frozen=True, kw_only=True)
class DPGAN(Adversarial):
    """c: how large a weight of the critic may be. The others: see Adversarial."""

    name: ClassVar[str] = "dpgan"
    title: ClassVar[str] = "DP-GAN: a Wasserstein GAN with a DP-SGD critic"
    paper: ClassVar[str] = "Xie et al., Differentially Private Generative Adversarial Network, Algorithm 1"
    needs: ClassVar[str] = "minutes on two cores; images or tables; a large epsilon"
    map_kind: ClassVar[str] = ScoreGradient.kind

    T: int = setting(900, least=1)
    B: int = setting(1000, least=1)
    n_dis: int = setting(3, least=1)
    c: float = setting(0.05, above=0)

    def outputs(self, schema: Schema) -> int:
        return len(schema.classes)

    def gradient(self, schema: Schema, weights: dict[str, Tensor]) -> ScoreGradient:
        return ScoreGradient(
            net=self.discriminator(), shape=schema.shape, classes=self.outputs(schema), weights=weights
        )

    def made_gradient(self, mapping: NetworkGradient, x: Tensor, y: Tensor, schema: Schema) -> Tensor:
        return -mapping.public_sum(x, y, self.C)

    def generator_loss(self, outputs: Tensor, y: Tensor, schema: Schema) -> Tensor:
        return -outputs.gather(1, y[:, None]).mean()

    @torch.no_grad()
    def moved(self, weights: list[torch.nn.Parameter]) -> None:
        for value in weights:
            value.clamp_(-self.c, self.c)
