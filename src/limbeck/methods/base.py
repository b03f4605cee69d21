"""What every method is: settings as a frozen value, `queries` (what it will ask) and `run` (what it makes of the answers).

A method imports the schema, the queries, the networks and `limbeck.vault.api`, nothing else; a test enforces it. It cannot
reach a record, so it cannot make a privacy mistake, only a useless set.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.settings import check_settings, setting
from limbeck.methods.team import Team
from limbeck.nets import NetSpec
from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, OneHot

# Relative to the noise of the method's own queries. Ten times as much still gives class sizes of thousands to a few per
# cent and costs a twentieth of the budget.
COUNT_NOISE = 10.0
MOST_PER_CLASS = 100_000
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class TrainedGenerator:
    """A generator as a value, and its weights (and buffers) by name. It is made of answers, so sampling it is free.

    Of a table it may be a model in place of a network; then the spec says so.
    """

    spec: GeneratorSpec | TableSpec | GraphSpec
    weights: dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class SyntheticSet:
    """x: (records, *shape) in the schema's encoded range [-1, 1] (or near it); y: class indices.

    snapshots: x during the run, each after so many answers, for the curve of accuracy against epsilon.
    generator: what made the set, where a method has one; it is released beside the set, for more records.
    course: by name, a value for every answer, made of answers and of the set alone; drawn in the report.
    answers: those that the set was matched to, with their questions, by the names of the method's own format; None: not kept.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    snapshots: NDArray[np.float32] | None = None
    snapshots_after: tuple[int, ...] = ()
    generator: TrainedGenerator | None = None
    course: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, Tensor] | None = None


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A classifier as the result: the network as a value, and its weights by the names of its parameters."""

    net: NetSpec
    weights: dict[str, Tensor]

    def fingerprint(self) -> str:
        """Of network and weights: how a later run states which model it started from."""
        digest = hashlib.sha256(repr(self.net).encode())
        for name, value in sorted(self.weights.items()):
            digest.update(f"{name} {tuple(value.shape)}".encode() + value.cpu().numpy().astype("<f4").tobytes())
        return digest.hexdigest()


Result = SyntheticSet | TrainedModel


class Logbook(Protocol):
    """Keeps a long loop resumable and shows how far it is."""

    def steps(
        self, total: int, state: dict[str, Tensor], answers: str, ends: Callable[[int], int] | None = None
    ) -> Iterator[int]:
        """0, 1, ... total - 1, or from the last checkpoint on, with the tensors of `state` restored in place.

        Step i of the loop uses answer i of the query `answers`, which a checkpoint past i makes needless; "" if none ever is.
        ends: where steps are taken in blocks, where the block of a step ends; only the first one of each is given.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The open settings of a method with a value for each: fields of the same names as the method's, and no `None`.

    `Method.chosen` fills them in. For a method that is resolved they are its settings as they stand, so a run that is read
    back from a plan chooses nothing.
    """


def given(value: Value | None, usual: Value) -> Value:
    """What the user chose, else the usual."""
    return usual if value is None else value


@dataclass(frozen=True, kw_only=True)
class Method:
    """Base of all methods: the fields that every one has."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    needs: ClassVar[str] = ""
    private: ClassVar[bool] = True
    makes: ClassVar[str] = "set"  # or "model": then `run` returns a TrainedModel
    # The tensor of its checkpoint that is the set so far: pictures, as many of each class, class by class; made of answers alone.
    growing: ClassVar[str] = ""
    sized_by_rows: ClassVar[bool] = False  # whether it has a setting `rows`: of the set, over all classes

    per_class: int = setting(50, least=1, most=MOST_PER_CLASS)
    seed: int = setting(0, least=0, most=2**31 - 1)

    def __post_init__(self) -> None:
        """Check every setting against its declaration; a method adds what relates settings to each other."""
        check_settings(self)

    @property
    def fixed_noise(self) -> float | None:
        """The noise multiplier, if the user fixed it; None lets epsilon decide."""
        return None

    def chosen(self, schema: Schema, epsilon: float | None = None) -> Chosen:
        """The settings that may be left open, with the method's own choice for each that was."""
        return Chosen()

    def resolved(self, schema: Schema, epsilon: float | None = None) -> Self:
        """Itself with every open setting filled in, for this kind of data and this budget; a plan states these."""
        return dataclasses.replace(self, **dataclasses.asdict(self.chosen(schema, epsilon)))

    def check(self, schema: Schema) -> None:
        """Refuse what makes no sense for this data set, in one sentence, before anything is planned."""
        require_label(self.name, schema)
        require_no_constraints(self.name, schema)
        if self.per_class * len(schema.classes) > schema.records:
            raise BadSettings(
                f"per_class={self.per_class} with {len(schema.classes)} classes is a set of "
                f"{self.per_class * len(schema.classes)} records, more than the {schema.records} of '{schema.name}' itself. "
                f"Choose --per-class {max(schema.records // len(schema.classes), 1)} or less."
            )

    def kept_bytes(self, schema: Schema) -> int:
        """How much room the answers take that a release keeps, for more sets; 0 where none are kept."""
        return 0

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        raise NotImplementedError

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> Result:
        raise NotImplementedError

    def run_shared(self, team: Team, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> Result:
        """Like `run`, with the work on the set shared out, where the method has any that is worth it."""
        return self.run(schema, ask, logbook, device)

    def run_from(self, start: TrainedModel, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> Result:
        """Like `run`, from a model that was released before."""
        raise BadSettings(f"Method '{self.name}' makes its result from nothing; it takes no model to start from.")

    def labels(self, schema: Schema, rows: Sequence[int] | None = None) -> Tensor:
        """Class indices of the set: `per_class` of each, or as many as `rows` says."""
        counts = torch.tensor(rows if rows is not None else [self.per_class] * len(schema.classes))
        return torch.arange(len(schema.classes)).repeat_interleave(counts)

    def rng(self, *point: int | str) -> torch.Generator:
        """Public random numbers for one point of the algorithm, so that a resumed run draws what it would have drawn."""
        return torch.Generator().manual_seed(self.seed_at(*point))

    def seed_at(self, *point: int | str) -> int:
        digest = hashlib.sha256(repr((self.seed, *point)).encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


def require_label(method: str, schema: Schema) -> None:
    """For methods that make a set of each class."""
    if not schema.has_label:
        raise BadSettings(
            f"Method '{method}' makes records of each class, and '{schema.name}' has no label. Choose --method mosaic, or name "
            "the label and its classes in the schema.",
            "limbeck methods",
        )


def require_no_constraints(method: str, schema: Schema) -> None:
    """For methods that would break them."""
    if schema.constraints:
        raise BadSettings(
            f"Method '{method}' cannot keep the constraints that the schema of '{schema.name}' declares. Choose --method "
            "mosaic, or take them out.",
            "limbeck methods",
        )


def group_rates(schema: Schema, group: int) -> tuple[float, ...]:
    """Sampling rates that draw `group` records of each class on average, from public sizes only."""
    if schema.class_sizes is not None:
        return tuple(min(1.0, group / size) for size in schema.class_sizes)
    return (min(1.0, group * len(schema.classes) / schema.records),)


def count_queries(schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
    """Buy the class sizes where they are not public (rule 6)."""
    if schema.class_sizes is not None:
        return ()
    return (
        ClippedSum(
            label="counts", map="one_hot", clip=1.0, noise_multiplier=COUNT_NOISE * noise_multiplier, by_class=False
        ),
    )


def class_sizes(schema: Schema, ask: Ask) -> Tensor:
    """The size of each class, public or bought."""
    if schema.class_sizes is not None:
        return torch.tensor(schema.class_sizes, dtype=torch.float32)
    counts = ask("counts", 0, OneHot(classes=len(schema.classes))).tensor()
    # The noise may push a small class to zero or below; a tenth of the mean size is a public floor.
    return counts.clamp_min(0.1 * schema.records / len(schema.classes))


def expected_groups(schema: Schema, group: int, sizes: Tensor) -> Tensor:
    """How many records of each class a sample holds on average."""
    return torch.tensor(group_rates(schema, group)) * sizes


def unflattened(flat: Tensor, like: dict[str, Tensor]) -> dict[str, Tensor]:
    """One vector as the named weights that it is made of."""
    parts = torch.split(flat, [value.numel() for value in like.values()])
    return {name: part.view(value.shape) for (name, value), part in zip(like.items(), parts, strict=True)}
