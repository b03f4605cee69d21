"""Elixir: our own method. A set and a pool of small networks that learn from each other, with private records as referee.

No paper's. It joins what worked best in all of them:
1. **A start** (`first_set.py`): samples of a Gaussian model of each class, from five cheap answers.
2. **Networks that learn from the set.** Distribution matching compares records by the features of random networks. Ours
   are trained on the set as it stands, each to an age of its own, so that they look at what a model of this set would look
   at. Training them reads the set alone and is free.
3. **News only.** An answer is the class sum of features minus the set's own class mean, clipped at the set's own usual
   residual (both public): a record spends its whole clip on how it differs from the set. Half of it are the features, which
   tell where a class lies, half are waves: cosines of the features along random directions, which tell how it is spread
   (below epsilon 0.5 the noise hides that, and all of it are features).
   Every answer looks at all images under one random affine change.
4. **Answer once, match for ever.** Every answer is kept and matched again; the set is the running mean of the descent.

All answers are Poisson-sampled or full Gaussian sums, priced like any other; nothing else touches a record. Settings were
chosen on held-out training records of the benchmark sets, but that cells were once left out; see docs/flagship-search.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from limbeck.errors import BadSettings
from limbeck.methods.base import (
    Logbook,
    Method,
    SyntheticSet,
    check_group,
    class_sizes,
    count_queries,
    expected_groups,
    group_rates,
)
from limbeck.methods.elixir.initial_set import bought_model, first_queries
from limbeck.methods.elixir.replay_buffer import Memory
from limbeck.methods.parts.matching import class_means, clipped_rows, shared_out
from limbeck.methods.parts.optimisers import Adam
from limbeck.nets import NetSpec, build
from limbeck.nets.training.descent import Course
from limbeck.nets.training.pool import Pool
from limbeck.nets.training.warp import draw_change
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, FeatureResidual, Waves

MANY = 1000  # records per class, from which on answers of networks are worth their noise
LITTLE_NOISE = 3.0  # epsilon, from which on more answers or wider networks are worth their time; 1 and 10 were tried
MOST_WAVES = 10_000
MUCH_NOISE = 0.5  # epsilon, below which waves cost more than they tell, on held-out records; 0.2 and 1 were tried
SLOWEST = 1e-4  # the step size that the descent ends with


@dataclass(frozen=True, kw_only=True)
class Elixir(Method):
    """Settings left at none depend on the kind of data and on the budget (`resolved`).

    T          answers of networks
    first      share of the budget that the first set may cost
    L          mean sample per class of one answer
    sigma      noise std / clip, as if everything were one answer over all records
    networks, life, epochs
               of the pool; a network is renewed after `life` epochs and learns for `epochs` between two answers; life=0
               asks with random networks, each once
    news       ask how records differ from the set; false asks for features as they are (to compare)
    waves      cosines of features along random directions in an answer, beside the features: how a class is spread, not only
               where it lies; none where there is much noise
    replay     earlier answers matched with each new one; memory: how many are kept for that
    eta        step size of Adam, falling; average: how slowly the running mean of the set forgets
    width      of the networks; colour is worth twice that of grey, and so is little noise
    angle, scale, shift
               of the affine change under which an answer looks at images
    mirror     whether every other answer looks at mirror images; colour images, unless their schema's augmentation lacks "flip"
    snap       numbers of an image within this share of the range of a bound are moved onto it at the end
    """

    name: ClassVar[str] = "elixir"
    title: ClassVar[str] = "Networks that learn from the set ask about the records (our own)"
    paper: ClassVar[str] = "Limbeck, docs/flagship.md"
    needs: ClassVar[str] = (
        "8 minutes of one core for 28x28 images, 18 for CIFAR-10, about twice from epsilon 3; tables: seconds"
    )

    T: int | None = None
    first: float | None = None
    L: int = 1000
    sigma: float | None = None
    networks: int = 20
    life: int = 60
    epochs: int = 2
    news: bool = True
    waves: int | None = None
    replay: int = 7
    memory: int = 300
    eta: float = 0.02
    average: float = 0.98
    width: int | None = None
    angle: float = 0.2
    scale: float = 0.15
    shift: float = 0.12
    mirror: bool | None = None
    snap: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_group(self.L, self.sigma)
        for name in ("networks", "epochs", "memory", "width"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise BadSettings(f"{name} must be at least 1, got {name}={getattr(self, name)}.")
        if self.T is not None and self.T < 0:
            raise BadSettings(f"T must not be negative, got T={self.T}.")
        if self.first is not None and not 0 < self.first <= 1:
            raise BadSettings(f"first must lie in (0, 1], got first={self.first}.")
        if self.first == 1 and self.T:
            raise BadSettings(f"first=1 leaves nothing for T={self.T} answers; choose T=0 or a smaller share.")
        if self.waves is not None and not 0 <= self.waves <= MOST_WAVES:
            raise BadSettings(f"waves must lie in 0 ... {MOST_WAVES}, got waves={self.waves}.")
        for name in ("life", "replay", "angle", "scale", "shift"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadSettings(f"{name} must not be negative, got {name}={getattr(self, name)}.")
        if not 0 < self.eta < math.inf or not 0 <= self.average < 1:
            raise BadSettings(
                f"eta must be positive and average lie in [0, 1), got eta={self.eta}, average={self.average}."
            )
        if not 0 <= self.snap <= 0.5:
            raise BadSettings(f"snap must lie in 0 ... 0.5, got snap={self.snap}.")

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def resolved(self, schema: Schema, epsilon: float | None = None) -> Self:
        """Rows of a table are best as the first set leaves them, and so are images of small classes, whose features drown in
        the noise: everything is spent on that."""
        many = schema.records >= MANY * len(schema.classes)
        little_noise = epsilon is not None and epsilon >= LITTLE_NOISE
        colour = schema.is_image and schema.shape[0] > 1
        usual = (1000 if little_noise and colour else 500) if schema.is_image and many else 0
        answers = usual if self.T is None else self.T
        share = (0.25 if answers else 1.0) if self.first is None else self.first
        rich = colour or (little_noise and schema.is_image)
        width = (32 if rich else 16) if self.width is None else self.width
        mirror = (colour and "flip" in schema.augmentation) if self.mirror is None else self.mirror
        much_noise = epsilon is not None and epsilon < MUCH_NOISE
        waves = (0 if much_noise else 256) if self.waves is None else self.waves
        return dataclasses.replace(self, T=answers, first=share, width=width, mirror=mirror, waves=waves)

    def check(self, schema: Schema) -> None:
        super().check(schema)
        build(self._net(schema), schema.shape, len(schema.classes), seed=0)

    def _net(self, schema: Schema) -> NetSpec:
        assert self.width is not None
        return NetSpec(kind="convnet" if schema.is_image else "mlp", width=self.width)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        assert self.T is not None and self.first is not None
        first = first_queries(noise_multiplier / math.sqrt(self.first))
        counts = count_queries(schema, noise_multiplier)
        if not self.T:
            return (*first, *counts)
        rates = group_rates(schema, self.L)
        features = ClippedSum(
            label="features",
            map="feature_residual",
            clip=1.0,
            # As if all T answers together were one over all records: a sample costs the less, the smaller it is.
            noise_multiplier=noise_multiplier * max(rates) * math.sqrt(self.T / (1 - self.first)),
            rate=rates,
            count=self.T,
        )
        return (*first, features, *counts)

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        sizes = class_sizes(schema, ask)
        expected = expected_groups(schema, self.L, sizes)[:, None].to(device)
        rows = None if schema.is_image else shared_out(self.per_class * len(schema.classes), sizes.tolist())
        labels = self.labels(schema, rows).to(device)
        model = bought_model(schema, ask, sizes)
        start = model.sample(labels.cpu(), self.generator("start"))
        if not schema.is_image:
            start = model.lined_up(start, labels.cpu())
        made = start.clamp(-1, 1).view(-1, *schema.shape).to(device)
        if self.T:
            made = self._matched(nn.Parameter(made), labels, expected, schema, ask, logbook)
        if schema.is_image:
            made = snapped(made, self.snap)
        return SyntheticSet(made.cpu().numpy(), labels.cpu().numpy())

    def _matched(
        self, images: nn.Parameter, labels: Tensor, expected: Tensor, schema: Schema, ask: Ask, logbook: Logbook
    ) -> Tensor:
        assert self.T is not None and self.waves is not None
        classes, device = len(schema.classes), images.device
        mean, adam = images.detach().clone(), Adam([images], self.eta, betas=(0.9, 0.99))
        pool = Pool(self._net(schema), schema.shape, classes, self.networks, device)
        memory = Memory(self.memory, pool, classes, self.waves, device)
        state = adam.state | pool.state | memory.state | {"mean": mean}
        for step in logbook.steps(self.T, state, "features"):
            adam.eta = SLOWEST + self.eta * (1 + math.cos(math.pi * step / self.T)) / 2
            body = pool.body(self._learn(pool, schema, images.data, labels, step))
            question = self._question(pool, body, schema, images.data, labels, step)
            memory.add(step, question, body, ask("features", step, question).tensor(device) / expected)
            for asked, target in self._asked_again(memory, pool, schema, question, step):
                residuals = clipped_rows(asked.rows(images, labels), 1.0)
                loss = (class_means(residuals, labels, classes) - target).square().sum()
                adam.move(torch.autograd.grad(loss, adam.parameters))
                images.data.clamp_(-1, 1)
                mean.mul_(self.average).add_(images.data, alpha=1 - self.average)
        return mean

    def _learn(self, pool: Pool, schema: Schema, images: Tensor, labels: Tensor, step: int) -> int:
        """Whose turn it is, after it has learnt from the set as it stands; the first ones at ages of their own."""
        place, seed = step % self.networks, self.seed_at("learning", step)
        if step < self.networks or pool.ages[place] >= self.life:
            pool.renew(place, self.seed_at("network", step))
            epochs = 0 if step >= self.networks else seed % (min(self.life, 4 * self.epochs) + 1)
        else:
            epochs = self.epochs
        if epochs:
            families = schema.augmentation if schema.is_image else ()
            course = Course(epochs=epochs, batch=64, lr=0.02, decay_at=1.0, families=families)
            pool.learn(place, images, labels, course, seed)
        return place

    def _question(
        self, pool: Pool, body: Tensor, schema: Schema, images: Tensor, labels: Tensor, step: int
    ) -> FeatureResidual:
        """Centred on the set's own class means, scaled by its own usual residual (or neither, if not `news`)."""
        blank = torch.zeros(len(schema.classes), pool.features, device=images.device)
        bare = FeatureResidual(
            net=self._net(schema),
            shape=schema.shape,
            weights=pool.body_weights(body),
            centre=blank,
            scale=1.0,
            change=self._change(schema, step),
        )
        with torch.no_grad():
            features = bare.embed(images)
            centre = class_means(features, labels, len(schema.classes)) if self.news else blank
            residuals = features - centre[labels]
            scale = max(float(residuals.norm(dim=1).median()), 1e-3)
            waves = self._waves(residuals / scale, labels, len(schema.classes), step) if self.waves else None
        return dataclasses.replace(bare, centre=centre, scale=scale, waves=waves)

    def _change(self, schema: Schema, step: int) -> tuple[float, ...] | None:
        if not schema.is_image:
            return None
        return draw_change(self.generator("change", step), self.angle, self.scale, self.shift, bool(self.mirror))

    def _waves(self, residuals: Tensor, labels: Tensor, classes: int, step: int) -> Waves:
        """As long as residuals usually are, so that a class is neither flat nor a blur in them."""
        assert self.waves is not None
        still = self._waves_at(step, residuals.shape[1], torch.zeros(classes, self.waves), 1.0)
        heights = still.heights(residuals)
        centre = class_means(heights, labels, classes) if self.news else still.centre.to(heights.device)
        usual = float((heights - centre[labels]).norm(dim=1).median())
        return dataclasses.replace(still, centre=centre, scale=max(usual, 1e-3))

    def _waves_at(self, step: int, features: int, centre: Tensor, scale: float) -> Waves:
        generator, count = self.generator("waves", step), centre.shape[1]
        directions = torch.randn(features, count, generator=generator)
        phases = torch.rand(count, generator=generator) * 2 * math.pi
        return Waves(directions=directions, phases=phases, centre=centre, scale=scale)

    def _asked_again(
        self, memory: Memory, pool: Pool, schema: Schema, newest: FeatureResidual, step: int
    ) -> Iterator[tuple[FeatureResidual, Tensor]]:
        """The newest answer, then some of those that are remembered."""
        yield newest, memory.targets[step % len(memory)]
        for place in memory.draw(self.replay, step, self.generator("replay", step)):
            asked_at, centre = int(memory.steps[place]), memory.centres[place]
            wave_centre, wave_scale = memory.wave_centres[place], float(memory.wave_scales[place])
            yield (
                dataclasses.replace(
                    newest,
                    weights=pool.body_weights(memory.bodies[place]),
                    centre=centre,
                    scale=float(memory.scales[place]),
                    change=self._change(schema, asked_at),
                    waves=self._waves_at(asked_at, centre.shape[1], wave_centre, wave_scale) if self.waves else None,
                ),
                memory.targets[place],
            )


def snapped(images: Tensor, share: float) -> Tensor:
    """Black where it is almost black, white where it is almost white.

    Real pictures often have pixels on the bounds; a running mean never does. Networks do not mind, but a tree that splits at a
    hair's breadth from the bound learns nothing about real ones.
    """
    return torch.where(images.abs() > 1 - 2 * share, images.sign(), images)
