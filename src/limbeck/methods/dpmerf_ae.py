"""DP-MERF AE: DP-MERF in the code of an autoencoder.

Harder, Adamczewski and Park, "DP-MERF: Differentially Private Mean Embeddings with Random Features", the variant with an
autoencoder that GS-WGAN compares with: an autoencoder learns by DP-SGD, then Algorithm 1 is run on codes in place of records, and
the decoder makes records of the codes that the generator makes.

Where we differ, and why:
- Encoder and decoder both learn by DP-SGD, from the same noised steps. An encoder that saw the records without noise would move
  the codes of all records with one of them, and the sum of their features by far more than its clip.
- The autoencoder has one layer each way, and a code of fixed length, so that the bandwidth is a public constant. Its loss is the
  cross-entropy of a record's numbers as shares of [0, 1].
- Records are Poisson-sampled, as the accounting assumes; the noised sum is divided by the expected batch, and moved by Adam.
- `share` of the budget is the autoencoder's, the rest the embedding's, in squares of signal over noise, as they add up where
  there is much noise: T_ae steps of rate q with noise s have T_ae q^2 / s^2. The price is what the accountant says of the whole.
- What DP-MERF differs in (`dpmerf.py`) holds here too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.methods.base import Logbook, SyntheticSet, class_sizes, unflattened
from limbeck.methods.parts.mean_embedding import EMBEDDING, EmbeddingFit, MeanEmbedding
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.nets import NetSpec, build
from limbeck.nets.features.fourier import FourierSpec
from limbeck.nets.generators.merf import CodedGenerator
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, CodeFourier, ReconstructionGradient

GRADIENTS = "autoencoder"
BODY = "body."


@dataclass(frozen=True, kw_only=True)
class DPMERFAE(MeanEmbedding):
    """share: of the budget, that the autoencoder has. T_ae, B, C, eta_ae: its steps, expected batch, clip on a record's gradient,
    and step size of Adam. width: numbers of the code. features, bandwidth: as in DP-MERF, of codes. sigma: noise std /
    sensitivity of one Gaussian with the whole budget, which `share` splits. The others: see MeanEmbedding."""

    name: ClassVar[str] = "dpmerf-ae"
    title: ClassVar[str] = "DP-MERF in the code of an autoencoder"
    paper: ClassVar[str] = "Harder, Adamczewski and Park, DP-MERF, with an autoencoder"
    needs: ClassVar[str] = "a minute on two cores; images or tables; any number per class at the same price"
    map_kind: ClassVar[str] = CodeFourier.kind
    generator_kind: ClassVar[str] = "merf_coded"

    share: float = setting(0.5, above=0, below=1)
    T_ae: int = setting(200, least=1)
    B: int = setting(4000, least=1)
    C: float = setting(1.0, above=0)
    eta_ae: float = setting(0.01, above=0)
    width: int = setting(64, least=2)
    features: int = setting(2000, least=2, multiple_of=2)
    bandwidth: float = setting(0.7, above=0)

    T: int = setting(600, least=1)
    batch: int = setting(20, least=2, note="records of each class")

    def rate(self, schema: Schema) -> float:
        return min(1.0, self.B / schema.records)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        rate = self.rate(schema)
        gradients = ClippedSum(
            label=GRADIENTS,
            map=ReconstructionGradient.kind,
            clip=self.C,
            noise_multiplier=noise_multiplier * rate * math.sqrt(self.T_ae / self.share),
            rate=(rate,),
            by_class=False,
            count=self.T_ae,
        )
        return (gradients, *super().queries(schema, noise_multiplier / math.sqrt(1 - self.share)))

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        sizes, net = class_sizes(schema, ask), NetSpec(kind="autoencoder", width=self.width)
        network = build(net, schema.shape, schema.numbers, self.seed_at("autoencoder"), device)
        adam = Adam(list(network.parameters()), self.eta_ae)
        generator = self._generator(schema).to(device)
        assert isinstance(generator, CodedGenerator)
        generator.decoder.requires_grad_(False)
        fit = EmbeddingFit(self, generator.coder, self.features, len(schema.classes), device)
        expected = self.rate(schema) * schema.records  # public; the size of a sample is not (rule 3)
        state = fit.state | {f"autoencoder.{name}": value for name, value in adam.state.items()}
        mapping: CodeFourier | None = None
        for step in logbook.steps(self.T_ae + self.T, state, GRADIENTS):
            weights = {name: value.detach().clone() for name, value in network.named_parameters()}
            if step < self.T_ae:
                loss = ReconstructionGradient(net=net, shape=schema.shape, classes=schema.numbers, weights=weights)
                noisy_sum = ask(GRADIENTS, step, loss).tensor(device).flatten()
                adam.move(tuple(unflattened(noisy_sum / expected, weights).values()))
                continue
            mapping = mapping or self._code_map(net, schema, weights)
            if step == self.T_ae:
                fit.aim_at(ask(EMBEDDING, 0, mapping).tensor(device), sizes)
            fit.move(step - self.T_ae, generator.codes, mapping.of_codes)
        generator.decoder.load_state_dict(network.head.state_dict())
        return self._sampled(generator.eval(), schema, sizes, device)

    def _spec(self) -> GeneratorSpec:
        return GeneratorSpec(kind=self.generator_kind, latent=self.code, width=self.width)

    def _code_map(self, net: NetSpec, schema: Schema, weights: dict[str, Tensor]) -> CodeFourier:
        return CodeFourier(
            net=net,
            shape=schema.shape,
            weights={name.removeprefix(BODY): value for name, value in weights.items() if name.startswith(BODY)},
            spec=FourierSpec(
                numbers=self.width,
                features=self.features,
                bandwidth=self.bandwidth,
                seed=self.seed_at("frequencies"),
            ),
        )
