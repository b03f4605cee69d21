"""The wall. A method sees private records through these four calls and in no other way.

    describe()                       the public schema
    grant(plan)                      book the whole plan in the ledger; nothing has been read yet
    ask(grant, label, index, map)    one noised answer of the plan, stored before it is given; of an ensemble of
                                     teachers with a question in place of the map
    close(grant)                     end the grant; nothing can be asked from it any more

A vault is shaped like a transport: the local one holds tensors in this process; others may hold shards or be far away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.vault.ensemble.critics import Critic
from limbeck.vault.ensemble.discriminators import Discriminator
from limbeck.vault.ensemble.partition import check_ensemble
from limbeck.vault.ensemble.teachers import EnsembleSpec, Question, Teacher
from limbeck.vault.ensemble.votes import BeliefVote, BinVote, CriticGradient, LevelVote, SignVote, SketchVote
from limbeck.vault.maps import (
    FeatureResidual,
    Identity,
    Map,
    NetworkGradient,
    OneHot,
    RandomFeatures,
    RandomFourier,
    Residual,
    ResidualFourier,
    SecondMoment,
    TopGradient,
)

__all__ = [
    "Answer",
    "Ask",
    "BeliefVote",
    "BinVote",
    "Critic",
    "CriticGradient",
    "Discriminator",
    "EnsembleSpec",
    "FeatureResidual",
    "Grant",
    "Identity",
    "LevelVote",
    "Map",
    "NetworkGradient",
    "OneHot",
    "Question",
    "RandomFeatures",
    "RandomFourier",
    "Residual",
    "ResidualFourier",
    "SecondMoment",
    "SignVote",
    "SketchVote",
    "Teacher",
    "TopGradient",
    "Vault",
    "check_ensemble",
]


@dataclass(frozen=True)
class Grant:
    """The right to the answers of one booked plan."""

    id: str
    plan: Plan


@dataclass(frozen=True, eq=False)
class Answer:
    """A noised sum, (classes, numbers) or (numbers,). Immutable: use it as often as you like (rule 4)."""

    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def tensor(self, device: torch.device | str = "cpu") -> torch.Tensor:
        """A copy to compute with."""
        return torch.from_numpy(self.values.copy()).to(device)


class Vault(Protocol):
    def describe(self) -> Schema: ...

    def grant(self, plan: Plan) -> Grant: ...

    def ask(self, grant: Grant, label: str, index: int, mapping: Map | Question) -> Answer: ...

    def close(self, grant: Grant) -> None: ...


class Ask(Protocol):
    """What a method is handed in place of the vault: the answers of its own grant."""

    def __call__(self, label: str, index: int, mapping: Map | Question) -> Answer: ...
