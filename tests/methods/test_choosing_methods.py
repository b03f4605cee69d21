"""AIM, MST and PrivBayes: what they ask, what they find, what they make of a table, and how they go on after a kill."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import assert_paid_once

import working as work
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.table import decode_rows
from limbeck.errors import BadSettings
from limbeck.methods import method_named
from limbeck.methods.aim import AIM, Course
from limbeck.methods.graphical.columns import ask_columns
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import Choice
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.reader import read_release
from limbeck.release.verification import verify
from limbeck.report.wording import noise_form
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer, Asked
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from people import COLUMNS, SCHEMA, source

METHODS: dict[str, dict[str, Any]] = {
    "aim": {"R": 5, "M": 12, "T": 10, "bins": 5, "size": 0.01},
    "mst": {"T": 30, "bins": 5},
    "privbayes": {"k": 2, "bins": 5},
}


class Plain:
    """A logbook that keeps nothing."""

    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str) -> Iterator[int]:
        return iter(range(total))


def made(name: str, sigma: float, tmp_path: Path, given: DataSource | None = None, **settings: Any) -> Any:
    """The method on answers of a vault: the rows, decoded, and their labels."""
    method = method_named(name, {**METHODS[name], "sigma": sigma, **settings}).resolved(SCHEMA)
    plan = work.make_plan(SCHEMA, method, None, 1e-5)
    with Ledger.open(tmp_path / f"{name}.sqlite") as ledger:
        vault = LocalVault(given or source(), ledger)
        grant = vault.grant(plan)

        def ask(label: str, index: int, mapping: Asked) -> Answer:
            return vault.ask(grant, label, index, mapping)

        found = method.run(SCHEMA, ask, Plain(), torch.device("cpu"))
        assert {label: vault.drawn(grant)[label] for label in plan.counts} == plan.counts  # nothing paid in vain
    return decode_rows(found.x, SCHEMA), found.y


def released(name: str, out: Path, ledger: Path, **settings: Any) -> Path:
    method = method_named(name, {**METHODS[name], "rows": 50, "sigma": 2.0, **settings}).resolved(SCHEMA)
    plan = work.make_plan(SCHEMA, method, None, 1e-5)
    asked = work.asked(data=None, ledger=str(ledger), insecure_seed=7)
    return work.condense(asked, plan, source(), out, Silent(), checkpoint_seconds=0.0).release


@pytest.mark.parametrize("name", METHODS)
def test_a_plan_lists_all_choices_and_answers_within_epsilon(name: str) -> None:
    plan = work.make_plan(SCHEMA, method_named(name, {}), 1.0, 1e-5)
    assert plan.price.epsilon <= 1.0 == pytest.approx(plan.price.epsilon, rel=2e-3)
    (choice,) = [query for query in plan.queries if isinstance(query, Choice)]
    assert choice.count >= len(COLUMNS) and choice.clip == 1.0
    assert price(plan.queries, 1e-5) == plan.price and plan.price.epsilon_exact is None
    assert sum(plan.shares) == pytest.approx(1.0)
    read_back = type(plan).from_dict(plan.to_dict())
    assert read_back.queries == plan.queries
    assert method_named(name, plan.settings).queries(SCHEMA, 1.0)[-1].count == plan.queries[-1].count


@pytest.mark.parametrize("name", METHODS)
def test_with_hardly_any_noise_rows_are_like_the_records(name: str, tmp_path: Path) -> None:
    rows, labels = made(name, 0.3, tmp_path, bins=8)
    real, truth = decode_rows(source().load().x, SCHEMA), source().load().y
    assert (
        len(labels) == SCHEMA.records
        and np.abs(np.bincount(labels, minlength=3) - np.bincount(truth, minlength=3)).max() < 20
    )
    assert np.mean(rows["age"]) == pytest.approx(np.mean(real["age"]), abs=2.0)
    gaps = [np.mean([value is None for value in table["gain"]]) for table in (rows, real)]
    assert gaps[0] == pytest.approx(gaps[1], abs=0.03)
    # Two columns that go together do so in the rows.
    together = np.mean([(age > 50) == (grade == "high") for age, grade in zip(rows["age"], rows["grade"], strict=True)])
    assert together > 0.8  # independent: 0.5


@pytest.mark.parametrize("name", METHODS)
def test_noise_that_drowns_everything_still_makes_a_table(name: str, tmp_path: Path) -> None:
    rows, labels = made(name, 1e4, tmp_path, rows=40)
    assert len(labels) == 40 and all(17 <= age <= 90 for age in rows["age"])
    assert set(rows["city"]) <= {"Rome", "Oslo", "missing", None}


@pytest.mark.parametrize("name", METHODS)
def test_so_many_of_each_class(name: str, tmp_path: Path) -> None:
    assert np.bincount(made(name, 0.5, tmp_path, per_class=12)[1]).tolist() == [12, 12, 12]


@pytest.mark.parametrize("name", METHODS)
def test_records_of_any_content_and_none_at_all_make_no_difference_to_what_is_asked(name: str, tmp_path: Path) -> None:
    x, y = source().load().x.copy(), source().load().y
    x[:300] = np.nan
    x[300:600] = 1e30
    for held in (Records(x, y), Records(x[:0], y[:0])):
        (tmp_path / str(len(held.y))).mkdir()
        _, labels = made(
            name, 2.0, tmp_path / str(len(held.y)), DataSource(SCHEMA, "odd", lambda _, it=held: it), rows=30
        )
        assert len(labels) == 30


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("owner", "attribute", "call"), [(Ledger, "store", 4), (Ledger, "store", 7), (RunLog, "_save", 2), (Ledger, "finish", 1)]
)  # fmt: skip
def test_killed_and_resumed_ends_in_the_same_rows(
    name: str, owner: type, attribute: str, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_release(released(name, tmp_path / "whole", tmp_path / "a.sqlite"))
    original, calls = getattr(owner, attribute), [0]

    def breaking(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, attribute, breaking)
        with pytest.raises(KeyboardInterrupt):
            released(name, tmp_path / "out", tmp_path / "b.sqlite")
    out = work.resume(tmp_path / "out", Silent(), source=source()).release
    resumed = read_release(out)
    assert np.array_equal(resumed.x, whole.x) and np.array_equal(resumed.y, whole.y)
    assert_paid_once(tmp_path / "b.sqlite")
    certificate = verify(out)
    assert "choices by the exponential mechanism" in noise_form(certificate)
    assert [query.kind for query in certificate.queries].count("choice") == 1
    assert certificate.drawn == {query.label: query.count for query in certificate.queries}


@pytest.mark.parametrize("name", METHODS)
def test_what_makes_no_sense_is_refused(name: str) -> None:
    image = Schema(name="m", shape=(1, 8, 8), classes=("a", "b"), records=100, low=0, high=255)
    with pytest.raises(BadSettings, match="images"):
        method_named(name, {}).check(image)
    with pytest.raises(BadSettings, match="not both"):
        method_named(name, {"rows": 5, "per_class": 5}).check(SCHEMA)


def test_nothing_is_left_for_marginals() -> None:
    with pytest.raises(BadSettings, match="columns"):
        AIM(columns=0.5)
    with pytest.raises(BadSettings, match="M=3"):
        AIM(R=5, M=3)


def test_rounds_take_ever_more_answers_and_all_of_them() -> None:
    def ask(label: str, index: int, mapping: Any) -> Answer:
        return Answer(np.full(mapping.width, 50.0, dtype=np.float32), 1.0)

    method = AIM(R=6, M=40, T=2, bins=4)
    columns = ask_columns(SCHEMA, ask, 4, 0.1)
    course = Course(method, columns, 40, 1e6)  # so much noise that no round tells anything
    taken = []
    for step in range(6):
        takes = course.takes(6 - step)
        taken.append(takes)
        places = course.small_enough([(0,), (1, 2), (0, 1, 2, 3, 4)], takes)[0]
        counts = columns.measured(places, [ask("marginals", 0, columns.cells([places]))] * takes)
        course.take(dataclasses.replace(counts, noise=counts.noise * 1e6), takes)
    assert taken == [1, 4, 16, 17, 1, 1] and sum(taken) == 40


def test_a_model_that_would_grow_too_large_is_no_candidate() -> None:
    columns = ask_columns(
        SCHEMA, lambda label, index, mapping: Answer(np.full(mapping.width, 9.0, dtype=np.float32), 1.0), 9, 0.1
    )
    course = Course(AIM(R=2, M=10, T=1, size=0.00001), columns, 10, 1.0)
    wide = (3, 4)
    assert course.small_enough([(0,), wide], 1) == [(0,)]
    assert Course(AIM(R=2, M=10, T=1, size=100.0), columns, 10, 1.0).small_enough([(0,), wide], 10) == [(0,), wide]
