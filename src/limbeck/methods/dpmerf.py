"""DP-MERF: a generator whose records have the noised mean embedding of the private ones.

Harder, Adamczewski and Park, "DP-MERF: Differentially Private Mean Embeddings with Random Features", Algorithm 1 with
labels. One answer is asked: per class, the sum of random Fourier features over all records. Everything after it is free,
so the set may be as large as one likes.

Where we differ, and why:
- One record is added or removed, not replaced, so the sensitivity of the sum is 1; nothing is sampled, so the price is that
  of one Gaussian, exactly.
- The bandwidth is a public constant, not the median distance of the private records.
- Sums are divided by class sizes that are public or bought; the paper divides by the number of records, which its
  classes share evenly.
- The step size rises over the first hundred steps. With the paper's from the start, all units of the generator die on colour
  images, and every picture is the same grey.
- The generator ends in tanh, because records lie in [-1, 1] here. Tables take a generator of three linear layers and the
  same kernel for all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from limbeck.methods.base import (
    Logbook,
    Method,
    SyntheticSet,
    TrainedGenerator,
    class_sizes,
    count_queries,
)
from limbeck.methods.parts.matching import class_means, shared_out
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.nets.features.fourier import FourierSpec
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, RandomFourier

MADE_AT_ONCE = 1000
WARM = 100  # steps until the step size is eta


@dataclass(frozen=True, kw_only=True)
class DPMERF(Method):
    """features: how many. bandwidth: of the kernel, per sqrt(d) (see FourierSpec). T, batch, eta: steps, records per class
    in a step, and step size of Adam. code: dimension of the latents. sigma: noise std / sensitivity."""

    name: ClassVar[str] = "dpmerf"
    title: ClassVar[str] = "DP mean embeddings with random features"
    paper: ClassVar[str] = "Harder, Adamczewski and Park, DP-MERF, Algorithm 1"
    needs: ClassVar[str] = "minutes on two cores; images or tables; any number per class at the same price"

    features: int = setting(4000, least=2, multiple_of=2)
    bandwidth: float = setting(0.73, above=0)
    sigma: float | None = setting(None, above=0)
    T: int = setting(1000, least=1)
    batch: int = setting(40, least=2, note="records of each class")
    eta: float = setting(0.01, above=0)
    code: int = setting(5, least=1)

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        embedding = ClippedSum(label="embedding", map="random_fourier", clip=1.0, noise_multiplier=noise_multiplier)
        return (embedding, *count_queries(schema, noise_multiplier))

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        sizes = class_sizes(schema, ask)
        spec = FourierSpec(
            numbers=schema.numbers, features=self.features, bandwidth=self.bandwidth, seed=self.seed_at("frequencies")
        )
        fourier, generator = RandomFourier(spec=spec), self._generator(schema).to(device)
        adam = Adam(list(generator.parameters()), self.eta)
        target = torch.zeros(len(schema.classes), self.features, device=device)
        labels = torch.arange(len(schema.classes), device=device).repeat_interleave(self.batch)
        # The answer is part of the state: a checkpoint drops it from the ledger.
        state = adam.state | dict(generator.named_buffers()) | {"target": target}
        for step in logbook.steps(self.T, state, "embedding"):
            adam.eta = self.eta * min(1.0, (step + 1) / WARM)
            if step == 0:
                target.copy_(ask("embedding", 0, fourier).tensor(device) / sizes[:, None].to(device))
            made = generator(self._codes(len(labels), "step", step).to(device), labels)
            means = class_means(fourier.rows(made, labels), labels, len(schema.classes))
            loss = (means - target).square().sum()
            adam.move(torch.autograd.grad(loss, adam.parameters))
        return self._sampled(generator.eval(), schema, sizes, device)

    def _spec(self) -> GeneratorSpec:
        return GeneratorSpec(kind="merf", latent=self.code)

    def _generator(self, schema: Schema) -> nn.Module:
        return build_generator(self._spec(), schema.shape, len(schema.classes), self.seed_at("generator"))

    def _codes(self, count: int, *point: int | str) -> Tensor:
        return self._spec().latents(count, self.rng("codes", *point))

    @torch.no_grad()
    def _sampled(self, generator: nn.Module, schema: Schema, sizes: Tensor, device: torch.device) -> SyntheticSet:
        """Equally many records of each class; of a table in proportion, because its models live by the base rates."""
        rows = None if schema.is_image else shared_out(self.per_class * len(schema.classes), sizes.tolist())
        labels = self.labels(schema, rows)
        codes = torch.split(self._codes(len(labels), "set").to(device), MADE_AT_ONCE)
        parts = zip(codes, torch.split(labels.to(device), MADE_AT_ONCE), strict=True)
        made = torch.cat([generator(code, label) for code, label in parts])
        released = TrainedGenerator(self._spec(), generator.state_dict())
        return SyntheticSet(made.cpu().numpy(), labels.numpy(), generator=released)
