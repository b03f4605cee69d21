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
from typing import ClassVar

import torch
from torch import Tensor, nn

from limbeck.errors import BadSettings
from limbeck.methods.base import (
    Logbook,
    Method,
    SyntheticSet,
    TrainedGenerator,
    class_sizes,
    count_queries,
    expected_groups,
    given,
    group_rates,
)
from limbeck.methods.elixir.answers import KeptAnswers, Remembering, forms_of, rounded, size_of
from limbeck.methods.elixir.choice import ElixirChoice
from limbeck.methods.elixir.generating import KINDS, check_generator, fit_of, usual_generator
from limbeck.methods.elixir.initial_set import GAUSSIAN, bought_model, generator_of, initial_queries, initial_set
from limbeck.methods.elixir.questions import Questions
from limbeck.methods.elixir.rematching import Rematching
from limbeck.methods.elixir.replay_buffer import Replay, ReplayBuffer
from limbeck.methods.elixir.set_descent import BETAS, move_on
from limbeck.methods.elixir.snapping import snapped
from limbeck.methods.elixir.working_size import at_size, size_of_generator, usual_size
from limbeck.methods.parts.matching import shared_out
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.methods.team import Alone, Team
from limbeck.nets import NetSpec, build
from limbeck.nets.architectures.convnet import USUAL_DEPTH, usual_depth
from limbeck.nets.features.pooled import enlarged
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
    size       of the longer side of pictures as Elixir looks at them; larger ones are averaged down in the vault, and the set
               is set up again at the end. 0: as they are. Networks are deeper from 64 on
    answers    whether the release keeps the last `memory` answers of networks, for more sets and for other generators; images
    generator, generator_kind
               steps, 0 for none, and network of a generator that is matched to them when the set is done, and released; images.
               gaussian: the first set's model, where that is the result
    """

    name: ClassVar[str] = "elixir"
    growing: ClassVar[str] = "mean"
    title: ClassVar[str] = "Networks that learn from the set ask about the records (our own)"
    paper: ClassVar[str] = "Limbeck, docs/flagship.md"
    needs: ClassVar[str] = (
        "10 minutes of one core for 28x28 images, 21 for CIFAR-10, about twice from epsilon 3; tables: seconds"
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
    size: int | None = setting(None, least=0, most=4096)
    answers: bool | None = setting(None)
    generator: int | None = setting(None, least=0, most=1_000_000)
    generator_kind: str | None = setting(None, choices=KINDS)

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
        kept = given(self.answers, schema.is_image and answers > 0)
        size = given(self.size, usual_size(schema))
        steps, network = usual_generator(schema, answers, kept, self.generator, size)
        return ElixirChoice(
            T=answers,
            first=given(self.first, 0.25 if answers else 1.0),
            width=given(self.width, 32 if colour or (little_noise and schema.is_image) else 16),
            mirror=given(self.mirror, colour and "flip" in schema.augmentation),
            waves=given(self.waves, 0 if much_noise else 256),
            size=size,
            answers=kept,
            generator=steps,
            generator_kind=given(self.generator_kind, network),
        )

    def check(self, schema: Schema) -> None:
        super().check(schema)
        schema = at_size(schema, self.size)
        build(self._net(schema), schema.shape, len(schema.classes), seed=0)
        if self.answers and not (self.chosen(schema).T and schema.is_image):
            raise BadSettings(f"answers={self.answers} needs answers of networks about images; here are none.")
        check_generator(schema, self.chosen(schema).T, self.generator, self.generator_kind)

    def _net(self, schema: Schema) -> NetSpec:
        """Of pictures at the working size. Without one a plan is from before there were sizes, or for pictures as they are."""
        depth = usual_depth(schema.shape) if self.size else USUAL_DEPTH
        return NetSpec(kind="convnet" if schema.is_image else "mlp", width=self.chosen(schema).width, depth=depth)

    def pool_of_one(self, schema: Schema, device: torch.device) -> Pool:
        """For weights that were kept: it knows the network that they are of."""
        work = at_size(schema, self.size)
        return Pool(self._net(work), work.shape, len(schema.classes), 1, device)

    def kept_bytes(self, schema: Schema) -> int:
        """How large the answers are that a release keeps, but for a header."""
        if not self.answers:
            return 0
        pool, chosen = self.pool_of_one(schema, torch.device("cpu")), self.chosen(schema)
        return size_of(forms_of(at_size(schema, self.size), pool, chosen.waves), min(chosen.T, self.memory))

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
        labels, work, remembering, kept = self.labels(schema, rows), at_size(schema, self.size), Remembering(ask), None
        model = bought_model(work, remembering, sizes, None if work is schema else work.shape[1:])
        made = initial_set(model, labels, work, self.rng("start")).to(device)
        generator = (
            generator_of(model, work, size_of_generator(schema, self.size)) if self.generator_kind == GAUSSIAN else None
        )
        if self.chosen(schema).T:
            expected = expected_groups(schema, self.L, sizes)[:, None].to(device)
            images = nn.Parameter(made)
            made, buffer, generator = self._matched(images, labels.to(device), expected, schema, ask, logbook, team)
            if self.answers:
                kept = KeptAnswers(remembering.given, sizes, buffer.kept(self.chosen(schema).T)).tensors()
        if schema.is_image:
            made = snapped(enlarged(made, schema.shape[1:]).clamp(-1, 1), self.snap)
        return SyntheticSet(made.cpu().numpy(), labels.numpy(), generator=generator, answers=kept)

    def _matched(
        self,
        images: nn.Parameter,
        labels: Tensor,
        expected: Tensor,
        schema: Schema,
        ask: Ask,
        logbook: Logbook,
        team: Team,
    ) -> tuple[Tensor, ReplayBuffer, TrainedGenerator | None]:
        """The EMA of the set, which has the working size, while it descends towards the answers; the last of these; and what was
        matched to them."""
        chosen, classes, device = self.chosen(schema), len(schema.classes), images.device
        about = schema, self.size, self.rng, self.seed_at("generator"), device
        fit, again = fit_of(self.generator or 0, self.generator_kind, *about), None
        questions, schema = self.questions(schema), at_size(schema, self.size)
        ema, adam = images.detach().clone(), Adam([images], self.eta, BETAS)
        pool = Pool(self._net(schema), schema.shape, classes, self.networks, device)
        buffer = ReplayBuffer(self.memory, pool, classes, chosen.waves, device)
        state = adam.state | pool.state | buffer.state | {"mean": ema} | ({} if fit is None else fit.state)
        for step in logbook.steps(chosen.T + (0 if fit is None else fit.blocks), state, "features"):
            if step >= chosen.T:
                again = again or Rematching(buffer.kept(chosen.T), questions, pool, device)
                assert fit is not None
                fit.move_on(step - chosen.T, again)
                continue
            adam.eta = SLOWEST + self.eta * (1 + math.cos(math.pi * step / chosen.T)) / 2
            body = pool.body(self._learn(pool, schema, images.data, labels, step))
            # A run that was begun before answers were kept has no word on it, and goes on with the bits that it began with.
            body = rounded(body) if self.answers else body
            newest = questions.new(step, pool.body_weights(body), images.data, labels)
            answer = ask("features", step, newest).tensor(device) / expected
            buffer.add(step, newest, body, answer)
            replays = buffer.draw(self.replay, step, self.rng("replay", step))
            asked = [(newest, answer), *self._replayed(replays, questions, pool)]
            move_on(adam, ema, self.average, labels, asked, team)
        return ema, buffer, None if fit is None else fit.made()

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
        chosen, work = self.chosen(schema), at_size(schema, self.size)
        return Questions(
            schema=work,
            net=self._net(work),
            residuals=self.news,
            fourier=chosen.waves,
            angle=self.angle,
            scale=self.scale,
            shift=self.shift,
            mirror=chosen.mirror,
            rng=self.rng,
            size=None if work is schema else work.shape[1:],
        )

    def _replayed(
        self, replays: list[Replay], questions: Questions, pool: Pool
    ) -> Iterator[tuple[FeatureResidual, Tensor]]:
        for replay in replays:
            yield questions.again(replay, pool.body_weights(replay.body)), replay.target
