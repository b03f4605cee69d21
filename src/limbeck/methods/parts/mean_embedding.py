"""What DP-MERF and its kin share: one answer, the mean embedding of each class, and a generator that is fitted to it."""

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
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, Map

MADE_AT_ONCE = 1000
WARM = 100  # steps until the step size is eta


@dataclass(frozen=True, kw_only=True)
class MeanEmbedding(Method):
    """T, batch, eta: steps, records per class in a step, and step size of Adam. code: dimension of the latents.
    sigma: noise std / sensitivity. A method says with which map records are embedded."""

    sigma: float | None = setting(None, above=0)
    T: int = setting(1000, least=1)
    batch: int = setting(40, least=2, note="records of each class")
    eta: float = setting(0.01, above=0)
    code: int = setting(5, least=1)

    map_kind: ClassVar[str] = ""
    generator_kind: ClassVar[str] = "merf"

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def embedding(self, schema: Schema) -> Map:
        """A map whose rows have norm 1 at most, and let gradients pass to the records."""
        raise NotImplementedError

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        embedding = ClippedSum(label="embedding", map=self.map_kind, clip=1.0, noise_multiplier=noise_multiplier)
        return (embedding, *count_queries(schema, noise_multiplier))

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        sizes = class_sizes(schema, ask)
        mapping, generator = self.embedding(schema), self._generator(schema).to(device)
        adam = Adam(list(generator.parameters()), self.eta)
        nothing = torch.zeros(0, *schema.shape), torch.zeros(0, dtype=torch.int64)
        target = torch.zeros(len(schema.classes), mapping.rows(*nothing).shape[1], device=device)
        labels = torch.arange(len(schema.classes), device=device).repeat_interleave(self.batch)
        # The answer is part of the state: a checkpoint drops it from the ledger.
        state = adam.state | dict(generator.named_buffers()) | {"target": target}
        for step in logbook.steps(self.T, state, "embedding"):
            adam.eta = self.eta * min(1.0, (step + 1) / WARM)
            if step == 0:
                target.copy_(ask("embedding", 0, mapping).tensor(device) / sizes[:, None].to(device))
            made = generator(self._codes(len(labels), "step", step).to(device), labels)
            means = class_means(mapping.rows(made, labels), labels, len(schema.classes))
            loss = (means - target).square().sum()
            adam.move(torch.autograd.grad(loss, adam.parameters))
        return self._sampled(generator.eval(), schema, sizes, device)

    def _spec(self) -> GeneratorSpec:
        return GeneratorSpec(kind=self.generator_kind, latent=self.code)

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
