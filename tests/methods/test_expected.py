"""The third question: what the model of the label expects of the records, in place of what it expects of its own rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.expected import Expected, ask_labels
from limbeck.methods.mosaic.labels import LabelModel, Rows, fitted
from limbeck.methods.mosaic.measured import Measured, as_matrix
from limbeck.privacy.schema import Column
from limbeck.vault.api import Answer, LabelCells

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
