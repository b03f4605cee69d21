"""Declared constraints hold in every row, whatever the model says and whatever else is asked; contradictions cost nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupted import assert_paid_once

import working as work
from clinic import CLINIC, CONSTRAINTS, DECLARED, plainly_kept, visits
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.table import decode_rows, encode_rows
from limbeck.errors import BadInput, BadSettings, NotAuthentic
from limbeck.methods import METHODS, method_named
from limbeck.methods.mosaic.axes import asked_columns, axes_cut_at, fine_axes
from limbeck.methods.mosaic.keeping import kept_rows, numbered
from limbeck.methods.mosaic.measured import Measured, as_matrix
from limbeck.methods.mosaic.mixture import Mixture
from limbeck.methods.mosaic.model import TableModel
from limbeck.methods.mosaic.zeros import impossible, set_faint_zeros
from limbeck.privacy.schema import Column, Schema
from limbeck.privacy.witness import witness
from limbeck.progress import Silent
from limbeck.release.certificate import Certificate
from limbeck.release.generator import load_generator
from limbeck.release.reader import read_release
from limbeck.release.table_generator import TableGenerator
from limbeck.release.verification import verify
from limbeck.release.violations import violations
from limbeck.runs.log import RunLog
from limbeck.runs.planning import make_plan
from limbeck.vault.ledger import Ledger


def model(schema: Schema, seed: int = 0) -> TableModel:
    """Not fitted to anything: it has no reason to keep to a constraint."""
    random = torch.Generator().manual_seed(seed)
    axes = axes_cut_at(schema, [axis.edges[:: max(len(axis.edges) // 5, 1)] for axis in fine_axes(schema)])
    sizes = tuple(axis.cells for axis in axes)
    shapes = ((len(schema.classes), 3, sum(sizes)), (len(schema.classes), 3))
    return TableModel(tuple(axes), Mixture.of(sizes, *(torch.randn(s, generator=random) for s in shapes)), None, schema)


def generator(schema: Schema, seed: int = 0) -> TableGenerator:
    return TableGenerator(model(schema, seed), (1,) * len(schema.classes), cast(Certificate, None), schema)


def test_the_plain_loop_agrees_about_the_records() -> None:
    columns = visits(300)
    x = encode_rows(columns, CLINIC)
    assert plainly_kept(columns) and violations(x, np.zeros(300, dtype=np.int64), CLINIC, numbered=False) == 0
    for name, value in (("years", 9), ("sex", "male"), ("gross", 5.0), ("id", 7), ("end", "2020-01-01"), ("age", 3)):
        changed = {**columns, name: [value] * 300}
        assert violations(encode_rows(changed, CLINIC), np.zeros(300, dtype=np.int64), CLINIC) > 0


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(
        st.sampled_from(
            ["age<40", "sex = male", "pregnant != missing", "gross < 1200", "years>=13", "start < 2023-01-01", "net > 100",
             "end = missing", "level != doctor"]
        ), max_size=2, unique=True,
    ),
)  # fmt: skip
def test_every_sampled_row_keeps_to_constraints_and_conditions(seed: int, where: list[str]) -> None:
    x, y = generator(CLINIC, seed).sample(60, seed, where=where)
    decoded = decode_rows(x, CLINIC)
    assert len(x) == 60 and plainly_kept(decoded) and violations(x, y, CLINIC) == 0
    checks: dict[str, Any] = {
        "age<40": lambda: (decoded["age"] < 40).all(),
        "gross < 1200": lambda: all(value is not None and value < 1200 for value in decoded["gross"]),
        "years>=13": lambda: (decoded["years"] >= 13).all(),
        "net > 100": lambda: all(value is not None and value > 100 for value in decoded["net"]),
        "end = missing": lambda: all(value is None for value in decoded["end"]),
    }
    assert all(checks[text]() for text in where if text in checks)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 1000))
def test_rows_are_kept_also_if_nothing_that_holds_is_ever_drawn(seed: int) -> None:
    """By then everything is paid: it ends, and in rows that hold."""
    random = np.random.default_rng(seed)
    x, y = model(CLINIC, seed).rows({}, np.ones(1)).drawn(40, random)
    x[:, 1] = -1.0  # everybody is 0 years old ...
    x[:, 7:9] = [1, 0]  # ... and married

    def same_again(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat(x[:1], len(labels), axis=0), labels

    made, labels = kept_rows(x, y, CLINIC, same_again, random, by_class=False)
    assert plainly_kept(decode_rows(numbered(made, CLINIC, random), CLINIC)) and len(labels) == 40


def run(noise: float, schema: Schema = CLINIC, **chosen: Any) -> dict[str, np.ndarray]:
    x = torch.from_numpy(encode_rows(visits(), CLINIC))
    y, random = torch.zeros(len(x), dtype=torch.int64), np.random.default_rng(1)

    def ask(label: str, index: int, mapping: Any) -> Any:
        from limbeck.vault.api import Answer

        total = mapping.rows(x, y).sum(0, keepdim=True).numpy()
        return Answer((total + noise * random.standard_normal(total.shape)).astype(np.float32), noise)

    class Plain:
        def steps(self, total: int, state: Any, answers: str) -> Any:
            return iter(range(total))

    made = method_named("mosaic", {"T": 150, "components": 60, **chosen}).run(schema, ask, Plain(), torch.device("cpu"))
    assert violations(made.x, made.y, schema) == 0
    return decode_rows(made.x, schema)


def test_mosaic_keeps_them_and_the_shares_of_the_records() -> None:
    columns, made = visits(), run(noise=0.1)
    assert plainly_kept(made)
    assert made["age"].mean() == pytest.approx(np.mean(columns["age"]), abs=2)
    for name, value in (("pregnant", "yes"), ("married", "yes"), ("end", None), ("gross", None), ("years", 13)):
        share = np.mean([each == value for each in columns[name]])
        assert np.mean([each == value for each in made[name]]) == pytest.approx(share, abs=0.03)
    sums = [value for value in made["gross"] if value is not None]
    assert np.mean(sums) == pytest.approx(np.mean([v for v in columns["gross"] if v is not None]), abs=25)
    stays = [(end - start).days for start, end in zip(made["start"], made["end"], strict=True) if end is not None]
    assert min(stays) >= 0 and np.median(stays) < 60


def test_noise_that_drowns_everything_breaks_no_constraint() -> None:
    assert plainly_kept(run(noise=1e4, T=5, rows=200))


def test_no_question_is_asked_about_what_follows_from_others() -> None:
    assert [column.name for column in asked_columns(CLINIC)] == [
        "age", "sex", "pregnant", "married", "net", "tax", "start", "end", "level"
    ]  # fmt: skip


def test_pairs_of_cells_that_contradict_a_constraint_are_known_to_be_empty() -> None:
    axes = axes_cut_at(CLINIC, [np.array([15.5, 40.5]), *[np.zeros(0)] * 3, *[np.array([400.0])] * 2,
                                np.array([19_000.5]), np.array([19_000.5]), np.zeros(0)])  # fmt: skip
    found = impossible(CLINIC.rules, axes)
    ends = np.cumsum([axis.cells for axis in axes])
    at = {axis.column.name: int(end - axis.cells) for axis, end in zip(axes, ends, strict=True)}
    assert found[at["age"], at["married"]] and not found[at["age"] + 1, at["married"]]
    assert found[at["pregnant"], at["sex"] + 1] and not found[at["pregnant"] + 2, at["sex"] + 1]
    assert found[at["start"] + 1, at["end"]] and not found[at["start"], at["end"] + 1]
    assert not found[at["start"] + 1, at["end"] + 2]  # a gap comes after everything
    assert (found == found.T).all() and found.sum() == 6


def test_they_are_written_and_read_as_they_were_declared() -> None:
    assert CLINIC.to_dict()["constraints"] == CONSTRAINTS
    assert Schema.from_dict(json.loads(json.dumps(CLINIC.to_dict()))) == CLINIC


@pytest.mark.parametrize(
    ("constraint", "says"),
    [
        ({"if": "age > 3"}, "A constraint has the entries"),
        ({"always": "age > 3"}, "A constraint has the entries"),
        ({"never": 3}, "must be a text"),
        ({"never": "height > 3"}, "There is no column 'height'"),
        ({"never": "age > 200"}, "lies in 0 ... 99"),
        ({"order": ["age"]}, "at least 2 different columns"),
        ({"order": ["age", "height"]}, "which is no column"),
        ({"order": ["age", "start"]}, "all numbers, all dates or all times"),
        ({"order": ["sex", "married"]}, "all numbers, all dates or all times"),
        ({"sum": ["age", "sex"], "is": "tax"}, "'sex' holds none"),
        ({"sum": ["tax"], "is": "age"}, "has no more digits"),
        ({"sum": ["net"], "is": "tax"}, "write missing = true in 'tax'"),
        ({"sum": ["age"], "is": "gross"}, "Two constraints say what 'gross' is"),
        ({"sum": ["gross"], "is": "net"}, "by way of itself"),
        ({"unique": "end"}, "never missing"),
        ({"unique": "age"}, "no other constraint may be about it"),
        ({"unique": ["age"]}, "must be a text"),
        ({"same": ["sex", "married"], "by": {"female": "yes"}}, "name each of them once"),
        ({"same": ["sex", "married"], "by": {"female": "yes", "male": "maybe"}}, "never is"),
        ({"same": ["sex", "age"], "by": {"female": 3, "male": 3.5}}, "never is"),
        ({"same": ["sex", "age"], "by": {"female": 3, "male": True}}, "text or a number"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(constraint: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Schema.from_dict({**DECLARED, "constraints": [*CONSTRAINTS, constraint]})


@pytest.mark.parametrize(
    "more",
    [
        [{"never": "age >= 0"}],
        [{"if": "sex = female", "then": "age > 50"}, {"if": "sex = male", "then": "age > 50"}, {"never": "age > 50"}],
        [{"never": "start < 2024-06-01"}, {"never": "end > 2024-05-01"}, {"never": "end = missing"}],
        [{"never": "years < 20"}],
        [{"never": "gross > 0"}, {"never": "tax = 0"}, {"never": "gross = missing"}],
    ],
)
def test_contradictions_are_refused_before_anything_is_booked(more: list[dict[str, Any]]) -> None:
    schema = Schema.from_dict({**DECLARED, "constraints": [*CONSTRAINTS, *more]})
    with pytest.raises(BadInput, match="No row was found that keeps to all constraints of 'clinic'"):
        make_plan(schema, method_named("mosaic", {}), 1.0, 1e-5)


def test_a_row_is_found_where_sums_leave_little() -> None:
    schema = Schema.from_dict(
        {**DECLARED, "constraints": [*CONSTRAINTS, {"never": "gross != 37.25"}, {"never": "net < 5"}]}
    )
    assert witness(schema)["gross"] == 37.25


def test_other_methods_and_more_rows_than_unique_values_are_refused() -> None:
    for name in set(METHODS) - {"mosaic"}:
        labelled = replace(CLINIC, classes=("a", "b"), label="y")
        with pytest.raises(BadSettings, match="cannot keep the constraints"):
            make_plan(labelled, method_named(name, {}), 1.0 if METHODS[name].private else None, 1e-5)
    columns = (Column(name="id", low=1, high=50, integer=True), *CLINIC.columns[1:])
    small = replace(CLINIC, columns=columns)
    with pytest.raises(BadSettings, match="a unique column has 50"):
        make_plan(small, method_named("mosaic", {}), 1.0, 1e-5)
    with pytest.raises(BadInput, match="Ask for --count 50"):
        generator(small).sample(51)
    assert sorted(decode_rows(generator(small).sample(50)[0], small)["id"]) == list(range(1, 51))
    with pytest.raises(BadInput, match="'id' is unique"):
        generator(small).sample(5, where=["id > 3"])


def released(root: Path, name: str = "out") -> Path:
    x = encode_rows(visits(400), CLINIC)
    source = DataSource(CLINIC, "here", lambda _: Records(x, np.zeros(len(x), dtype=np.int64)))
    chosen = {"T": 6, "components": 6, "rows": 60, "sigma": 2.0, "search": 0}
    plan = work.make_plan(CLINIC, method_named("mosaic", chosen), None, 1e-5)
    asked = work.asked(data=None, ledger=str(root / f"{name}.sqlite"), insecure_seed=7)
    return work.condense(asked, plan, source, root / name, Silent(), checkpoint_seconds=0.0).release


def test_a_release_keeps_them_and_so_does_what_is_drawn_from_it(tmp_path: Path) -> None:
    release = released(tmp_path)
    verify(release)
    columns = pq.read_table(release / "data" / "train.parquet").to_pydict()
    assert plainly_kept(columns) and len(columns["id"]) == 60
    x, _ = load_generator(release).sample(100, where=["gross < 900"])
    assert plainly_kept(decode_rows(x, CLINIC))


@pytest.mark.parametrize(("owner", "name", "call"), [(Ledger, "store", 2), (RunLog, "_save", 3), (Ledger, "finish", 1)])
def test_killed_and_resumed_ends_in_the_same_rows(
    tmp_path: Path, owner: type, name: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_release(released(tmp_path, "whole"))
    original, calls = getattr(owner, name), [0]

    def breaking(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, breaking)
        with pytest.raises(KeyboardInterrupt):
            released(tmp_path)
    x = encode_rows(visits(400), CLINIC)
    source = DataSource(CLINIC, "here", lambda _: Records(x, np.zeros(len(x), dtype=np.int64)))
    resumed = read_release(work.resume(tmp_path / "out", Silent(), source=source).release)
    assert np.array_equal(resumed.x, whole.x)
    assert_paid_once(tmp_path / "out.sqlite")


def test_verify_finds_rows_that_break_a_constraint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unkept(x: Any, *others: Any) -> Any:
        x[:, 1], x[:, 7:9] = -1.0, [1, 0]
        return x, np.zeros(len(x), dtype=np.int64)

    monkeypatch.setattr("limbeck.methods.mosaic.drawing.kept_rows", unkept)
    with pytest.raises(NotAuthentic, match="60 of 60 rows break a constraint"):
        verify(released(tmp_path))


def test_whatever_records_hold_only_what_was_declared_comes_out(tmp_path: Path) -> None:
    """Poison: records that break every constraint, and values that are none."""
    x = np.full((300, CLINIC.numbers), np.nan, dtype=np.float32)
    x[100:200] = 1e30
    source = DataSource(CLINIC, "here", lambda _: Records(x, np.zeros(300, dtype=np.int64)))
    plan = work.make_plan(CLINIC, method_named("mosaic", {"T": 3, "components": 3, "rows": 50, "search": 0}), 1.0, 1e-5)
    asked = work.asked(data=None, ledger=str(tmp_path / "l.sqlite"))
    release = work.condense(asked, plan, source, tmp_path / "out", Silent()).release
    verify(release)
    assert plainly_kept(pq.read_table(release / "data" / "train.parquet").to_pydict())


def test_conditions_may_name_the_label() -> None:
    declared = {
        **DECLARED,
        "classes": ["ill", "well"],
        "label": "state",
        "constraints": [{"never": "age < 50 & state = ill"}],
    }
    schema = Schema.from_dict(declared)
    x, y = generator(schema).sample(300)
    ages = decode_rows(x, schema)["age"]
    assert not ((ages < 50) & (y == 0)).any() and (y == 0).any() and ((ages < 50) & (y == 1)).any()


def _measured(shares: torch.Tensor, noise: float) -> Measured:
    sizes = (shares.shape[0], shares.shape[1])
    cells = shares + noise * torch.randn(shares.shape, generator=torch.Generator().manual_seed(0))
    pairs = as_matrix(cells.flatten()[None], sizes)
    precision = as_matrix(torch.full((1, shares.numel()), noise**-2), sizes)[0]
    return Measured(sizes, torch.ones(1, sum(sizes)), torch.ones(sum(sizes)), pairs, precision)


def test_of_two_columns_that_say_the_same_faint_cells_are_empty_and_of_others_they_stay() -> None:
    same = _measured(torch.eye(6) / 6, 0.003)
    set_faint_zeros(same)
    assert torch.equal(same.pairs[0, :6, 6:] != 0, torch.eye(6) == 1) and torch.equal(same.pairs, same.pairs.mT)
    assert float(same.precision[0, 7]) == pytest.approx(25 * 0.003**-2) and float(
        same.precision[0, 6]
    ) == pytest.approx(0.003**-2)
    leak = _measured(0.7 * torch.eye(6) / 6 + 0.3 / 36, 0.003)  # one in four says something else
    before = leak.pairs.clone()
    set_faint_zeros(leak)
    assert torch.equal(leak.pairs, before)
