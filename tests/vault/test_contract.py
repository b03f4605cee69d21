"""The contract on every vault that there is, and proof that it notices a vault which breaks it."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from choice_contract import ChoiceContract
from contract import DELTA, SCHEMA, Premises, Source, VaultContract
from fake import Books, FakeVault

from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Choice
from limbeck.vault.api import Answer, Grant, Randomness, Vault
from limbeck.vault.choices import SCORES
from limbeck.vault.ensemble.kinds import QUESTIONS, TEACHERS
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.maps import MAPS


class LocalPremises(Premises):
    kind: type[LocalVault] = LocalVault

    def __init__(self, folder: Path) -> None:
        self._ledger = Ledger.open(folder / "ledger.sqlite")
        self.set_budget(50.0)

    def vault(self, source: Source, randomness: Randomness | None = None) -> Vault:
        return self.kind(source, self._ledger, randomness)

    def set_budget(self, epsilon: float) -> None:
        self._ledger.set_budget(SCHEMA.name, epsilon, 0.01 if math.isinf(epsilon) else 100 * DELTA)

    def spent(self) -> float:
        account = self._ledger.account(SCHEMA.name)
        return 0.0 if account is None else account.spent_epsilon


class FakePremises(Premises):
    kind: type[FakeVault] = FakeVault

    def __init__(self, folder: Path) -> None:
        self._books = Books(budget=50.0)

    def vault(self, source: Source, randomness: Randomness | None = None) -> Vault:
        return self.kind(source, self._books, randomness)

    def set_budget(self, epsilon: float) -> None:
        self._books.budget = epsilon

    def spent(self) -> float:
        return self._books.spent


class TestLocalVault(VaultContract, ChoiceContract):
    @pytest.fixture
    def premises(self, tmp_path: Path) -> Premises:
        return LocalPremises(tmp_path)


class TestFakeVault(VaultContract, ChoiceContract):
    @pytest.fixture
    def premises(self, tmp_path: Path) -> Premises:
        return FakePremises(tmp_path)


def test_the_contract_is_all_of_the_protocol() -> None:
    """A runner gets by with what the protocol states, so both have at least that."""
    stated = {name for name in vars(Vault) if not name.startswith("_")}
    assert stated == {
        "randomness", "describe", "grant", "take_up", "state", "open_records", "ask", "keep", "forget", "drawn", "give_back",
        "close",
    }  # fmt: skip
    for kind in (LocalVault, FakeVault):
        for name in stated - {"randomness"}:
            wanted, has = inspect.signature(getattr(Vault, name)), inspect.signature(getattr(kind, name))
            assert [p.name for p in has.parameters.values()] == [p.name for p in wanted.parameters.values()], name


def test_the_closed_lists_are_what_they_say() -> None:
    for listed in (MAPS, TEACHERS, QUESTIONS, SCORES):
        assert listed and all(kind == member.kind for kind, member in listed.items())


# A vault that breaks the contract


def noise_taken_off(kind: type[Any]) -> type[Any]:
    """Answers with three quarters of the noise."""

    class Quiet(kind):  # type: ignore[misc, valid-type]
        def __init__(self, source: Source, books: Any, randomness: Randomness | None = None) -> None:
            super().__init__(source, books, _Scaled(randomness, 0.75))

    return Quiet


class _Scaled(Randomness):
    def __init__(self, given: Randomness | None, factor: float) -> None:
        super().__init__(None if given is None else given.insecure_seed)
        object.__setattr__(self, "factor", factor)

    def stream(self, label: str, index: int) -> Any:
        inner, factor = super().stream(label, index), self.factor  # type: ignore[attr-defined]

        class Scaled:
            integers = staticmethod(inner.integers)

            @staticmethod
            def gaussian(shape: tuple[int, ...]) -> np.ndarray:
                return factor * inner.gaussian(shape)

            @staticmethod
            def whole_gaussian(steps: float, shape: tuple[int, ...]) -> np.ndarray:
                return inner.whole_gaussian(factor * steps, shape)

        return Scaled()


def a_record_left_out(kind: type[Any]) -> type[Any]:
    class Short(kind):  # type: ignore[misc, valid-type]
        def open_records(self, grant: Grant) -> None:
            super().open_records(grant)
            self._records = type(self._records)(self._records.x[:-1], self._records.y[:-1])

    return Short


def clip_forgotten(kind: type[Any]) -> type[Any]:
    """Rows twice as long as they may be."""

    class Loud(kind):  # type: ignore[misc, valid-type]
        def ask(self, grant: Grant, label: str, index: int, mapping: Any) -> Answer:
            return Answer(2 * super().ask(grant, label, index, mapping).values)

    return Loud


def read_before_booking(kind: type[Any]) -> type[Any]:
    class Hasty(kind):  # type: ignore[misc, valid-type]
        def grant(self, plan: Plan, identity: str | None = None) -> Grant:
            self._records = self._source.load()
            return super().grant(plan, identity)

    return Hasty


def answer_drawn_again(kind: type[Any]) -> type[Any]:
    class Forgetful(kind):  # type: ignore[misc, valid-type]
        def ask(self, grant: Grant, label: str, index: int, mapping: Any) -> Answer:
            values = super().ask(grant, label, index, mapping).values
            return Answer(values + np.random.default_rng().normal(size=values.shape).astype(np.float32))

    return Forgetful


def given_back_when_answered(kind: type[Any]) -> type[Any]:
    class Generous(kind):  # type: ignore[misc, valid-type]
        def give_back(self, grant: Grant) -> bool:
            super().give_back(grant)
            return True

    return Generous


def scores_taken_twice(kind: type[Any]) -> type[Any]:
    """Chooses as if twice the epsilon had been paid."""

    class Sharp(kind):  # type: ignore[misc, valid-type]
        def ask(self, grant: Grant, label: str, index: int, mapping: Any) -> Answer:
            query = grant.plan.query(label)
            if not isinstance(query, Choice):
                return super().ask(grant, label, index, mapping)
            sharp = dataclasses.replace(query, noise_multiplier=query.noise_multiplier / 2)
            changed = tuple(sharp if each is query else each for each in grant.plan.queries)
            plan = dataclasses.replace(grant.plan, queries=changed)
            with mock.patch.object(type(grant.plan), "query", lambda _, asked: plan_query(plan, asked)):
                return super().ask(grant, label, index, mapping)

    return Sharp


def plan_query(plan: Plan, label: str) -> Any:
    return next((query for query in plan.queries if query.label == label), None)


FAULTS = (
    noise_taken_off, a_record_left_out, clip_forgotten, read_before_booking, answer_drawn_again, given_back_when_answered,
    scores_taken_twice,
)  # fmt: skip


def failures(premises: type[Premises], tmp_path: Path) -> Iterator[str]:
    """The tests of the contract that fail on these premises, one after the other."""
    for name, test in (vars(VaultContract) | vars(ChoiceContract)).items():
        if not name.startswith("test_"):
            continue
        marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
        for number, value in enumerate(marks[0].args[1] if marks else [None]):
            folder = tmp_path / f"{name}-{number}"
            folder.mkdir()
            named = {marks[0].args[0]: value} if marks else {}
            try:
                test(None, premises(folder), **named)
            except (Exception, pytest.fail.Exception):
                yield name


@pytest.mark.parametrize("premises", [LocalPremises, FakePremises])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_broken_vault_is_found(premises: Any, fault: Any, tmp_path: Path) -> None:
    class Broken(premises):  # type: ignore[misc, valid-type]
        kind = fault(premises.kind)

    assert next(failures(Broken, tmp_path), None)


def test_a_vault_that_keeps_it_is_not_accused(tmp_path: Path) -> None:
    assert list(failures(FakePremises, tmp_path)) == []
