"""Small sets: students that learn as the real models do, a search that only betters a set, rows that are rows of the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from test_mosaic import SCHEMA, Plain, released, run, source

import working as work
from clinic import CONSTRAINTS, DECLARED, visits
from limbeck.data.table import decode_rows, encode_rows
from limbeck.errors import BadSettings
from limbeck.methods import method_named
from limbeck.methods.base import SyntheticSet
from limbeck.methods.mosaic.axes import fine_axes
from limbeck.methods.mosaic.condensed import Large, Small, herded, shared_out, steps_for
from limbeck.methods.mosaic.judge import Rows, area, seen_values
from limbeck.methods.mosaic.keeping import hold
from limbeck.methods.mosaic.mixture import Mixture
from limbeck.methods.mosaic.model import TableModel
from limbeck.methods.mosaic.students import boosted, logistic
from limbeck.privacy.schema import NO_CLASSES, Column, Schema
from limbeck.progress import Silent
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer
from limbeck.vault.maps.bound import Bound

TABLE = Schema(
    name="t", shape=(5,), classes=("a", "b", "c"), records=99, low=-1.0, high=1.0, label="l", augmentation=(),
    columns=(Column(name="n", low=0, high=11, integer=True), Column(name="k", categories=("p", "q", "r", "s"))),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table that a small set stands for is small itself, and its teacher has few trees."""
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.LARGE", 300)
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.TREES", 40)
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.STARTS", 3)


def large(classes: int, count: int = 3000) -> Large:
    """A class goes by both columns."""
    axes, rng = fine_axes(TABLE), np.random.default_rng(0)
    cells = np.stack([rng.integers(0, 12, count), rng.integers(0, 4, count)], axis=1)
    y = (cells[:, 0] + 3 * cells[:, 1] + rng.normal(0, 2, count) > 10).astype(np.int64)
    if classes == 3:
        y += cells[:, 0] > 9
    x = np.concatenate([axis.encoded(cells[:, place], rng) for place, axis in enumerate(axes)], axis=1)
    mixture = Mixture((12, 4), torch.ones(3, 16), 2, torch.Generator())
    return Large.of(TableModel(tuple(axes), mixture, None, TABLE), Rows(x, cells, np.minimum(y, classes - 1)), classes)


def made(schema: Schema = TABLE, **settings: Any) -> SyntheticSet:
    """The method on noised counts of a few hundred records."""
    x = torch.from_numpy(large(3, 300).rows.x)
    y, random = torch.arange(300) % len(schema.classes), np.random.default_rng(1)

    def ask(label: str, index: int, mapping: Any) -> Answer:
        total = mapping.clipped_sum(x, y, y, len(schema.classes), Bound(float("inf"))).numpy()
        return Answer((total + 0.05 * random.standard_normal(total.shape)).astype(np.float32), 0.05)

    chosen = {"T": 3, "components": 6, **settings}
    return method_named("mosaic", chosen).run(schema, ask, Plain(), torch.device("cpu"))


def plainly_boosted(values: np.ndarray, y: np.ndarray, judged: np.ndarray, rounds: int) -> np.ndarray:
    """The same as `boosted`, row by row."""

    def grown(mine: np.ndarray, theirs: np.ndarray, depth: int) -> None:
        slope, curve = slopes[mine].sum(), curves[mine].sum()
        best, split = slope**2 / (curve + 1) + 1e-6, None
        for column in range(values.shape[1]):
            for edge in np.unique(values[:, column])[1:]:
                left = mine & (values[:, column] < edge)
                right = mine & ~left
                if depth < 6 and min(curves[left].sum(), curves[right].sum()) >= 1:
                    gain = sum(slopes[part].sum() ** 2 / (curves[part].sum() + 1) for part in (left, right))
                    if gain > best + 1e-9:
                        best, split = gain, (column, edge)
        if split is None:
            own[mine] -= 0.3 * slope / (curve + 1)
            odds[theirs] -= 0.3 * slope / (curve + 1)
            return
        here, there = values[:, split[0]] < split[1], judged[:, split[0]] < split[1]
        grown(mine & here, theirs & there, depth + 1)
        grown(mine & ~here, theirs & ~there, depth + 1)

    own = np.full(len(y), np.log(y.mean() / (1 - y.mean())))
    odds = np.full(len(judged), own[0])
    for _ in range(rounds):
        chance = 1 / (1 + np.exp(-own))
        slopes, curves = chance - y, chance * (1 - chance)
        grown(np.ones(len(y), bool), np.ones(len(judged), bool), 0)
    return odds


