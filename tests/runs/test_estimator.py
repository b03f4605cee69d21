"""The Python way in: scikit-learn's manners, the same ledger and the same walls as the command line."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from limbeck import Condenser, Ledger, LocalVault, Schema, make_plan, verify
from limbeck.cli import runs
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, BudgetRefused, DataUnreadable, RunConflict, WallBreach
from limbeck.experiments import demo
from limbeck.methods import default_method, method_named
from limbeck.runs.in_memory import ArraySource
from limbeck.vault.api import Identity

SCHEMA = Schema(name="own", shape=(4,), classes=("a", "b"), records=200, low=0, high=1, augmentation=())
X = np.random.default_rng(0).uniform(0, 1, (200, 4)).astype(np.float32)
Y = np.arange(200) % 2
SMALL: dict[str, Any] = {"method": "ldpdc", "epsilon": None, "per_class": 3, "settings": {"L": 10, "sigma": 2.0}}


def test_fit_gives_a_set_and_its_certificate(tmp_path: Path) -> None:
    condenser = Condenser(**SMALL)
    assert condenser.fit(X, Y, schema=SCHEMA, out=tmp_path / "out") is condenser
    assert condenser.X_.shape == (6, 4) and condenser.X_.dtype == np.float32
    assert condenser.y_.tolist() == [0, 0, 0, 1, 1, 1] and condenser.classes_.tolist() == ["a", "b"]
    assert condenser.certificate_.epsilon == condenser.plan_.price.epsilon
    assert verify(tmp_path / "out") == condenser.certificate_


def test_class_names_and_lists_are_labels_and_records_too() -> None:
    condenser = Condenser(**SMALL, insecure_seed=1).fit(X.tolist(), [SCHEMA.classes[y] for y in Y], schema=SCHEMA)
    other = Schema(name="other", shape=(4,), classes=("a", "b"), records=200, low=0, high=1, augmentation=())
    again = Condenser(**SMALL, insecure_seed=1).fit(X, Y, schema=other)
    np.testing.assert_array_equal(condenser.X_, again.X_)


def test_init_only_stores_its_parameters() -> None:
    given = {"method": "nonsense", "epsilon": -1, "delta": "x", "per_class": object(), "settings": 3}
    given |= {"ledger": 4, "device": None, "insecure_seed": "seed", "rows": "many", "schema": 5, "progress": 6}
    condenser = Condenser(**given)
    assert vars(condenser) == given == condenser.get_params()
    assert list(inspect.signature(Condenser).parameters) == list(condenser.get_params())


def test_params_can_be_set_and_cloned() -> None:
    condenser = Condenser(**SMALL)
    assert condenser.set_params(epsilon=2.0, per_class=7) is condenser
    copy = clone(condenser)
    assert copy is not condenser and copy.get_params() == condenser.get_params()
    assert not hasattr(clone(Condenser(**SMALL).fit(X, Y, schema=SCHEMA)), "X_")
    with pytest.raises(BadInput, match="no parameter 'budget'"):
        condenser.set_params(budget=1)


def test_what_is_public_is_said_and_never_read_off_the_records() -> None:
    with pytest.raises(BadInput, match="schema"):
        Condenser(**SMALL).fit(X, Y)


def test_fit_books_its_price_once_and_no_more_than_the_budget() -> None:
    condenser = Condenser(**SMALL).fit(X, Y, schema=SCHEMA)
    with Ledger.open() as ledger:
        account = ledger.account("own")
    assert account is not None
    assert account.spent_epsilon == account.epsilon == condenser.certificate_.epsilon
    before = condenser.X_
    with pytest.raises(BudgetRefused):
        condenser.fit(X, Y, schema=SCHEMA)
    assert condenser.X_ is before


def test_the_ledger_can_be_named(tmp_path: Path) -> None:
    Condenser(**SMALL, ledger=tmp_path / "mine.sqlite").fit(X, Y, schema=SCHEMA)
    with Ledger.open(tmp_path / "mine.sqlite") as mine, Ledger.open() as default:
        assert len(mine.accounts()) == 1 and default.accounts() == []


def test_plan_reads_nothing_and_books_nothing() -> None:
    assert Condenser(**SMALL).plan(SCHEMA).counts == {"groups": 3, "counts": 1}
    with Ledger.open() as ledger:
        assert ledger.accounts() == []


def test_bad_records_cost_nothing(tmp_path: Path) -> None:
    for x, y in ((X[:, :3], Y), (X, Y[:-1]), (X, Y + 1), (X[:0], Y[:0])):
        with pytest.raises(Exception, match=r"shape|labels|no record"):
            Condenser(**SMALL).fit(x, y, schema=SCHEMA, out=tmp_path / "out")
        assert not (tmp_path / "out").exists()
    with Ledger.open() as ledger:
        assert ledger.accounts() == []


def test_an_interrupted_fit_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, stored = Ledger.store, [0]

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 3:
            raise KeyboardInterrupt
        return store(*arguments, **named)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, "store", interrupted)
        Condenser(**SMALL, insecure_seed=1).fit(X, Y, schema=SCHEMA, out=tmp_path / "out")
    with pytest.raises(RunConflict, match="another plan"):
        Condenser(**{**SMALL, "per_class": 4}, insecure_seed=1).fit(X, Y, schema=SCHEMA, out=tmp_path / "out")
    resumed = Condenser(**SMALL, insecure_seed=1).fit(X, Y, schema=SCHEMA, out=tmp_path / "out")
    whole = Condenser(**SMALL, insecure_seed=1, ledger=tmp_path / "other.sqlite").fit(X, Y, schema=SCHEMA)
    np.testing.assert_array_equal(resumed.X_, whole.X_)
    with Ledger.open() as ledger:
        assert [booking.state for account in ledger.accounts() for booking in account.bookings] == ["finished"]


def test_plan_grant_ask_close() -> None:
    """The explicit path: every answer is paid for before it is computed, and none is given afterwards."""
    method = method_named("ldpdc", {"per_class": 2, "L": 10, "sigma": 2.0})
    plan = make_plan(SCHEMA, method, epsilon=None, delta=1e-5)
    with Ledger.open() as ledger:
        ledger.set_budget("own", plan.price.epsilon, plan.price.delta)
        vault = LocalVault(ArraySource(SCHEMA, X, Y), ledger)
        grant = vault.grant(plan)
        answer = vault.ask(grant, "groups", 0, Identity(shift=1.0, scale=0.5))
        assert answer.values.shape == (2, 4)
        again = vault.ask(grant, "groups", 0, Identity(shift=1.0, scale=0.5))
        np.testing.assert_array_equal(answer.values, again.values)
        with pytest.raises(WallBreach):
            vault.ask(grant, "groups", 2, Identity(shift=1.0, scale=0.5))
        vault.close(grant)
        with pytest.raises((WallBreach, RunConflict)):
            vault.ask(grant, "groups", 1, Identity(shift=1.0, scale=0.5))
        account = ledger.account("own")
        assert account is not None and account.remaining_epsilon == 0.0


def test_the_default_method_is_that_of_the_commands_and_of_the_demonstration() -> None:
    """All of them leave it to the schema."""
    defaults = [inspect.signature(call).parameters["method"].default for call in (Condenser, runs.plan, runs.condense)]
    image = Schema(name="scans", shape=(1, 8, 8), classes=("a", "b"), records=100, low=0, high=255)
    assert defaults == [None, None, None] and default_method(image) == demo.METHOD


# --- persons ---

PERSONS = dataclasses.replace(SCHEMA, unit="patient", units=20)
IDS = np.arange(200) % 20


def test_persons_are_given_exactly_where_the_schema_has_them(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"one person \(patient\), so fit needs units=ids"):
        Condenser(**SMALL).fit(X, Y, schema=PERSONS, out=tmp_path / "out")
    with pytest.raises(BadInput, match="was given units, but the unit of 'own' is one record"):
        Condenser(**SMALL).fit(X, Y, schema=SCHEMA, units=IDS, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with Ledger.open() as ledger:
        assert ledger.accounts() == []


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        IDS.tolist(),
        tuple(IDS),
        IDS.astype(str),
        IDS.astype(float),
        [f" {each}" for each in IDS],
        IDS.astype(object),
    ],
)
def test_ids_in_memory(ids: Any) -> None:
    records = ArraySource(PERSONS, X, Y, ids).load()
    assert records.units is not None and np.array_equal(records.units, unit_codes(IDS, "X"))


def test_ids_of_several_kinds_and_missing_ones() -> None:
    ids = [1, "1", 1.0, None, float("nan"), "", "p", b"p", *range(192)]
    found = ArraySource(PERSONS, X, Y, ids).load().units
    assert found is not None and len(set(found[:3])) == len(set(found[3:6])) == len(set(found[6:8])) == 1
    assert len(set(found)) == 194
    assert ArraySource(SCHEMA, X, Y).load().units is None


@pytest.mark.parametrize(
    ("ids", "message"),
    [(IDS[:-1], "200 records but 199 ids"), (IDS[:, None], "one id per record"), ("Zq7Secret", "one id per record")],
)
def test_ids_of_another_form(ids: Any, message: str) -> None:
    with pytest.raises(DataUnreadable, match=message) as caught:
        ArraySource(PERSONS, X, Y, ids).load()
    assert "Secret" not in caught.value.message


def test_a_plan_for_persons_needs_their_delta() -> None:
    assert Condenser(**SMALL, delta=0.04).plan(PERSONS).price.delta == 0.04
    with pytest.raises(BadInput, match="N = 20 persons"):
        Condenser(**SMALL, delta=0.05).plan(PERSONS)
