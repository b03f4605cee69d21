"""What is known of the label in each cell: the bound that its proof claims, the sum, and what makes another question."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.errors import BadInput
from limbeck.vault.maps.base import Map, records_mix
from limbeck.vault.maps.bound import Bound
from limbeck.vault.maps.cells import Cut
from limbeck.vault.maps.label_cells import LabelCells

EDGES = torch.tensor([-0.5, 0.5], dtype=torch.float64)
NONE = EDGES[:0]
AGE, CITY = Cut(start=0, numbers=1, edges=EDGES, missing=True), Cut(start=2, numbers=3, edges=NONE)
TERMS = torch.randn((8, 3), generator=torch.Generator().manual_seed(1))
PLAIN = LabelCells(cuts=(AGE, CITY), classes=3)
MODEL = dataclasses.replace(PLAIN, terms=TERMS)
X = torch.tensor([[-1.0, 0, 1, 0, 0], [0.0, 0, 0, 0, 1], [0.9, 1, 0, 0, 1]])
Y = torch.tensor([0, 2, 1])


def test_a_model_says_the_same_of_a_record_whatever_its_label_is() -> None:
    assert torch.equal(MODEL.rows(X, Y), MODEL.rows(X, Y.flip(0)))
    assert not torch.equal(PLAIN.rows(X, Y), PLAIN.rows(X, Y.flip(0)))


def test_chances_stand_in_the_cells_of_the_record() -> None:
    places = [(0, 4), (1, 6), (3, 6)]  # of the cells -, ., + and none of the first column, and three cities
    for row, (one, two) in zip(MODEL.rows(X, Y).view(3, 7, 3), places, strict=True):
        chances = torch.softmax(TERMS[0] + TERMS[1 + one] + TERMS[1 + two], 0)
        for place in (one, two):
            assert torch.allclose(row[place], (chances - 1 / 3) / math.sqrt(2 * 2 / 3), atol=1e-6)
        assert row.count_nonzero() == 6


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    odds=st.lists(st.floats(-1e4, 1e4, width=32), min_size=24, max_size=24),
    values=st.lists(st.floats(-1, 1, width=32), min_size=5, max_size=5),
)
def test_no_model_and_no_record_make_a_longer_row_than_the_proof_says(odds: list[float], values: list[float]) -> None:
    mapping = dataclasses.replace(PLAIN, terms=torch.tensor(odds).view(8, 3))
    row = mapping.rows(torch.tensor([values]), torch.tensor([1]))
    assert row.double().norm() <= 1 + 1e-5


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_a_label_makes_a_row_of_norm_one(classes: int) -> None:
    mapping = LabelCells(cuts=(AGE, CITY), classes=classes)
    assert mapping.rows(X, Y % classes).norm(dim=1).tolist() == pytest.approx([1.0] * 3, rel=1e-5)


@pytest.mark.parametrize("mapping", [PLAIN, MODEL], ids=["labels", "model"])
def test_the_sum_is_that_of_the_rows_and_each_class_may_have_its_own(mapping: LabelCells) -> None:
    plain = Map.clipped_sum(mapping, X, Y, Y, 3, Bound(0.5))
    assert torch.allclose(mapping.clipped_sum(X, Y, Y, 3, Bound(0.5)), plain, atol=1e-9)
    rows = mapping.clipped_rows(X, Y, Bound(0.5), mapping.block)
    assert torch.allclose(torch.zeros(3, mapping.width, dtype=torch.float64).index_add_(0, Y, rows), plain)
    assert not records_mix(mapping, (5,), 3)


def test_a_label_that_there_should_not_be_is_the_last_one() -> None:
    wild = torch.tensor([7, 7, 7])
    assert torch.equal(PLAIN.rows(X, wild), PLAIN.rows(X, torch.full((3,), 2)))


def test_another_model_other_edges_and_no_model_are_other_questions() -> None:
    moved = dataclasses.replace(AGE, edges=EDGES + 1e-9)
    others = [
        MODEL, PLAIN, dataclasses.replace(MODEL, terms=TERMS + 1e-6), dataclasses.replace(MODEL, cuts=(moved, CITY)),
        dataclasses.replace(PLAIN, classes=4),
    ]  # fmt: skip
    assert len({each.digest() for each in others}) == 5


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"classes": 1}, "two classes"), ({"cuts": ()}, "two classes"), ({"terms": TERMS[1:]}, r"\(8, 3\)")],
)
def test_questions_that_make_no_sense_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        dataclasses.replace(PLAIN, **changed)


def test_more_numbers_than_fit_are_refused() -> None:
    wide = Cut(start=0, numbers=1, edges=torch.linspace(-1, 1, 1 << 21, dtype=torch.float64))
    with pytest.raises(BadInput, match="at most"):
        LabelCells(cuts=(wide,), classes=10)
