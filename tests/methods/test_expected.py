"""The third question: what the model of the label expects of the records, in place of what it expects of its own rows."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import torch

import working as work
from limbeck.data.table import encode_rows
from limbeck.methods import method_named
from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.expected import Expected, ask_labels
from limbeck.methods.mosaic.labels import LabelModel, Rows, fitted
from limbeck.methods.mosaic.measured import Measured, as_matrix
from limbeck.privacy.schema import NO_CLASSES, Column, Schema
from limbeck.vault.api import Answer, LabelCells
from limbeck.vault.maps.bound import Bound

SIZES = (6, 6, 3)
STARTS = np.array([0, 6, 12])
BLOCKS = [slice(0, 6), slice(6, 12), slice(12, 15)]
RECORDS = 20_000
AXES = tuple(
    Axis(Column(name=f"c{place}", categories=tuple("abcdef"[:size])), start, np.zeros(0))
    for place, (size, start) in enumerate(zip(SIZES, STARTS.tolist(), strict=True))
)


def records(classes: int = 2, both: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Two columns that nearly always say the same, of which the first one alone decides the label; or both of two by turns."""
    random = np.random.default_rng(4)
    first, third = random.integers(0, 6, RECORDS), random.integers(0, 3, RECORDS)
    second = np.where(random.random(RECORDS) < 0.9, first, random.integers(0, 6, RECORDS))
    push = 0.8 * (first[:, None] - 2.5) * np.linspace(-1, 1, classes)
    if both:
        push = 4.0 * ((first[:, None] > 2) ^ (third[:, None] == 1)) * np.linspace(-1, 1, classes) - 2.0
    return np.stack([first, second, third], axis=1), (push + random.gumbel(size=push.shape)).argmax(1)


def apart(cells: np.ndarray) -> np.ndarray:
    """Rows with the same columns, which go together less closely than those of the records."""
    random = np.random.default_rng(5)
    mixed = cells.copy()
    some = random.random(len(cells)) < 0.6
    mixed[some, 1] = random.permutation(mixed[some, 1])
    return mixed


def hot(cells: np.ndarray) -> torch.Tensor:
    return torch.zeros(len(cells), sum(SIZES)).scatter_(1, torch.from_numpy(cells + STARTS), 1.0)


def measured(cells: np.ndarray, labels: np.ndarray, classes: int, noise: float) -> Measured:
    random, x = torch.Generator().manual_seed(3), hot(cells)
    by_class = [x[torch.from_numpy(labels == label)] for label in range(classes)]
    single = torch.stack([part.sum(0) for part in by_class])
    pairs = torch.stack(
        [
            torch.cat([(part[:, one].T @ part[:, two]).flatten() for one, two in itertools.combinations(BLOCKS, 2)])
            for part in by_class
        ]
    )
    single, pairs = (each + noise * torch.randn(each.shape, generator=random) for each in (single, pairs))
    precision = as_matrix(torch.full((1, pairs.shape[1]), (RECORDS / noise) ** 2), SIZES)[0]
    variance = torch.full((sum(SIZES),), (noise / RECORDS) ** 2)
    return Measured(SIZES, single / RECORDS, variance, as_matrix(pairs / RECORDS, SIZES), precision)


def asked(cells: np.ndarray, labels: np.ndarray, noise: float, seen: list[LabelCells]) -> Any:
    def ask(label: str, index: int, mapping: LabelCells) -> Answer:
        assert (label, index) == ("labels", 0)
        seen.append(mapping)
        total = mapping.rows(hot(cells), torch.from_numpy(labels)).double().sum(0, keepdim=True).numpy()
        noised = total + noise * np.random.default_rng(8).standard_normal(total.shape)
        return Answer(noised.astype(np.float32), noise)

    return ask


def models(noise: float, classes: int = 2, both: bool = False) -> tuple[LabelModel, LabelModel, Expected, LabelCells]:
    """Of rows that go together less closely: without the third answer, with it, what it said, and what was asked."""
    cells, labels = records(classes, both)
    known, mixed = measured(cells, labels, classes, 5.0), cells if both else apart(cells)
    opinions = np.zeros((RECORDS, classes))
    if both:
        opinions = np.where((cells[:, :1] > 2) ^ (cells[:, 2:] == 1), 2.0, -2.0) * np.linspace(-1, 1, classes)
    own, said, seen = Rows(mixed, opinions, (0, 0, 0)), Expected.none(classes, sum(SIZES)), []  # type: ignore[var-annotated]
    before = fitted(known, own, RECORDS)
    assert not said.is_there
    ask_labels(before, AXES, known, RECORDS, asked(cells, labels, noise, seen), said)
    return before, fitted(known, own, RECORDS, said), said, seen[0]


def strays(model: LabelModel) -> float:
    """How far the terms of the second column go, which says nothing that the first one does not."""
    return float(np.abs(model.terms[BLOCKS[1], -1]).max())


@pytest.mark.parametrize("classes", [2, 3])
def test_terms_are_those_of_the_records_though_rows_go_together_less_closely(classes: int) -> None:
    before, after, said, question = models(1.0, classes)
    assert question.terms is not None and said.is_there and after.opinion == 0
    assert strays(before) > 0.3 and strays(after) < 0.6 * strays(before)
    slope = [(model.terms[5] - model.terms[0])[-1] / 5 for model in (before, after)]
    assert abs(slope[1] - 0.8) < abs(slope[0] - 0.8)


