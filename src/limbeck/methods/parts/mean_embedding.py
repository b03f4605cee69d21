"""What DP-MERF and its kin share: one answer, the mean embedding of each class, and a generator that is fitted to it."""

from __future__ import annotations

from collections.abc import Callable
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

EMBEDDING = "embedding"
MADE_AT_ONCE = 1000
WARM = 100  # steps until the step size is eta
Made = Callable[[Tensor, Tensor], Tensor]


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
        embedding = ClippedSum(label=EMBEDDING, map=self.map_kind, clip=1.0, noise_multiplier=noise_multiplier)
        return (embedding, *count_queries(schema, noise_multiplier))

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        sizes = class_sizes(schema, ask)
        mapping, generator = self.embedding(schema), self._generator(schema).to(device)
        nothing = torch.zeros(0, *schema.shape), torch.zeros(0, dtype=torch.int64)
        fit = EmbeddingFit(self, generator, mapping.rows(*nothing).shape[1], len(schema.classes), device)
        for step in logbook.steps(self.T, fit.state, EMBEDDING):
            if step == 0:
                fit.aim_at(ask(EMBEDDING, 0, mapping).tensor(device), sizes)
            fit.move(step, generator, mapping.rows)
        return self._sampled(generator.eval(), schema, sizes, device)

    def _spec(self) -> GeneratorSpec:
        return GeneratorSpec(kind=self.generator_kind, latent=self.code)

    def _generator(self, schema: Schema) -> nn.Module:
        return build_generator(self._spec(), schema.shape, len(schema.classes), self.seed_at("generator"))

    def latents(self, count: int, *point: int | str) -> Tensor:
        return self._spec().latents(count, self.rng("codes", *point))

    @torch.no_grad()
    def _sampled(self, generator: nn.Module, schema: Schema, sizes: Tensor, device: torch.device) -> SyntheticSet:
        """Equally many records of each class; of a table in proportion, because its models live by the base rates."""
        rows = None if schema.is_image else shared_out(self.per_class * len(schema.classes), sizes.tolist())
        labels = self.labels(schema, rows)
        latents = torch.split(self.latents(len(labels), "set").to(device), MADE_AT_ONCE)
        parts = zip(latents, torch.split(labels.to(device), MADE_AT_ONCE), strict=True)
        made = torch.cat([generator(latent, label) for latent, label in parts])
        released = TrainedGenerator(self._spec(), generator.state_dict())
        return SyntheticSet(made.cpu().numpy(), labels.numpy(), generator=released)


class EmbeddingFit:
    """The descent of a network to the noised mean embedding of each class."""

    def __init__(
        self, method: MeanEmbedding, network: nn.Module, features: int, classes: int, device: torch.device
    ) -> None:
        self._method, self._network, self._classes = method, network, classes
        self._adam = Adam(list(network.parameters()), method.eta)
        self._target = torch.zeros(classes, features, device=device)
        self._labels = torch.arange(classes, device=device).repeat_interleave(method.batch)

    @property
    def state(self) -> dict[str, Tensor]:
        """The answer is part of it: a checkpoint drops it from the ledger."""
        return self._adam.state | dict(self._network.named_buffers()) | {"target": self._target}

    def aim_at(self, answer: Tensor, sizes: Tensor) -> None:
        self._target.copy_(answer / sizes[:, None].to(answer.device))

    def move(self, step: int, make: Made, rows: Made) -> None:
        """One step of Adam: `make` makes of latents and labels, with the network, what `rows` embeds."""
        labels, method = self._labels, self._method
        self._adam.eta = method.eta * min(1.0, (step + 1) / WARM)
        made = make(method.latents(len(labels), "step", step).to(labels.device), labels)
        means = class_means(rows(made, labels), labels, self._classes)
        loss = (means - self._target).square().sum()
        self._adam.move(torch.autograd.grad(loss, self._adam.parameters))
