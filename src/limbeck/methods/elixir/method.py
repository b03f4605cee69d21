"""Elixir: our own method. A set and a pool of small networks learn from each other, and private records are the referee.

It is not from a paper. It joins what worked best in all of them:
1. **An initial set** (`initial_set.py`): samples of a Gaussian model of each class, from five cheap answers.
2. **Networks that learn from the set.** Distribution matching compares records by the features of random networks. Ours
   are trained on the set as it stands, each to an age of its own, so that they look at what a model trained on this set
   would look at. Training them reads the set alone and is free.
3. **Residuals only** (`questions.py`). An answer is the class sum of features minus the set's own class mean, clipped at the
   set's own median residual (both public): a record spends its whole clip on how it differs from the set. Half of a row is
   the residual, which says where a class lies; half is random Fourier features of it, which say how the class is spread
   (below epsilon 0.5 the noise hides that, and the row is the residual alone).
4. **Answer once, match for ever** (`replay_buffer.py`). Every answer goes into a replay buffer and is matched again. The
   result is the EMA of the set over the descent.

All answers are Poisson-sampled or full Gaussian sums, priced like any other; nothing else touches a record. Settings were
chosen on held-out training records of the benchmark sets, except that cells were once left out; see docs/flagship-search.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import torch
from torch import Tensor, nn

from limbeck.errors import BadSettings
from limbeck.methods.base import (
    Chosen,
    Logbook,
    Method,
    SyntheticSet,
    class_sizes,
    count_queries,
    expected_groups,
    given,
    group_rates,
)
from limbeck.methods.elixir.initial_set import bought_model, initial_queries, initial_set
from limbeck.methods.elixir.questions import Questions
from limbeck.methods.elixir.replay_buffer import Replay, ReplayBuffer
from limbeck.methods.elixir.set_gradient import SetGradient
from limbeck.methods.parts.matching import shared_out
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.methods.team import Alone, Team
from limbeck.nets import NetSpec, build
from limbeck.nets.training.descent import TrainingSchedule
from limbeck.nets.training.pool import Pool
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, FeatureResidual

MANY = 1000  # records per class, from which on answers of networks are worth their noise
LITTLE_NOISE = 3.0  # epsilon, from which on more answers or wider networks are worth their time; 1 and 10 were tried
MUCH_NOISE = 0.5  # epsilon, below which Fourier features cost more than they tell; 0.2 and 1 were tried
SLOWEST = 1e-4  # the step size that the descent ends with


@dataclass(frozen=True, kw_only=True)
class ElixirChoice(Chosen):
    """The settings of Elixir that may be left open, all of them set."""

    T: int
    first: float
    width: int
    mirror: bool
    waves: int


@dataclass(frozen=True, kw_only=True)
class Elixir(Method):
    """Settings left at none depend on the kind of data and on the budget (`chosen`).

    T          answers of networks
    first      share of the budget for the initial set
    L          mean sample per class of one answer
    sigma      noise std / clip, as if everything were one answer over all records
    networks, life, epochs
               of the pool; a network is renewed after `life` epochs and learns for `epochs` between two answers; life=0
               asks with random networks, each once
    news       ask for residuals against the set; false asks for features as they are (to compare)
    waves      random Fourier features of a residual, beside the residual itself; 0 where there is much noise
    replay     earlier answers matched with each new one; memory: size of the replay buffer
    eta        step size of Adam, falling; average: decay of the EMA of the set
    width      of the networks; colour is worth twice that of grey, and so is little noise
    angle, scale, shift
               of the affine change under which an answer looks at images
    mirror     whether every other answer looks at mirror images; colour images, unless their schema's augmentation lacks "flip"
    snap       pixels within this share of the range of a bound are moved onto it at the end
    """

    name: ClassVar[str] = "elixir"
    title: ClassVar[str] = "Networks that learn from the set ask about the records (our own)"
    paper: ClassVar[str] = "Limbeck, docs/flagship.md"
    needs: ClassVar[str] = (
        "8 minutes of one core for 28x28 images, 18 for CIFAR-10, about twice from epsilon 3; tables: seconds"
    )

    T: int | None = setting(None, least=0)
    first: float | None = setting(None, above=0, most=1)
    L: int = setting(1000, least=1)
    sigma: float | None = setting(None, above=0)
    networks: int = setting(20, least=1)
    life: int = setting(60, least=0)
    epochs: int = setting(2, least=1)
    news: bool = setting(True)
    waves: int | None = setting(None, least=0, most=10_000)
    replay: int = setting(7, least=0)
    memory: int = setting(300, least=1)
    eta: float = setting(0.02, above=0)
    average: float = setting(0.98, least=0, below=1)
    width: int | None = setting(None, least=1)
    angle: float = setting(0.2, least=0)
    scale: float = setting(0.15, least=0)
    shift: float = setting(0.12, least=0)
    mirror: bool | None = setting(None)
    snap: float = setting(0.05, least=0, most=0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.first == 1 and self.T:
            raise BadSettings(f"first=1 leaves nothing for T={self.T} answers; choose T=0 or a smaller share.")

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def chosen(self, schema: Schema, epsilon: float | None = None) -> ElixirChoice:
        """A table is best left as the initial set, and so are images of small classes, whose features drown in the noise:
        the whole budget goes there."""
        many = schema.records >= MANY * len(schema.classes)
        little_noise = epsilon is not None and epsilon >= LITTLE_NOISE
        much_noise = epsilon is not None and epsilon < MUCH_NOISE
        colour = schema.is_image and schema.shape[0] > 1
        usual = (1000 if little_noise and colour else 500) if schema.is_image and many else 0
        answers = given(self.T, usual)
        return ElixirChoice(
            T=answers,
            first=given(self.first, 0.25 if answers else 1.0),
            width=given(self.width, 32 if colour or (little_noise and schema.is_image) else 16),
            mirror=given(self.mirror, colour and "flip" in schema.augmentation),
            waves=given(self.waves, 0 if much_noise else 256),
        )

    def check(self, schema: Schema) -> None:
        super().check(schema)
        build(self._net(schema), schema.shape, len(schema.classes), seed=0)

    def _net(self, schema: Schema) -> NetSpec:
        return NetSpec(kind="convnet" if schema.is_image else "mlp", width=self.chosen(schema).width)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        chosen = self.chosen(schema)
        initial = initial_queries(noise_multiplier / math.sqrt(chosen.first))
        counts = count_queries(schema, noise_multiplier)
        if not chosen.T:
            return (*initial, *counts)
        rates = group_rates(schema, self.L)
        features = ClippedSum(
            label="features",
            map="feature_residual",
            clip=1.0,
            # As if all T answers together were one over all records: the smaller a sample, the less it costs.
            noise_multiplier=noise_multiplier * max(rates) * math.sqrt(chosen.T / (1 - chosen.first)),
            rate=rates,
            count=chosen.T,
        )
        return (*initial, features, *counts)

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        return self.run_shared(Alone(), schema, ask, logbook, device)

    def run_shared(self, team: Team, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        sizes = class_sizes(schema, ask)
        rows = None if schema.is_image else shared_out(self.per_class * len(schema.classes), sizes.tolist())
        labels = self.labels(schema, rows)
        made = initial_set(bought_model(schema, ask, sizes), labels, schema, self.rng("start")).to(device)
        if self.chosen(schema).T:
            expected = expected_groups(schema, self.L, sizes)[:, None].to(device)
            made = self._matched(nn.Parameter(made), labels.to(device), expected, schema, ask, logbook, team)
        if schema.is_image:
            made = snapped(made, self.snap)
        return SyntheticSet(made.cpu().numpy(), labels.numpy())

    def _matched(
        self,
        images: nn.Parameter,
        labels: Tensor,
        expected: Tensor,
        schema: Schema,
        ask: Ask,
        logbook: Logbook,
        team: Team,
    ) -> Tensor:
        """The EMA of the set while it descends towards the answers."""
        chosen, classes, device = self.chosen(schema), len(schema.classes), images.device
        ema, adam = images.detach().clone(), Adam([images], self.eta, betas=(0.9, 0.99))
        pool = Pool(self._net(schema), schema.shape, classes, self.networks, device)
        buffer = ReplayBuffer(self.memory, pool, classes, chosen.waves, device)
        questions = self.questions(schema)
        state = adam.state | pool.state | buffer.state | {"mean": ema}
        for step in logbook.steps(chosen.T, state, "features"):
            adam.eta = SLOWEST + self.eta * (1 + math.cos(math.pi * step / chosen.T)) / 2
            body = pool.body(self._learn(pool, schema, images.data, labels, step))
            newest = questions.new(step, pool.body_weights(body), images.data, labels)
            answer = ask("features", step, newest).tensor(device) / expected
            buffer.add(step, newest, body, answer)
            replays = buffer.draw(self.replay, step, self.rng("replay", step))
            for question, target in chain([(newest, answer)], self._replayed(replays, questions, pool)):
                work = SetGradient(question=question, target=target, images=images.data, labels=labels)
                adam.move((torch.cat(team.share(work, device)),))
                images.data.clamp_(-1, 1)
                ema.mul_(self.average).add_(images.data, alpha=1 - self.average)
        return ema

    def _learn(self, pool: Pool, schema: Schema, images: Tensor, labels: Tensor, step: int) -> int:
        """The index of the network whose turn it is, after it has learnt from the set as it stands."""
        index, seed = step % self.networks, self.seed_at("learning", step)
        if step < self.networks or pool.ages[index] >= self.life:
            pool.renew(index, self.seed_at("network", step))
            # The first networks start at ages of their own, so that the pool is never all young or all old.
            epochs = 0 if step >= self.networks else seed % (min(self.life, 4 * self.epochs) + 1)
        else:
            epochs = self.epochs
        if epochs:
            families = schema.augmentation if schema.is_image else ()
            schedule = TrainingSchedule(epochs=epochs, batch=64, lr=0.02, decay_at=1.0, families=families)
            pool.learn(index, images, labels, schedule, seed)
        return index

    def questions(self, schema: Schema) -> Questions:
        chosen = self.chosen(schema)
        return Questions(
            schema=schema,
            net=self._net(schema),
            residuals=self.news,
            fourier=chosen.waves,
            angle=self.angle,
            scale=self.scale,
            shift=self.shift,
            mirror=chosen.mirror,
            rng=self.rng,
        )

    def _replayed(
        self, replays: list[Replay], questions: Questions, pool: Pool
    ) -> Iterator[tuple[FeatureResidual, Tensor]]:
        for replay in replays:
            yield questions.again(replay, pool.body_weights(replay.body)), replay.target


def snapped(images: Tensor, share: float) -> Tensor:
    """Black where it is almost black, white where it is almost white.

    Real pictures often have pixels on the bounds; an EMA never does. Networks do not mind, but a tree that splits at a
    hair's breadth from the bound learns nothing about real ones.
    """
    return torch.where(images.abs() > 1 - 2 * share, images.sign(), images)
