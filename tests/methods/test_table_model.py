"""The model of a table: what limits leave of cells, rows under limits against plain rejection, weights that do not fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from limbeck.errors import BadInput
from limbeck.methods.mosaic.axes import Axis, axes_cut_at
from limbeck.methods.mosaic.inner import Inner
from limbeck.methods.mosaic.limits import Limit
from limbeck.methods.mosaic.mixture import Mixture, drawn_cells, edges_of
from limbeck.methods.mosaic.model import Labels, TableModel
from limbeck.nets.generators.table_spec import TableSpec
from people import COLUMNS, SCHEMA

EDGES = [np.array(edges) for edges in ([29.5, 30.5, 60.5], [0.5, 4999.5], [0.0, 50.0], [], [1.5])]
ALL = np.ones(3)


def model(opinion: float | None = 0.5, seed: int = 0) -> TableModel:
    random = torch.Generator().manual_seed(seed)
    axes = axes_cut_at(SCHEMA, EDGES)
    sizes = tuple(axis.cells for axis in axes)
    mixture = Mixture.of(sizes, *(torch.randn(shape, generator=random) for shape in ((3, 4, sum(sizes)), (3, 4))))
    labels = None
    if opinion is not None:
        labels = Labels(torch.randn(sum(sizes), 3, generator=random), torch.randn(3, generator=random), opinion)
    return TableModel(tuple(axes), mixture, labels, SCHEMA)


def whole_numbers(axis: Axis, cell: int) -> list[int]:
    first, last = axis.spans()
    return list(range(int(first[cell]), int(last[cell]) + 1))


LIMITS = st.builds(
    Limit,
    low=st.sampled_from([-np.inf, 0.0, 1.0, 29.0, 30.0, 61.0, 200.0]),
    high=st.sampled_from([np.inf, -5.0, 0.0, 2.0, 30.0, 30.4, 75.0]),
    without=st.frozensets(st.sampled_from([0.0, 1.0, 30.0, 61.0]), max_size=2),
    values=st.booleans(),
    gaps=st.booleans(),
)


@given(LIMITS, st.sampled_from([0, 3, 4]))
def test_what_is_left_of_a_cell_is_what_a_count_finds(limit: Limit, place: int) -> None:
    axis = axes_cut_at(SCHEMA, EDGES)[place]
    kept = axis.kept(limit)
    assert len(kept) == axis.cells
    for cell in range(len(axis.spans()[0])):
        numbers = whole_numbers(axis, cell)
        inside = [number for number in numbers if limit.low <= number <= limit.high]
        if len(inside) == 1 and inside[0] in limit.without:
            inside = []
        assert kept[cell] == pytest.approx(len(inside) / len(numbers) * limit.values)
    assert not axis.column.missing or kept[-1] == limit.gaps


def test_numbers_with_decimals_are_left_by_length() -> None:
    axis = axes_cut_at(SCHEMA, EDGES)[2]
    assert axis.kept(Limit(low=25, high=75)).tolist() == [0, 0.5, 0.5]
    drawn = axis.encoded(np.array([1, 2] * 500), np.random.default_rng(0), Limit(low=25, high=75))
    values = (drawn[:, 0] + 1) / 2 * 102.5 - 2.5
    assert 24.9 < values.min() < 26 and 74 < values.max() < 75.1


@pytest.mark.parametrize("opinion", [None, 0.0, 0.5])
def test_rows_under_limits_are_those_of_plain_rejection(opinion: float | None) -> None:
    """The brute-force twin: draw without limits, keep what fits, compare every cell and the label."""
    limits = {0: Limit(low=25, high=70), 1: Limit(gaps=False), 3: Limit(without=frozenset([1.0]), gaps=False)}
    limited, free = model(opinion).rows(limits, ALL), model(opinion).rows({}, ALL)
    x, y = limited.drawn(15_000, np.random.default_rng(0))
    every, labels = free.drawn(80_000, np.random.default_rng(1))
    age = np.rint((every[:, 0] + 1) / 2 * 73 + 17)
    fits = (age >= 25) & (age <= 70) & (every[:, 2] == 0) & (every[:, 5] == 0) & (every[:, 7] == 0)
    assert limited.mass == pytest.approx(fits.mean(), abs=0.005) and 0.1 < limited.mass < 0.9
    expected, classes = every[fits], labels[fits]
    assert x.mean(0) == pytest.approx(expected.mean(0), abs=0.03)
    assert np.bincount(y, minlength=3) / len(y) == pytest.approx(
        np.bincount(classes, minlength=3) / len(classes), abs=0.015
    )
    for label in range(3):
        assert x[y == label].mean(0) == pytest.approx(expected[classes == label].mean(0), abs=0.08)


@pytest.mark.parametrize("opinion", [None, 0.5])
def test_a_class_is_drawn_as_it_is_among_all(opinion: float | None) -> None:
    every, labels = model(opinion).rows({}, ALL).drawn(40_000, np.random.default_rng(1))
    x, y = model(opinion).rows({}, np.array([0.0, 1.0, 0.0])).drawn(30_000, np.random.default_rng(0))
    assert set(y.tolist()) == {1}
    assert x.mean(0) == pytest.approx(every[labels == 1].mean(0), abs=0.03)
    if opinion is None:
        shared = model(opinion).rows({}, np.array([3.0, 1.0, 0.0])).drawn(4000, np.random.default_rng(0))[1]
        assert np.bincount(shared).tolist() == pytest.approx([3000, 1000], abs=2)


def test_chances_of_labels_are_those_of_the_plain_formula() -> None:
    made = model(0.5)
    assert made.labels is not None
    cells = np.random.default_rng(0).integers(0, made.sizes, (20_000, 5))
    places = torch.from_numpy(cells + np.cumsum([0, *made.sizes[:-1]]))
    hot = torch.zeros(len(cells), sum(made.sizes)).scatter_(1, places, 1.0)
    odds = hot @ made.labels.terms + made.labels.constant + 0.5 * made.mixture.log_chances(hot)
    assert np.allclose(made.label_chances(cells), torch.softmax(odds, 1).numpy(), atol=1e-5)


def test_a_component_without_a_share_draws_nothing() -> None:
    edges = edges_of(np.array([[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]), (3,))
    for seed in range(300):
        cells, chosen = drawn_cells(edges, np.array([[1 / 3, 0.0]]), 7, np.random.default_rng(seed))
        assert set(chosen.tolist()) == {0} and cells.min() >= 1


@pytest.mark.parametrize("opinion", [None, 0.25])
def test_spec_and_weights_are_the_whole_model(opinion: float | None) -> None:
    made = model(opinion)
    spec = TableSpec.from_dict(json.loads(json.dumps(made.spec.to_dict())))
    again = TableModel.of(spec, {name: value.clone() for name, value in made.weights().items()}, SCHEMA)
    assert again.spec == made.spec == spec
    one, two = (each.rows({}, ALL).drawn(500, np.random.default_rng(3)) for each in (made, again))
    assert np.array_equal(one[0], two[0]) and np.array_equal(one[1], two[1])


def shaped(opinion: float | None = None) -> TableModel:
    """With finer cells of a number, and categories that share a cell."""
    made = model(opinion)
    axes = list(made.axes)
    edges = np.array([20.5, 29.5, 30.5, 40.5, 60.5])
    owner = np.array([0, 0, 1, 2, 2, 3])
    axes[0] = replace(axes[0], inner=Inner(edges, owner, np.array([0.9, 0.1, 1.0, 0.0, 1.0, 1.0])))
    axes[3] = replace(
        axes[3], groups=(0, 1, 0), inner=Inner(np.zeros(0), np.array([0, 1, 0]), np.array([0.2, 1.0, 0.8]))
    )
    sizes = tuple(axis.cells for axis in axes)
    random = torch.Generator().manual_seed(1)
    mixture = Mixture.of(sizes, *(torch.randn(shape, generator=random) for shape in ((3, 4, sum(sizes)), (3, 4))))
    return replace(made, axes=tuple(axes), mixture=mixture)


def test_finer_cells_are_part_of_the_model_and_drawn_from() -> None:
    made = shaped()
    spec = TableSpec.from_dict(json.loads(json.dumps(made.spec.to_dict())))
    assert spec.inner == (6, 0, 0, 3, 0) and spec.groups == (0, 0, 0, 2, 0)
    again = TableModel.of(spec, {name: value.clone() for name, value in made.weights().items()}, SCHEMA)
    one, two = (each.rows({}, ALL).drawn(4000, np.random.default_rng(3))[0] for each in (made, again))
    assert np.array_equal(one, two)
    age = np.rint((one[:, 0] + 1) / 2 * 73 + 17)
    assert (age[age < 30] <= 20).mean() == pytest.approx(0.9, abs=0.03) and not ((age > 30) & (age <= 40)).any()
    limited = made.rows({0: Limit(low=25, high=50), 3: Limit(without=frozenset([2.0]), gaps=False)}, ALL)
    x, _ = limited.drawn(500, np.random.default_rng(0))
    ages = np.rint((x[:, 0] + 1) / 2 * 73 + 17)
    assert ages.min() >= 25 and ages.max() <= 50 and not ((ages > 30) & (ages <= 40)).any()


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("inner_shares", 0, 0.5),
        ("inner_shares", 0, -1.0),
        ("inner_edges", 1, 29.0),
        ("inner_edges", 0, 35.0),
        ("groups", 0, 1),
    ],
)
def test_finer_cells_that_do_not_fit_are_refused(name: str, place: int, value: float) -> None:
    made = shaped()
    weights = {each: tensor.clone() for each, tensor in made.weights().items()}
    weights[name][place] = value
    with pytest.raises(BadInput):
        TableModel.of(made.spec, weights, SCHEMA)


def _nan(value: torch.Tensor) -> torch.Tensor:
    changed = value.clone()
    changed.view(-1)[0] = torch.nan
    return changed


DAMAGES: dict[str, Any] = {
    "no logits": lambda weights: weights.pop("logits"),
    "one more": lambda weights: weights.update(colour=torch.zeros(1)),
    "not finite": lambda weights: weights.update(logits=_nan(weights["logits"])),
    "not finite label": lambda weights: weights.update(constant=_nan(weights["constant"])),
    "another shape": lambda weights: weights.update(terms=weights["terms"][1:]),
    "another type": lambda weights: weights.update(weights=weights["weights"].double()),
    "edges that fall": lambda weights: weights.update(edges=weights["edges"].flip(0)),
    "edges outside": lambda weights: weights.update(edges=weights["edges"] + 1e5),
    "edges twice": lambda weights: weights["edges"].__setitem__(1, weights["edges"][0]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_weights_that_do_not_fit_are_refused(damage: str) -> None:
    made = model(0.5)
    weights = {name: value.clone() for name, value in made.weights().items()}
    DAMAGES[damage](weights)
    with pytest.raises(BadInput):
        TableModel.of(made.spec, weights, SCHEMA)


def test_edges_of_categories_and_another_number_of_columns_are_refused() -> None:
    made = model(None)
    for edges in ((2, 2, 2, 1, 1), (3, 2, 2, 0), (3, 2, 2, 0, 2)):
        spec = TableSpec(components=4, edges=edges)
        with pytest.raises(BadInput):
            TableModel.of(spec, made.weights(), SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"components": 0}, {"components": True}, {"edges": []}, {"edges": [-1]}, {"edges": [1.5]}, {"edges": 3}, {"kind": "poem"},
        {"opinion": 2}, {"opinion": "all"}, {"opinion": float("nan")}, {"opinion": True}, {"colour": 1},
    ],
)  # fmt: skip
def test_a_spec_refuses_nonsense(wrong: dict[str, Any]) -> None:
    good = {"kind": "mosaic", "components": 4, "edges": [3, 0], "opinion": 0.5}
    assert TableSpec.from_dict(good).to_dict() == good
    with pytest.raises(BadInput):
        TableSpec.from_dict(good | wrong)


def test_the_columns_here_are_of_every_kind(tmp_path: Path) -> None:
    assert {(column.numeric, column.ordinal, column.missing) for column in COLUMNS} == {
        (True, False, False), (True, False, True), (False, False, True), (False, True, False),
    }  # fmt: skip
