"""The ensemble: all teachers as stacked weights, trained inside the vault on one public clock.

Weights and Adam's moments of all teachers are tensors with a leading teacher axis. Work goes chunk by chunk over that axis:
a chunk is a slice of them, learns all steps of a tick while it is in the cache, and votes. Memory for computation is that of
one chunk, however many teachers there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.adam import adam

from limbeck.data.records import Records
from limbeck.privacy.schema import Schema
from limbeck.vault.encoding import encode
from limbeck.vault.ensemble.partition import Partition
from limbeck.vault.ensemble.teachers import Batch, EnsembleSpec, Question, Teacher, Weights

# Weights and moments of a chunk should fit a last-level cache together with its maps.
CHUNK_NUMBERS = 2_500_000
MOST_IN_CHUNK = 64
ADAM_EPS = 1e-8


class Ensemble:
    """Teachers over a partition of private records. Lives inside the vault; nothing of it leaves but answers."""

    def __init__(
        self, teacher: Teacher, spec: EnsembleSpec, schema: Schema, device: torch.device, chunk: int | None = None
    ) -> None:
        self.teacher, self.spec, self.schema, self.device = teacher, spec, schema, device
        self.clock = 0
        self.moves = torch.zeros(spec.teachers, dtype=torch.int64)
        self.warmed = torch.zeros(spec.teachers, dtype=torch.bool)
        one = teacher.start([_seed(spec, "start", 0)])
        size = sum(value.numel() for value in one.values())
        self.chunk = chunk or max(1, min(CHUNK_NUMBERS // max(size, 1), MOST_IN_CHUNK))
        self.weights = {name: value.new_empty((spec.teachers, *value.shape[1:])) for name, value in one.items()}
        for part in self.each_chunk():
            rows = range(spec.teachers)[part]
            for name, value in teacher.start([_seed(spec, "start", row) for row in rows]).items():
                self.weights[name][part] = value
        self.weights = {name: value.to(device) for name, value in self.weights.items()}
        moving = {name: value for name, value in self.weights.items() if name not in teacher.fixed}
        self.first = {name: torch.zeros_like(value) for name, value in moving.items()}
        self.second = {name: torch.zeros_like(value) for name, value in moving.items()}
        self._records: Records | None = None
        self._partition: Partition | None = None

    def assign_records(self, records: Records, partition: Partition) -> None:
        self._records, self._partition = records, partition

    @property
    def state(self) -> dict[str, Tensor]:
        """All that a checkpoint has to hold, besides the clock."""
        groups = {"weight": self.weights, "first": self.first, "second": self.second}
        tensors = {f"{group}/{name}": value for group, named in groups.items() for name, value in named.items()}
        return tensors | {"moves": self.moves, "warmed": self.warmed}

    # Learning

    def warm_up(self, pause: Callable[[], None]) -> None:
        """Before the first tick, for all teachers; `pause` is called after each chunk, and may save what is there."""
        for part in self.each_chunk():
            if not bool(self.warmed[part].all()):
                pupils = ChunkOfPupils(self, part)
                self.teacher.warm_up(pupils, self._warm_reals(pupils.rows))
                self.warmed[part] = True
                pause()

    def learn(self, question: Question) -> None:
        """One tick: every teacher of the scheduled block does the same number of steps.

        Guarantee: who learns, how often and on which ranks of its part is a function of the public spec and clock. A teacher's
        weights and moments depend on its own part and on synthetic records alone.
        """
        tick, spec = self.clock, self.spec
        for part in self._slices(spec.block_at(tick)):
            pupils = ChunkOfPupils(self, part)
            for step in range(spec.steps_at(tick)):
                fake = _fakes(question, step, spec.batch, self.device)
                random = torch.Generator().manual_seed(_seed(spec, "step", tick, step))
                real = self._reals(pupils.rows, random)
                pupils.move(self.teacher.loss(pupils.weights, real, fake, random))
        self.clock = tick + 1

    def _slices(self, rows: tuple[int, ...]) -> Iterator[slice]:
        """Neighbouring rows, as many as a chunk holds; rows of a slice have learned equally often."""
        start = 0
        for end in range(1, len(rows) + 1):
            ends = end == len(rows) or rows[end] != rows[end - 1] + 1 or end - start == self.chunk
            if ends or self.moves[rows[end]] != self.moves[rows[start]]:
                yield slice(rows[start], rows[end - 1] + 1)
                start = end

    def _reals(self, rows: NDArray[np.int64], random: torch.Generator) -> Batch:
        """A batch of each teacher's own records: one from each of `batch` equal strata of its part, turned by a random shift."""
        assert self._records is not None and self._partition is not None
        m = self.spec.batch
        drawn = torch.rand(m + 1, generator=random, dtype=torch.float64).numpy()
        indices = self._partition.indices(rows, ((np.arange(m) + drawn[:m]) / m + drawn[m]) % 1.0)
        there = indices >= 0
        if len(self._records):
            taken = np.where(there, indices, 0).ravel()
            x, y = encode(self._records.x[taken], self.schema, self.device), self._records.y[taken]
        else:
            x, y = torch.zeros(indices.size, *self.schema.shape, device=self.device), np.zeros(indices.size, np.int64)
        weight = torch.from_numpy(there).to(self.device, torch.float32)
        # An empty part gives zeros instead of whichever record stands first.
        x = x.view(*indices.shape, *self.schema.shape) * weight.view(*indices.shape, *[1] * len(self.schema.shape))
        labels = torch.from_numpy(y.reshape(indices.shape) * there).to(self.device)
        return Batch(x, labels, weight)

    def _warm_reals(self, rows: NDArray[np.int64]) -> Callable[[int], Batch]:
        return lambda step: self._reals(rows, torch.Generator().manual_seed(_seed(self.spec, "warm", step)))

    # Answering

    def scores_and_gradients(self, part: slice | Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (teachers, images), and their gradients (teachers, images, *shape), of the teachers of `part`.

        x is (1, images, *shape) for all of them, or (teachers, images, *shape).
        """
        weights = {name: value[part] for name, value in self.weights.items()}
        count = next(iter(weights.values())).shape[0]
        with torch.enable_grad():
            images = x.expand(count, *x.shape[1:]).detach().clone().requires_grad_(True)
            scores = self.teacher.score(weights, images, y.expand(count, y.shape[1]))
            (gradients,) = torch.autograd.grad(scores.sum(), images)
        return scores.detach(), gradients

    def each_chunk(self) -> Iterator[slice]:
        for start in range(0, self.spec.teachers, self.chunk):
            yield slice(start, min(start + self.chunk, self.spec.teachers))


class ChunkOfPupils:
    """The teachers of one slice while they learn, in place."""

    def __init__(self, ensemble: Ensemble, part: slice) -> None:
        self._ensemble, self._part = ensemble, part
        self.rows = np.arange(part.start, part.stop)
        fixed = ensemble.teacher.fixed
        self._weights = {
            name: value[part].detach().requires_grad_(name not in fixed) for name, value in ensemble.weights.items()
        }

    @property
    def weights(self) -> Weights:
        return self._weights

    def move(self, loss: Tensor) -> None:
        """Guarantee: the gradient of the sum is each teacher's own; moments are each teacher's own."""
        ensemble, part = self._ensemble, self._part
        names = list(ensemble.first)
        parameters = [self._weights[name] for name in names]
        # Where a loss is not finite, that teacher's weights will not be either, and its votes count as 0 (rule 8); no other's.
        gradients = torch.autograd.grad(loss.sum(), parameters)
        teacher = ensemble.teacher
        with torch.no_grad():
            adam(
                [value.detach() for value in parameters],
                # The fused kernel goes through memory as it lies; a transposed gradient would move the wrong numbers.
                [gradient.contiguous() for gradient in gradients],
                [ensemble.first[name][part] for name in names],
                [ensemble.second[name][part] for name in names],
                [],
                [torch.tensor(float(ensemble.moves[part.start])) for _ in names],
                fused=True,
                amsgrad=False,
                beta1=teacher.beta1,
                beta2=teacher.beta2,
                lr=teacher.eta,
                weight_decay=0.0,
                eps=ADAM_EPS,
                maximize=False,
            )
        ensemble.moves[part] += 1


def _fakes(question: Question, step: int, batch: int, device: torch.device) -> Batch:
    indices = torch.arange(step * batch, (step + 1) * batch) % len(question.fakes)
    x, y = question.fakes[indices].to(device), question.fake_labels[indices].to(device)
    return Batch(x[None], y[None], torch.ones(1, batch, device=device))


def _seed(spec: EnsembleSpec, *point: int | str) -> int:
    digest = hashlib.sha256(repr((spec.seed, *point)).encode()).digest()
    return int.from_bytes(digest[:7], "big")


def teachers_mix(teacher: Teacher) -> bool:
    """Whether changing one teacher's records, or one that has gone wild, changes another's step or score by a single bit;
    tried with this machine's kernels on public random records (rules 7 and 12). Who stands where, and how many, is public."""
    random = torch.Generator().manual_seed(11)
    start = teacher.start([1, 2, 3])
    wild = {name: value.clone() for name, value in start.items()}
    for value in wild.values():
        value[1] = torch.nan

    def tried(x: Tensor, first: Weights) -> list[Tensor]:
        weights = {name: value.clone().requires_grad_(name not in teacher.fixed) for name, value in first.items()}
        y = torch.tensor([[0, teacher.classes - 1]])
        real = Batch(x, y.expand(3, 2), torch.ones(3, 2))
        fake = Batch(fakes, y, torch.ones(1, 2))
        loss = teacher.loss(weights, real, fake, torch.Generator().manual_seed(5))
        moving = [value for value in weights.values() if value.requires_grad]
        gradients = torch.autograd.grad(loss.sum(), moving)
        images = x.clone().requires_grad_(True)
        scores = teacher.score(weights, images, y.expand(3, 2))
        pulled = torch.autograd.grad(scores.sum(), images)
        return [loss.detach(), *gradients, scores.detach(), *pulled, *(value.detach() for value in weights.values())]

    x = torch.rand((3, 2, *teacher.shape), generator=random) * 2 - 1
    fakes = torch.rand((1, 2, *teacher.shape), generator=random) * 2 - 1
    changed = x.clone()
    changed[1] = -changed[1] * 0.5
    expected = tried(x, start)
    return any(
        not torch.equal(before[[0, 2]], after[[0, 2]])
        for others in (tried(changed, start), tried(x, wild))
        for before, after in zip(expected, others, strict=True)
    )