def some_rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with gaps between them, so that it shows where in a gap a tree is cut."""
    rng = np.random.default_rng(seed)
    values = (rng.integers(0, 40, (count, 3)) ** 2).astype(np.float32)
    return values, (values[:, 0] + rng.normal(0, 300, count) > 500).astype(np.float64)


def test_trees_are_those_of_a_plain_search_row_by_row() -> None:
    (values, y), (judged, _) = some_rows(60, 1), some_rows(50, 2)
    y = 0.8 * y + 0.2 * np.random.default_rng(0).random(60)  # no two splits gain the same
    found = boosted(values, y, np.ascontiguousarray(judged.T), 4)
    assert found == pytest.approx(plainly_boosted(values, y, judged, 4), abs=1e-4)


def test_trees_are_those_of_xgboost() -> None:
    xgboost = pytest.importorskip("xgboost")
    (values, y), (judged, _) = some_rows(100, 3), some_rows(400, 4)
    theirs = xgboost.XGBClassifier(n_jobs=1).fit(values, y).predict(judged, output_margin=True)
    found = boosted(values, y, np.ascontiguousarray(judged.T), 100)
    assert np.corrcoef(found, theirs)[0, 1] > 0.99


def test_a_column_without_a_second_value_is_not_cut() -> None:
    values, y = np.ones((8, 2), dtype=np.float32), np.repeat([0.0, 1.0], 4)
    assert boosted(values, y, np.ones((2, 5), dtype=np.float32), 10) == pytest.approx(np.zeros(5))


def test_trees_see_numbers_places_of_categories_and_gaps() -> None:
    columns = (Column(name="n", low=0, high=10, missing=True), Column(name="k", categories=("p", "q"), missing=True))
    schema = dataclasses.replace(TABLE, columns=columns)
    x = encode_rows({"n": [5, None, 10], "k": ["q", "p", None]}, schema)
    assert seen_values(x, fine_axes(schema)).tolist() == [[0.0, 1.0], [np.inf, 0.0], [1.0, np.inf]]


@pytest.mark.parametrize("rows", [12, 80])
def test_logistic_regression_is_scikit_learns(rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 20))
    x[:, 3] = 5.0  # a column that says nothing
    y = (x[:, 0] + rng.standard_normal(rows) > 0).astype(np.float64)
    weights, constant = logistic(x, y)
    scaler = StandardScaler().fit(x)
    theirs = LogisticRegression(max_iter=1000, tol=1e-8).fit(scaler.transform(x), y)
    assert x @ weights + constant == pytest.approx(theirs.decision_function(scaler.transform(x)), abs=0.01)


def test_the_area_is_that_under_the_curve() -> None:
    rng = np.random.default_rng(0)
    odds, y = rng.integers(0, 9, 200).astype(float), (rng.random(200) < 0.3).astype(float)
    assert area(odds, y) == pytest.approx(roc_auc_score(y, odds))
    assert area(odds, np.zeros(200)) == 0.5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(1, 40))
def test_labels_are_shared_out_by_shares_and_none_is_forgotten(shares: list[float], rows: int) -> None:
    weights = np.array(shares) + 1e-9
    counts = np.bincount(shared_out(weights, rows), minlength=len(shares))
    assert counts.sum() == rows and (counts.min() >= 1 or rows < len(shares))
    assert (np.abs(counts - rows * weights / weights.sum()) <= len(shares) + 1).all()


def test_herded_rows_have_the_shares_of_the_table() -> None:
    cells = large(2).rows.cells
    chosen, rng = herded(cells, 48), np.random.default_rng(0)
    assert len(set(chosen.tolist())) == 48

    def off(places: np.ndarray) -> float:
        pair, all_pairs = (np.bincount(part[:, 0] * 4 + part[:, 1], minlength=48) for part in (cells[places], cells))
        return float(np.abs(pair / len(places) - all_pairs / len(cells)).sum())

    assert off(chosen) < 0.5 * min(off(rng.integers(0, 3000, 48)) for _ in range(20))


@pytest.mark.parametrize(("classes", "fixed"), [(2, False), (3, False), (3, True)])
def test_without_heat_no_step_makes_a_set_worse_and_values_stay_those_of_the_table(
    classes: int, fixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.HEAT", 0.0)
    table, labels = large(classes), np.repeat(np.arange(classes), 8)
    small = Small(len(labels), 5, 25, labels if fixed else None)
    judge, worth = table.judge(), []
    for step in range(25):
        small.step(table, step, np.random.default_rng(step))
        worth.append(judge.worth(*small._copied()).total)
    assert worth == sorted(worth) and worth[-1] > worth[0]
    known = {row.tobytes() for row in table.rows.x[:, 1:]}
    assert {row.tobytes() for row in small.x.numpy()[:, 1:]} <= known
    assert set(small.x[:, 0].tolist()) <= set(table.rows.x[:, 0].tolist())
    assert not fixed or np.bincount(small.y).tolist() == [8] * classes


def test_changes_may_lose_a_little_first_and_nothing_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.HEAT", 0.05)
    table, small, worth = large(2), Small(20, 5, 60), []
    judge = table.judge()
    for step in range(60):
        small.step(table, step, np.random.default_rng(step))
        worth.append(judge.worth(*small._copied()).total)
    losses = -np.minimum(np.diff(worth), 0)
    assert losses[:20].max() > 0.01 and losses[-3:].max() < 0.02 and worth[-1] > worth[0] - 0.02


def test_a_set_goes_on_from_its_state_alone() -> None:
    table, whole, first, second = large(2), *(Small(20, 5, 20) for _ in range(3))
    for step in range(20):
        whole.step(table, step, np.random.default_rng(step))
        (first if step < 8 else second).step(table, step, np.random.default_rng(step))
        if step == 7:
            for name, value in second.state.items():
                value.copy_(first.state[name])
    assert torch.equal(second.x, whole.x) and torch.equal(second.y, whole.y)


def test_one_class_alone_is_matched() -> None:
    table, small = large(1), Small(30, 5, 1)
    assert steps_for(4000, 30, table.axes, 1) == 1
    small.step(table, 0, np.random.default_rng(0))
    assert np.bincount(table.axes[1].cut().of(small.x)) / 30 == pytest.approx([0.25] * 4, abs=0.05)


def test_larger_searches_take_fewer_steps() -> None:
    axes = fine_axes(TABLE)
    assert steps_for(4000, 100, axes, 2) == 4000
    assert 1 <= steps_for(4000, 100_000, axes, 2) < steps_for(4000, 10_000, axes, 2) < 4000
    assert steps_for(4000, 10_000, axes, 9) == pytest.approx(steps_for(4000, 10_000, axes, 2) / 9, abs=1)


@pytest.mark.parametrize(
    ("settings", "search"),
    [({"rows": 100}, 4000), ({"per_class": 500}, 4000), ({"rows": 1001}, 0), ({}, 0), ({"rows": 9, "search": 0}, 0)],
)
def test_small_sets_are_searched_for_unless_that_is_switched_off(settings: dict[str, Any], search: int) -> None:
    assert work.make_plan(SCHEMA, method_named("mosaic", settings), 1.0, 1e-5).settings["search"] == search


def test_a_search_for_a_large_set_is_refused() -> None:
    with pytest.raises(BadSettings, match=r"search=5 is for small sets\. Choose rows of 1000 at most, or search=0"):
        work.make_plan(SCHEMA, method_named("mosaic", {"search": 5, "rows": 2000}), 1.0, 1e-5)


def test_a_plan_from_before_draws_its_rows_as_before() -> None:
    before, drawn, searched = made(rows=60), made(rows=60, search=0), made(rows=60, search=1)
    assert np.array_equal(before.x, drawn.x) and np.array_equal(before.y, drawn.y)
    assert not np.array_equal(before.x, searched.x)


def test_searched_rows_are_whole_rows() -> None:
    rows, labels = run(noise=0.05, rows=30, search=4, T=3, components=6)
    assert len(labels) == 30 and set(labels.tolist()) == {0, 1}
    assert set(rows["city"]) <= {"Rome", "Oslo", "Lima", None} and all(17 <= age <= 90 for age in rows["age"])
    assert np.bincount(made(per_class=7, search=3).y).tolist() == [7, 7, 7]


def test_without_a_label_rows_are_matched() -> None:
    """Noise is far below a record, so the shares of the records are known."""
    schema = dataclasses.replace(TABLE, classes=NO_CLASSES, label="")
    assert work.make_plan(schema, method_named("mosaic", {"rows": 40}), 1.0, 1e-5).settings["search"] == 4000
    found, records = made(schema, rows=40, search=4000, T=100), large(3, 300).rows
    assert found.y.tolist() == [0] * 40
    shares, real = (np.asarray(x)[:, 1:].mean(0) for x in (found.x, records.x))
    assert shares == pytest.approx(real, abs=0.06)


def clinic(label: bool, **settings: Any) -> SyntheticSet:
    """A small set of a table with a constraint of every kind; with a label that one of them is about."""
    values = {**DECLARED}
    if label:
        values |= {
            "classes": ["ill", "well"],
            "label": "state",
            "constraints": [*CONSTRAINTS, {"never": "age < 5 & state = well"}],
        }
    schema, rows = Schema.from_dict(values), visits(600)
    x = torch.from_numpy(encode_rows(rows, schema))
    ages = torch.tensor(rows["age"])
    y = ((ages > 40) if label else 0 * ages).long()
    random = np.random.default_rng(1)

    def ask(name: str, index: int, mapping: Any) -> Answer:
        total = mapping.clipped_sum(x, y, y, len(schema.classes), Bound(float("inf"))).numpy()
        return Answer((total + 0.05 * random.standard_normal(total.shape)).astype(np.float32), 0.05)

    assert work.make_plan(schema, method_named("mosaic", {"rows": 40}), 1.0, 1e-5).settings["search"] == 4000
    found = method_named("mosaic", {"T": 3, "components": 6, **settings}).run(schema, ask, Plain(), torch.device("cpu"))
    assert hold(np.asarray(found.x), found.y, schema).all()
    ids = decode_rows(found.x, schema)["id"]
    assert len(set(ids.tolist())) == len(ids) == 40
    return found


def test_small_sets_keep_to_the_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.LARGE", 80)
    assert not np.array_equal(clinic(False, rows=40, search=1).x, clinic(False, rows=40, search=0).x)


@pytest.mark.slow
def test_small_sets_of_so_many_of_each_class_keep_to_the_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.methods.mosaic.condensed.LARGE", 80)
    assert np.bincount(clinic(True, per_class=20, search=10).y).tolist() == [20, 20]


@pytest.mark.parametrize("call", [7, 9])
def test_killed_while_it_searches_and_resumed_ends_in_the_same_rows(
    tmp_path: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After six steps of the fit the search begins."""
    whole = read_release(released(tmp_path / "whole", tmp_path / "a.sqlite", search=4))
    save, calls = RunLog._save, [0]

    def breaking(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        save(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(RunLog, "_save", breaking)
        with pytest.raises(KeyboardInterrupt):
            released(tmp_path / "out", tmp_path / "b.sqlite", search=4)
    resumed = read_release(work.resume(tmp_path / "out", Silent(), source=source()).release)
    assert np.array_equal(resumed.x, whole.x) and np.array_equal(resumed.y, whole.y)


def test_a_teacher_that_saw_one_class_only_is_sure_of_it() -> None:
    table = large(2)
    rows = table.rows._replace(y=np.ones_like(table.rows.y))
    sure = Large.of(table.model, rows, 2)
    assert (sure.chances == [0.0, 1.0]).all()
    assert np.isfinite(sure.judge().worth(rows.x[:300], table.rows.y[:300]).total)


def test_the_schema_may_have_rough_numbers() -> None:
    assert len(made(dataclasses.replace(TABLE, records=50), rows=20, search=2).y) == 20
