"""Poisoned records: they blow up if anything but a booked question of the vault touches them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import DELTA

from limbeck.data.records import Records
from limbeck.errors import BudgetRefused, LimbeckError
from limbeck.methods import METHODS, method_named
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.model import read_model
from limbeck.release.reader import read_release
from limbeck.release.verification import verify
from limbeck.runs import ranks
from limbeck.vault.choices.chooser import Chooser
from limbeck.vault.clipped_sums import ClippedSums
from limbeck.vault.ensemble.ensemble import Ensemble
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.sharded.shard import digest_of, shard_of
from limbeck.vault.source import checked_records
from ranks_in_threads import Ranks
from working import asked, condense, make_plan

TEACHERS: dict[str, Any] = {
    "per_class": 2, "teachers": 6, "T": 2, "batch": 3, "teacher_batch": 4, "first_steps": 1, "first": 2, "second": 3,
    "hidden": 8, "width": 4, "latent": 3,
}  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "elixir": {"per_class": 2, "T": 3, "L": 5, "networks": 2, "memory": 2, "width": 4, "sigma": 2.0},
    "mosaic": {"rows": 6, "search": 0, "T": 2, "components": 6, "bins": 3, "sigma": 2.0},
    "aim": {"per_class": 2, "R": 3, "M": 5, "T": 2, "bins": 3, "sigma": 2.0},
    "mst": {"per_class": 2, "T": 2, "bins": 3, "sigma": 2.0},
    "privbayes": {"per_class": 2, "k": 1, "bins": 3, "sigma": 2.0},
    "ldpdc": {"per_class": 2, "L": 5, "sigma": 2.0},
    "ndpdc": {"per_class": 2, "L": 5, "I": 3, "width": 4, "sigma": 2.0},
    "dm": {"per_class": 2, "L": 5, "I": 3, "width": 4},
    "psg": {"per_class": 2, "R": 1, "T": 2, "K": 2, "J": 1, "B": 20, "width": 4, "sigma": 2.0},
    "psg-prior": {
        "per_class": 2,
        "R": 1,
        "T": 2,
        "K": 2,
        "J": 1,
        "B": 20,
        "width": 4,
        "generator_width": 2,
        "sigma": 2.0,
    },
    "dc": {"per_class": 2, "R": 1, "T": 2, "K": 1, "J": 1, "L": 5, "width": 4},
    "dsa": {"per_class": 2, "R": 1, "T": 2, "K": 1, "J": 1, "L": 5, "width": 4},
    "dpmerf": {"per_class": 2, "features": 20, "T": 2, "batch": 2, "sigma": 2.0},
    "dpmerf-ae": {
        "per_class": 2,
        "T_ae": 3,
        "B": 20,
        "width": 8,
        "features": 20,
        "T": 2,
        "batch": 2,
        "sigma": 2.0,
    },
    "dpcgan": {"per_class": 2, "T": 3, "B": 20, "batch": 3, "hidden": 4, "width": 2, "latent": 2, "sigma": 2.0},
    "dpgan": {
        "per_class": 2,
        "T": 3,
        "B": 20,
        "batch": 3,
        "hidden": 4,
        "width": 2,
        "latent": 2,
        "n_dis": 1,
        "sigma": 2.0,
    },
    "dphp": {"per_class": 2, "C": 2, "pairs": 5, "share": 0.5, "C_pair": 1, "T": 2, "batch": 2, "sigma": 2.0},
    "dpsinkhorn": {"per_class": 2, "T": 3, "L": 5, "width": 2, "latent": 2, "fit": 1, "turns": 2, "sigma": 2.0},
    "dpmix": {"per_class": 2, "L": 5, "sigma": 2.0},
    "dpsgd": {"T": 3, "B": 20, "width": 4, "topagg": "norm", "sigma": 2.0},
    "datalens": {**TEACHERS, "k": 20, "sigma": 60.0},
    "pategan": {**TEACHERS, "student_steps": 2, "sigma": 20.0},
    "gpate": {**TEACHERS, "kept": 4, "bins": 3, "sigma": 20.0},
    "gswgan": {
        "per_class": 2,
        "K": 6,
        "T": 2,
        "B": 3,
        "block": 3,
        "n_dis": 1,
        "M": 4,
        "T_w": 1,
        "width": 2,
        "critic_width": 2,
        "snapshots": 2,
        "sigma": 2.0,
    },
}
# The places that may look at a record: the answer to a booked question, a sum or a choice, the teachers that answer such
# questions (their parts and their lessons), and the check of what a reader gave. On several ranks also what compares and
# shares out the records.
ALLOWED = (
    ClippedSums._sample.__code__,
    ClippedSums._summed.__code__,
    checked_records.__code__,
    partition.__code__,
    Ensemble._reals.__code__,
    Chooser._counts.__code__,
    Chooser._worth.__code__,
    digest_of.__code__,
    shard_of.__code__,
)


class Poisoned(np.ndarray):
    """An array whose numbers may be looked at in the vault only. Lengths and shapes do not count as looking."""

    def __getitem__(self, key: Any) -> Any:
        require_vault()
        return np.asarray(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        require_vault()
        return super().__iter__()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        require_vault()
        return getattr(ufunc, method)(*(plain(value) for value in inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        require_vault()
        return function(*(plain(value) for value in args), **{key: plain(value) for key, value in options.items()})

    def _method(name: str) -> Any:
        def touch(self: Poisoned, *args: Any, **options: Any) -> Any:
            require_vault()
            return getattr(plain(self), name)(*args, **options)

        return touch

    min, max, mean, sum, tobytes, tolist, copy, astype, item, __repr__ = map(
        _method, ("min", "max", "mean", "sum", "tobytes", "tolist", "copy", "astype", "item", "__repr__")
    )


class Touched(AssertionError):
    pass


def plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Poisoned) else value


def require_vault() -> None:
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code in ALLOWED:
            return
        frame = frame.f_back  # type: ignore[assignment]
    raise Touched("a record was looked at outside of the vault")


@dataclass(eq=False)
class PoisonedSource:
    """Refuses to load unless the ledger holds an open booking for the data set."""

    schema: Schema
    ledger: Path
    loads: list[str] = field(default_factory=list)

    def load(self) -> Records:
        with Ledger.open(self.ledger) as ledger:
            account = ledger.account(self.schema.name)
        booked = [booking for booking in account.bookings if booking.state == "open"] if account else []
        assert booked, "records were read before anything was booked"
        self.loads.append(booked[-1].grant)
        random = np.random.default_rng(0)
        y = np.repeat(np.arange(3), 40).astype(np.int64)
        shape = (120, *self.schema.shape)
        return Records(random.random(shape, dtype=np.float32).view(Poisoned), y.view(Poisoned))


TABLES_ONLY = ("mosaic", "aim", "mst", "privbayes")


@pytest.fixture
def poisoned(unsized: Schema, tmp_path: Path, request: pytest.FixtureRequest) -> PoisonedSource:
    call = getattr(request.node, "callspec", None)
    is_table = call is not None and call.params.get("name") in TABLES_ONLY
    schema = dataclasses.replace(unsized, shape=(5,), augmentation=()) if is_table else unsized
    return PoisonedSource(schema, tmp_path / "ledger.sqlite")


def test_the_poison_works() -> None:
    array = np.ones(3).view(Poisoned)
    assert len(array) == 3 and array.shape == (3,)
    for touch in (
        lambda: array[0],
        lambda: array + 1,
        lambda: array.max(),
        lambda: np.mean(array),
        lambda: np.bincount(array),
        lambda: list(array),
        lambda: array.tobytes(),
        lambda: repr(array),
    ):
        with pytest.raises(Touched):
            touch()


def test_settings_are_here_for_every_method() -> None:
    assert set(SETTINGS) == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_planning_reads_and_books_nothing(name: str, poisoned: PoisonedSource) -> None:
    method = method_named(name, SETTINGS[name])
    plan = make_plan(poisoned.schema, method, None if method.private else float("inf"), DELTA)
    with Ledger.open(poisoned.ledger) as ledger:
        vault = LocalVault(poisoned, ledger)
        assert vault.describe() is poisoned.schema and plan.dataset == poisoned.schema.name
        assert not ledger.accounts()
    assert not poisoned.loads


@pytest.mark.parametrize("name", METHODS)
def test_a_whole_run_touches_records_only_to_answer_booked_questions(
    name: str, poisoned: PoisonedSource, tmp_path: Path
) -> None:
    method = method_named(name, SETTINGS[name])
    if not method.private:
        with Ledger.open(poisoned.ledger) as ledger:
            ledger.set_budget(poisoned.schema.name, float("inf"), DELTA)
    plan = make_plan(poisoned.schema, method, None if method.private else float("inf"), DELTA)
    request = asked(data="tiny", ledger=str(poisoned.ledger))
    outcome = condense(request, plan, poisoned, tmp_path / "out", Silent())
    assert len(poisoned.loads) == 1
    assert verify(outcome.release).private is method.private
    if method.makes == "model":
        assert len(read_model(outcome.release).schema.classes) == 3
    else:
        assert len(read_release(outcome.release).y) == 6
    with Ledger.open(poisoned.ledger) as ledger:
        assert ledger.drawn(poisoned.loads[0]) == plan.counts


def test_a_run_on_ranks_touches_records_only_to_share_them_out_and_to_answer(
    poisoned: PoisonedSource, tmp_path: Path
) -> None:
    """Each rank reads once, after the booking, and the release is that of any run."""
    plan = make_plan(poisoned.schema, method_named("elixir", SETTINGS["elixir"]), None, DELTA)
    others = [PoisonedSource(poisoned.schema, poisoned.ledger) for _ in range(3)]
    at = Ranks(3, lambda group: ranks.serve(group, lambda data: others[group.rank]))
    request = asked(data="tiny", ledger=str(poisoned.ledger))
    outcome = condense(request, plan, poisoned, tmp_path / "out", Silent(), group=at.group)
    at.end()
    assert [len(source.loads) for source in (poisoned, *others)] == [1, 0, 1, 1]
    assert verify(outcome.release).private and len(read_release(outcome.release).y) == 6
    with Ledger.open(poisoned.ledger) as ledger:
        assert ledger.drawn(poisoned.loads[0]) == plan.counts


def test_a_refused_budget_reads_nothing(poisoned: PoisonedSource, tmp_path: Path) -> None:
    with Ledger.open(poisoned.ledger) as ledger:
        ledger.set_budget(poisoned.schema.name, 0.1, DELTA)
    plan = make_plan(poisoned.schema, method_named("ldpdc", SETTINGS["ldpdc"]), None, DELTA)
    with pytest.raises(BudgetRefused):
        condense(asked(data="tiny", ledger=str(poisoned.ledger)), plan, poisoned, tmp_path / "out", Silent())
    assert not poisoned.loads and not (tmp_path / "out").exists()


def test_a_reader_that_fails_gives_the_booking_back(poisoned: PoisonedSource, tmp_path: Path) -> None:
    class Broken(PoisonedSource):
        def load(self) -> Records:
            raise LimbeckError("The disk is gone.")

    broken = Broken(poisoned.schema, poisoned.ledger)
    plan = make_plan(poisoned.schema, method_named("ldpdc", SETTINGS["ldpdc"]), None, DELTA)
    with pytest.raises(LimbeckError, match="disk"):
        condense(asked(data="tiny", ledger=str(poisoned.ledger)), plan, broken, tmp_path / "out", Silent())
    with Ledger.open(poisoned.ledger) as ledger:
        account = ledger.account(poisoned.schema.name)
        assert account is None or not [b for b in account.bookings if b.state != "void"]
