"""Teachers: what an ensemble inside the vault is made of, and what it may be asked. The language; the work is in `ensemble.py`.

    Teacher        a kind of small network and how it learns: a public frozen value, from the closed list TEACHERS.
                     start(seeds) -> Weights               stacked weights, one row per seed; row i depends on seeds[i] alone
                     loss(weights, real, fake, random)     (teachers,): what each teacher lowers at a step, by its own Adam
                     score(weights, x, y)                  (teachers, images): what a generator wants raised
                     warm_up(pupils, reals)                before the first tick; nothing unless overridden
    Pupils         the teachers of one chunk while they learn: `weights`, and `move(loss)`, one step of Adam
    Batch          x (teachers or 1, m, *shape), y (teachers or 1, m), weight (teachers or 1, m): 0 where there is no record
    EnsembleSpec   how many teachers, how many records a step, how many steps a tick, which of them learn at a tick, a seed
    Question       Teacher + EnsembleSpec + the synthetic records of one tick, all public; `limbeck.vault.ensemble.votes` has the
                   kinds that a TeacherVote may name, `CriticGradient` there is the one of a TeacherGradient

A method asks `ask(label, index, question)` with index 0, 1, 2, ...: index i is tick i of the public clock. At tick i every
teacher of the scheduled block first learns for the same number of steps on its own records and `question.fakes`, then the
ensemble answers for `question.x`. Nobody learns because it was asked, and an answer that was stored before is given again without
anybody learning twice.

All networks are written over stacked weights (a leading teacher axis; see `limbeck.nets.kernels.stacked` for the layers), in
operations that never mix that axis. Then the gradient of the summed loss is every teacher's own gradient, second
derivatives included, and one record reaches one teacher only. `teachers_mix` tries that before the first answer.

To add a kind: subclass `Teacher` as a frozen keyword-only dataclass of public values with a `kind` that no teacher ever had,
put its network into `limbeck.nets`, and add it to TEACHERS in `limbeck.vault.ensemble.kinds`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.privacy.numbers import require_count, require_positive

Weights = dict[str, Tensor]


class Batch(NamedTuple):
    """Records for every teacher of a chunk, or one row of records for all of them (a leading axis of 1).

    weight is 1 for a record and 0 for a row that a teacher with an empty part cannot fill.
    """

    x: Tensor
    y: Tensor
    weight: Tensor


class Pupils(Protocol):
    """The teachers of one chunk while they learn."""

    @property
    def weights(self) -> Weights:
        """Stacked, ready for automatic differentiation."""
        ...

    def move(self, loss: Tensor) -> None:
        """One step of every teacher's own Adam down its own entry of `loss`, (teachers,)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """A kind of teacher. `shape` and `classes` are the schema's; eta, beta1, beta2 are Adam's."""

    kind: ClassVar[str] = ""
    # Names of weights that Adam leaves alone. `loss` may change these in place, such as the vectors of a spectral norm.
    fixed: ClassVar[tuple[str, ...]] = ()

    shape: tuple[int, ...]
    classes: int
    eta: float = 1e-3
    beta1: float = 0.5
    beta2: float = 0.999

    def __post_init__(self) -> None:
        require_positive("eta", self.eta)
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise BadInput(f"{name} must lie in [0, 1), got {name}={getattr(self, name)}.")

    def start(self, seeds: Sequence[int]) -> Weights:
        """First weights, stacked. Guarantee to keep: row i depends on seeds[i] alone."""
        raise NotImplementedError

    def loss(self, weights: Weights, real: Batch, fake: Batch, random: torch.Generator) -> Tensor:
        """(teachers,): entry i depends on row i of the weights and of the batches alone.

        `random` is public and the same for every chunk: draw from it what all teachers share, such as (1, m, 1, 1, 1).
        Places with weight 0 must not count.
        """
        raise NotImplementedError

    def score(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        """(teachers, images) for x (teachers or 1, images, *shape): entry i of a row depends on image i alone."""
        raise NotImplementedError

    def warm_up(self, pupils: Pupils, reals: Callable[[int], Batch]) -> None:
        """Learn before the first tick; reals(step) is a batch of each teacher's own records. Whatever else is made here, such
        as throw-away generators, must be stacked too, and is forgotten."""


def balanced(real: Batch, fake: Batch, classes: int) -> Tensor:
    """Weights of the fakes, (teachers, fakes): a class counts for as much as among the records of the teacher's batch.

    Without this a teacher with few records learns which labels it lacks, and pulls all their pictures towards grey.
    """
    reals = (F.one_hot(real.y, classes) * real.weight[:, :, None]).sum(1)
    label = F.one_hot(fake.y, classes) * fake.weight[:, :, None]
    share = reals / label.sum(1).clamp_min(1.0)
    return (share[:, None, :] * label).sum(2)


@dataclass(frozen=True, kw_only=True)
class EnsembleSpec:
    """How an ensemble is run; all of it is public.

    teachers  how many; a record belongs to one of them
    batch     records that a teacher sees at a step, drawn from its own part
    steps     steps at every tick; `first` of them at tick 0 (None: the same)
    block     how many teachers learn at a tick, in rotation (None: all)
    seed      of first weights and of which records of its part a teacher sees; noise and secret draws never come from it
    """

    teachers: int
    batch: int
    steps: int = 1
    first: int | None = None
    block: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("teachers", "batch", "steps"):
            require_count(name, getattr(self, name))
        if self.first is not None:
            require_count("first", self.first)
        if self.block is not None and not 1 <= self.block <= self.teachers:
            raise BadInput(f"block must lie in 1 ... {self.teachers} teachers, got block={self.block}.")

    def steps_at(self, tick: int) -> int:
        return self.first if tick == 0 and self.first is not None else self.steps

    def block_at(self, tick: int) -> tuple[int, ...]:
        """The teachers that learn at this tick: public, and the same whoever is asked."""
        size = self.block or self.teachers
        return tuple(sorted((tick * size + index) % self.teachers for index in range(size)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """What the ensemble is asked at one tick. Every field is public: made of settings, seeds and earlier answers.

    fakes, fake_labels  (n, *shape), (n,): what the teachers learn to tell from records. Step s of a tick takes its own `batch`
                        of them, s * batch on, and starts again at the front when they are used up
    x, y                (images, *shape), (images,): the synthetic records that they answer for
    """

    kind: ClassVar[str] = ""

    teacher: Teacher
    ensemble: EnsembleSpec
    fakes: Tensor
    fake_labels: Tensor
    x: Tensor
    y: Tensor

    def identity(self) -> dict[str, Any]:
        """What stays the same over all ticks of a run, as plain values."""
        return {
            "question": self.kind,
            "teacher": {"kind": self.teacher.kind, **dataclasses.asdict(self.teacher)},
            "ensemble": dataclasses.asdict(self.ensemble),
        }

    def parameters(self) -> dict[str, Any]:
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        others = {f.name for f in dataclasses.fields(self)} - set(tensors) - {"teacher", "ensemble"}
        return (
            self.identity()
            | {name: getattr(self, name) for name in sorted(others)}
            | {name: _fingerprint(value) for name, value in tensors.items()}
        )

    def digest(self) -> str:
        """A fingerprint: a resumed run must ask the same question to get its stored answer."""
        text = json.dumps({"kind": self.kind, **self.parameters()}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def _fingerprint(value: Tensor) -> str:
    plain = value.detach().cpu().contiguous()
    return hashlib.sha256(f"{plain.dtype} {tuple(plain.shape)}".encode() + plain.numpy().tobytes()).hexdigest()
