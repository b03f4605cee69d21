"""The wall: the contract that every vault keeps, and the only way from private records to a method.

A runner needs these calls and no other. One plan goes through them in this order:

    describe()                       the public schema
    grant(plan, identity)            book the whole plan; nothing has been read yet
    open_records(grant)              read the records of a booked grant, so that a bad file is found before the first answer
    ask(grant, label, index, map)    one noised answer of the plan, stored before it is given; of an ensemble of teachers with a
                                     question in place of the map, of a choice with the candidates' scores
    keep(grant), forget(grant, ...)  around a method's checkpoint: save what a resumed run needs, drop what it does not
    drawn(grant)                     how many answers were given, for the certificate
    close(grant)                     end the grant; nothing can be asked from it any more

After an interruption: `state` and `take_up` in place of `grant`. If nothing was answered: `give_back`.

A vault is shaped like a transport. The local one holds tensors in this process; others may be another process, shards or other
owners. All of them pass the tests in tests/vault/contract.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.vault.choices import MarginalErrors, Scores
from limbeck.vault.ensemble.critics import Critic
from limbeck.vault.ensemble.discriminators import Discriminator
from limbeck.vault.ensemble.feature_discriminators import FeatureTeacher
from limbeck.vault.ensemble.partition import check_ensemble
from limbeck.vault.ensemble.teachers import EnsembleSpec, Question, Teacher
from limbeck.vault.ensemble.votes import BeliefVote, BinVote, CriticGradient, LevelVote, SignVote, SketchVote
from limbeck.vault.ledger.sums import State
from limbeck.vault.maps import (
    Cells,
    CodeFourier,
    Cut,
    FeatureResidual,
    Hermite,
    Identity,
    LabelCells,
    Labelled,
    Map,
    NetworkGradient,
    OneHot,
    RandomFeatures,
    RandomFourier,
    ReconstructionGradient,
    Residual,
    ResidualFourier,
    ScoreGradient,
    SecondMoment,
    TopGradient,
    Transport,
)
from limbeck.vault.noise import Randomness

__all__ = [
    "Answer",
    "Ask",
    "Asked",
    "BeliefVote",
    "BinVote",
    "Cells",
    "CodeFourier",
    "Critic",
    "CriticGradient",
    "Cut",
    "Discriminator",
    "EnsembleSpec",
    "FeatureResidual",
    "FeatureTeacher",
    "Grant",
    "Hermite",
    "Identity",
    "LabelCells",
    "Labelled",
    "LevelVote",
    "Map",
    "MarginalErrors",
    "NetworkGradient",
    "OneHot",
    "Question",
    "RandomFeatures",
    "RandomFourier",
    "Randomness",
    "ReconstructionGradient",
    "Residual",
    "ResidualFourier",
    "ScoreGradient",
    "Scores",
    "SecondMoment",
    "SignVote",
    "SketchVote",
    "State",
    "Teacher",
    "TopGradient",
    "Transport",
    "Vault",
    "check_ensemble",
]

Asked = Map | Question | Scores  # what stands beside a query when it is asked: public values, from the closed lists


@dataclass(frozen=True)
class Grant:
    """The right to the answers of one booked plan."""

    id: str
    plan: Plan


@dataclass(frozen=True, eq=False)
class Answer:
    """A noised sum, (classes, numbers) or (numbers,); of a choice (1,), the place of a candidate. Immutable: use it as often as
    you like (rule 4).

    noise_std: of the noise on each number, which the plan states; 0 if there is none.
    """

    values: NDArray[np.float32]
    noise_std: float = 0.0

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def tensor(self, device: torch.device | str = "cpu") -> torch.Tensor:
        """A copy to compute with."""
        return torch.from_numpy(self.values.copy()).to(device)


class Vault(Protocol):
    """Private records behind a wall. Each call keeps its `Guarantee:` in every implementation."""

    @property
    def randomness(self) -> Randomness:
        """Where noise and samples come from; whether a release of it may be shared."""
        ...

    def describe(self) -> Schema:
        """The public schema. Guarantee: reads no record."""
        ...

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        """Book the whole plan, under an identity that a run wrote down before, so that a crash in between pays once.

        Guarantee: reads no record. What is booked is the price of the queries' own events; a plan that states less is refused.
        """
        ...

    def take_up(self, identity: str, plan: Plan, booked: bool = False) -> Grant:
        """The grant of an interrupted run, booked now if the crash came before that. `booked`: the run knows that it was.

        Guarantee: the same identity is paid once. One that was booked elsewhere is refused, not booked again.
        """
        ...

    def state(self, identity: str) -> State | None:
        """open, finished or void; None for an identity that was never booked here."""
        ...

    def open_records(self, grant: Grant) -> None:
        """Read the records of a booked grant.

        Guarantee: nothing is read unless this very plan is booked. If reading fails before the first answer, the booking is
        given back.
        """
        ...

    def ask(self, grant: Grant, label: str, index: int, mapping: Asked) -> Answer:
        """One answer of the plan: the stored one if there is one, else a new one.

        Guarantee: at most `count` different answers of a query ever leave the vault. Each is noised once and stored before it
        is given. Asking again for the same index gives the same answer and costs nothing.
        """
        ...

    def keep(self, grant: Grant) -> None:
        """Save what the vault itself needs to go on from here, such as its teachers. Nothing of it leaves the vault."""
        ...

    def forget(self, grant: Grant, label: str, before: int) -> None:
        """Drop the stored answers below `before`. Guarantee: they still count, and are never drawn again."""
        ...

    def drawn(self, grant: Grant) -> Mapping[str, int]:
        """How many answers of each query were given, forgotten ones included."""
        ...

    def give_back(self, grant: Grant) -> bool:
        """Give the booking back if not one answer was ever stored for it; whether that is so.

        Guarantee: what is answered stays spent. After a booking was given back nothing is read or answered for it.
        """
        ...

    def close(self, grant: Grant) -> None:
        """End the grant. It stays spent, and nothing can be asked from it any more. May be repeated."""
        ...


class Ask(Protocol):
    """What a method is handed in place of the vault: the answers of its own grant."""

    def __call__(self, label: str, index: int, mapping: Asked) -> Answer: ...
