"""A target in parts, a label of many classes, rare classes: what is asked beside the pairs, and that it is put together again."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from test_mosaic import Plain

import working as work
from limbeck.data.table import decode_rows, encode_rows
from limbeck.methods import method_named
from limbeck.methods.mosaic.aimed import parts_of
from limbeck.methods.mosaic.asking import ask_pairs
from limbeck.methods.mosaic.axes import fine_axes
from limbeck.methods.mosaic.labels import LabelModel, Rows
from limbeck.methods.mosaic.levels import question
from limbeck.methods.mosaic.measured import Measured
from limbeck.privacy.rules import Rules
from limbeck.privacy.schema import Column, Schema
from limbeck.vault.api import Answer
from limbeck.vault.maps.bound import Bound

COLUMNS = (
    Column(name="a", low=0, high=5, integer=True),
    Column(name="y", low=0, high=9, integer=True, missing=True),
    Column(name="b", categories=("p", "q", "r", "s")),
)
AIMED = Schema.from_dict(
    {"name": "aimed", "shape": [7], "records": 4000, "low": -1, "high": 1, "augmentation": [], "targets": ["y"],
     "columns": [
         {"name": "a", "low": 0, "high": 5, "integer": True},
         {"name": "y", "low": 0, "high": 9, "integer": True, "missing": True},
         {"name": "b", "categories": ["p", "q", "r", "s"]},
     ]}
)  # fmt: skip


def table(count: int = 4000) -> dict[str, list[Any]]:
    """What y is goes by a and b together, and by neither alone."""
    random = np.random.default_rng(0)
    a, b = random.integers(0, 6, count), random.integers(0, 4, count)
    y = np.where((a > 2) ^ (b > 1), random.integers(6, 10, count), random.integers(0, 4, count))
    gaps = random.random(count) < 0.05
    return {
        "a": a.tolist(),
        "y": [None if gap else int(value) for gap, value in zip(gaps, y, strict=True)],
        "b": [("p", "q", "r", "s")[place] for place in b],
    }


def asker(x: torch.Tensor, y: torch.Tensor, classes: int, noise: float) -> Any:
    random = np.random.default_rng(1)

    def ask(label: str, index: int, mapping: Any) -> Answer:
        groups = y if classes > 1 and mapping.classes == 0 else 0 * y
        total = mapping.clipped_sum(x, groups, y, classes, Bound(float("inf"))).numpy()
        assert np.linalg.norm(mapping.rows(x[:1], y[:1]).numpy()) == pytest.approx(1.0)
        return Answer((total + noise * random.standard_normal(total.shape)).astype(np.float32), noise)

    return ask


def test_a_number_that_depends_on_two_columns_together_keeps_that() -> None:
    x = torch.from_numpy(encode_rows(table(), AIMED))
    settings = work.make_plan(AIMED, method_named("mosaic", {}), 1.0, 1e-5).settings
    assert settings["parts"] == 3 and settings["form"] == 3

    def gap(parts: int) -> float:
        chosen = {**settings, "T": 150, "components": 60, "parts": parts, "rows": 4000}
        made = method_named("mosaic", chosen).run(
            AIMED, asker(x, 0 * x[:, 0].long(), 1, 1.0), Plain(), torch.device("cpu")
        )
        rows = decode_rows(made.x, AIMED)
        there = np.array([value is not None for value in rows["y"]])
        assert 1 - there.mean() == pytest.approx(0.05, abs=0.02)
        high = (rows["a"] > 2) ^ np.isin(rows["b"], ["r", "s"])
        values = np.array([0 if value is None else value for value in rows["y"]], dtype=float)
        return float(values[there & high].mean() - values[there & ~high].mean())

    assert gap(3) > 4 > 1 > abs(gap(1))  # 6 among the records


def test_parts_of_a_target_add_up_to_its_pairs_and_hold_about_as_many_records_each() -> None:
    x = torch.from_numpy(encode_rows(table(), AIMED))
    axes, sizes = fine_axes(AIMED), (6, 11, 4)
    cells = [axis.cut().of(x) for axis in axes]
    single = (
        torch.cat([torch.bincount(part, minlength=size) for part, size in zip(cells, sizes, strict=True)])[None] / 4000
    )
    parts = parts_of(AIMED, axes, single, 3, 1 << 20)
    assert parts is not None and parts.part.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3]
    wide, unknown = parts.spread(single, torch.full((21,), 1e-6), sizes)
    zeros = (torch.zeros(4, 21, 21), torch.zeros(21, 21))
    measured = Measured(sizes, wide, unknown, *zeros, whole=(single[0], torch.full((21,), 1e-6)))
    ask_pairs(axes, 4000, asker(x, 0 * cells[0], 1, 0.0), measured, Rules(), parts)
    hot = torch.cat(
        [torch.nn.functional.one_hot(part, size) for part, size in zip(cells, sizes, strict=True)], 1
    ).float()
    part = torch.from_numpy(parts.part)[cells[1]]
    for group in range(4):
        own = hot[part == group]
        exact = own.T @ own / 4000 * (measured.precision > 0)
        assert torch.allclose(measured.pairs[group], exact, atol=1e-6)
        assert torch.allclose(measured.bettered().single[group], own.sum(0) / 4000, atol=1e-3)
    assert torch.allclose(measured.totals()[0], single[0], atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "count", "most"),
    [({}, 1, 1 << 20), ({}, 3, 50), ({"targets": ()}, 3, 1 << 20), ({"classes": ("u", "v"), "label": "l"}, 3, 1 << 20)],
)
def test_without_a_target_or_room_there_are_no_parts(changes: dict[str, Any], count: int, most: int) -> None:
    schema = dataclasses.replace(AIMED, **changes)
    assert parts_of(schema, fine_axes(schema), torch.full((1, 21), 0.1), count, most) is None


def test_with_many_classes_every_column_is_asked_about_with_the_label_once_more() -> None:
    schema = dataclasses.replace(AIMED, classes=tuple(map(str, range(12))), label="l", targets=())
    x, axes, sizes = torch.from_numpy(encode_rows(table(600), schema)), fine_axes(schema), (6, 11, 4)
    y, single = torch.arange(600) % 12, torch.full((12, 21), 1 / 12)
    labelled = (torch.zeros(12, 21), torch.zeros(21))
    zeros = (torch.zeros(1, 21, 21), torch.zeros(21, 21))
    measured = Measured(sizes, single, torch.ones(21), *zeros, labelled=labelled)
    assert set(measured.state) == {"pairs", "precision", "labelled", "labelled_precision"}
    ask_pairs(axes, 600, asker(x, y, 1, 0.0), measured, Rules(), None)
    hot = torch.cat(
        [torch.nn.functional.one_hot(axis.cut().of(x), size) for axis, size in zip(axes, sizes, strict=True)], 1
    ).float()
    exact = torch.stack([hot[y == label].sum(0) for label in range(12)]) / 600
    assert torch.allclose(labelled[0], exact, atol=1e-6) and torch.allclose(measured.combined()[0], exact, atol=1e-3)
    assert torch.allclose(measured.pairs[0], hot.T @ hot / 600 * (measured.precision > 0), atol=1e-6)


def test_a_rare_class_is_learned_as_closely_as_others() -> None:
    """Two of a hundred records, nearly all of them in one of four cells."""
    sizes, counts = (4,), np.array([[245.0, 245, 245, 245], [1, 1, 1, 17]]) / 1000
    measured = Measured(
        sizes, torch.from_numpy(counts).float(), torch.full((4,), 1e-8), torch.zeros(2, 4, 4), torch.zeros(4, 4)
    )
    cells = np.repeat(np.arange(4), [246, 246, 246, 262])[:, None]
    model = LabelModel(measured, Rows(cells, np.zeros((1000, 2)), (0,)), 1e6, 0.0)
    model.fit()
    found = np.array([model.chances()[cells[:, 0] == cell, 1].mean() for cell in range(4)])
    assert found == pytest.approx(counts[1] / counts.sum(0), abs=0.004)


def test_columns_count_by_their_cells_and_alike_where_nothing_else_says_the_class() -> None:
    axes = fine_axes(
        dataclasses.replace(AIMED, columns=(*COLUMNS, Column(name="k", low=0, high=47, integer=True)), shape=(8,))
    )
    assert question(axes).weights == () or set(question(axes).weights) == {0.3}
    assert question(axes, 2).weights == pytest.approx((0.3, 0.3, 0.3, 0.75))
    assert question(axes, 2, alone=True).weights == ()