def test_where_noise_explains_it_all_nothing_changes() -> None:
    before, after, said, _ = models(1e6)
    most = np.abs(before.terms).max()
    assert np.isfinite(after.terms).all() and np.abs(after.terms).max() <= most + 0.05
    assert bool((said.doubt >= 0).all())


def test_what_is_believed_of_a_column_is_the_share_that_noise_does_not_explain() -> None:
    _, _, precise, _ = models(1e-3)
    _, _, noised, _ = models(30.0)
    second = precise.shift[:, BLOCKS[1]]
    assert second.abs().max() > 20 * precise.shift[:, BLOCKS[2]].abs().max()  # the third column is as it was
    assert noised.doubt[BLOCKS[1]].max() > precise.doubt[BLOCKS[1]].max()
    assert torch.allclose(precise.shift.sum(0), torch.zeros(sum(SIZES)), atol=1e-6)


def test_a_label_of_two_columns_together_is_counted_once_more() -> None:
    before, after, said, question = models(2.0, both=True)
    assert before.opinion > 0 and after.opinion == before.opinion and question.terms is None
    assert bool((said.doubt < 0).all())  # two answers are surer than one
    cells, labels = records(2, both=True)
    truth = torch.stack([hot(cells)[torch.from_numpy(labels == label)].sum(0) for label in range(2)]) / RECORDS
    known = measured(cells, labels, 2, 5.0).combined()[0]
    errors = [known - truth, known + said.shift - truth]
    spreads = [float((each - each.mean(0)).square().mean()) for each in errors]
    assert spreads[1] < spreads[0]


def test_the_state_holds_all_that_the_answer_said() -> None:
    _, _, said, _ = models(1.0)
    again = Expected.none(2, sum(SIZES))
    for name, value in again.state.items():
        value.copy_(said.state[name])
    assert again.is_there and all(torch.equal(again.state[name], said.state[name]) for name in said.state)


def made(schema: Schema, columns: dict[str, list[Any]], y: list[int], noise: float) -> tuple[Any, list[str]]:
    """A run on answers with seeded noise, and what it asked."""
    x, labels = torch.from_numpy(encode_rows(columns, schema)), torch.tensor(y)
    settings = work.make_plan(schema, method_named("mosaic", {"T": 12, "components": 12}), 1.0, 1e-5).settings
    method, random, seen = method_named("mosaic", settings), np.random.default_rng(1), []  # type: ignore[var-annotated]
    by_class = {query.label: query.by_class for query in method.queries(schema, 1.0)}

    def ask(label: str, index: int, mapping: Any) -> Answer:
        seen.append(label)
        row = labels if by_class[label] else 0 * labels
        count = len(schema.classes) if by_class[label] else 1
        total = mapping.clipped_sum(x, row, labels, count, Bound(1.0)).numpy()
        return Answer((total + noise * random.standard_normal(total.shape)).astype(np.float32), noise)

    return method.run(schema, ask, Plain(), torch.device("cpu")), seen


class Plain:
    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str) -> Any:
        return iter(range(total))


MANY = tuple(f"k{place}" for place in range(400))
ODD: dict[str, tuple[Column, list[Any]]] = {
    "constant": (Column(name="a", categories=("only", "never")), ["only"] * 60),
    "one value": (Column(name="a", low=5, high=6, integer=True), [5] * 60),
    "all missing": (Column(name="a", low=0, high=9, integer=True, missing=True), [None] * 60),
    "four hundred categories": (Column(name="a", categories=MANY), [MANY[place % 400] for place in range(60)]),
    "numbers of any length": (Column(name="a", low=-1e6, high=1e6), [float(place) for place in range(60)]),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("noise", [0.01, 20.0, 1e4])
@pytest.mark.parametrize("labels", ["even", "one record", "one class"])
def test_odd_tables_are_made(odd: str, noise: float, labels: str) -> None:
    column, values = ODD[odd]
    columns = (column, Column(name="b", low=0, high=40, integer=True))
    schema = Schema(
        name="odd", shape=(sum(each.width for each in columns),), classes=("u", "v", "w"), records=60, low=-1.0, high=1.0,
        columns=columns, label="l", augmentation=(),
    )  # fmt: skip
    y = {"even": [place % 3 for place in range(60)], "one record": [0] * 59 + [2], "one class": [1] * 60}[labels]
    found, seen = made(schema, {"a": values, "b": list(range(60))}, y, noise)
    assert seen == ["columns", "pairs", "labels"]
    assert len(found.x) == 60 and np.isfinite(found.x).all() and set(found.y.tolist()) <= {0, 1, 2}


def test_three_rows_are_enough_and_a_single_column_or_no_label_asks_nothing_of_the_model() -> None:
    columns = (Column(name="a", categories=("x", "y")), Column(name="b", low=0, high=9, integer=True))
    three = Schema(
        name="three", shape=(3,), classes=("u", "v"), records=3, low=-1.0, high=1.0, columns=columns, label="l",
        augmentation=(),
    )  # fmt: skip
    values = {"a": ["x", "y", "x"], "b": [1, 2, 9]}
    found, seen = made(three, values, [0, 1, 1], 5.0)
    assert len(found.x) == 3 and seen[-1] == "labels"
    one = dataclasses.replace(three, columns=columns[1:], shape=(1,))
    assert made(one, {"b": [1, 2, 9]}, [0, 1, 1], 5.0)[1] == ["columns"]
    plain = dataclasses.replace(three, classes=NO_CLASSES, label="")
    assert made(plain, values, [0, 0, 0], 5.0)[1] == ["columns", "pairs"]
