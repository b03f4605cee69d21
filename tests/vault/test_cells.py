"""Cells of a table: which one a record lies in, what may be asked, and how a stored answer is told from another."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from limbeck.errors import BadInput
from limbeck.vault.maps.bound import Bound
from limbeck.vault.maps.cells import MOST_CELLS, Cells, Cut

EDGES = torch.tensor([-0.5, 0.5], dtype=torch.float64)
NONE = EDGES[:0]
AGE, CITY = Cut(start=0, numbers=1, edges=EDGES, missing=True), Cut(start=2, numbers=3, edges=NONE)


def test_every_record_has_a_cell_whatever_it_holds() -> None:
    wild = torch.tensor([[value] * 5 for value in (math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0)])
    for cut in (AGE, CITY):
        cells = cut.of(wild)
        assert cells.min() >= 0 and cells.max() < cut.cells


def test_a_number_on_an_edge_lies_above_it() -> None:
    x = torch.tensor([[-0.5, 0.0], [math.nextafter(-0.5, -1.0), 0.0], [0.5, 0.0], [0.5, 1.0]], dtype=torch.float64)
    assert AGE.of(x).tolist() == [1, 0, 2, 3]


def test_counts_are_exact_and_each_class_has_its_own() -> None:
    mapping = Cells(cuts=(AGE, CITY), tuples=((0, 1), (1,)))
    x = torch.tensor([[-1.0, 0, 1, 0, 0], [-1.0, 0, 1, 0, 0], [0.9, 1, 0, 0, 1]])
    y = torch.tensor([0, 0, 1])
    total = mapping.clipped_sum(x, y, y, 2, Bound(1.0, 2.0**-30))
    added = math.floor((1 - 1e-6) / math.sqrt(2) * 2**30)
    expected = torch.zeros(2, mapping.width, dtype=torch.float64)
    expected[0, 0], expected[0, 12], expected[1, 3 * 3 + 2], expected[1, 14] = 2, 2, 1, 1
    assert torch.equal(total, expected * added)


def test_other_edges_are_another_question() -> None:
    mapping = Cells(cuts=(AGE, CITY), tuples=((0, 1),))
    moved = dataclasses.replace(AGE, edges=EDGES + 1e-9)
    for other in (moved, dataclasses.replace(AGE, missing=False)):
        assert Cells(cuts=(other, CITY), tuples=((0, 1),)).digest() != mapping.digest()


@pytest.mark.parametrize("tuples", [(), ((),), ((0, 2),), ((-1,),)])
def test_tuples_that_name_no_column_are_refused(tuples: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(BadInput, match="name some of the 2 columns"):
        Cells(cuts=(AGE, CITY), tuples=tuples)


def test_more_cells_than_fit_are_refused_before_anything_is_made() -> None:
    wide = Cut(start=0, numbers=1, edges=torch.linspace(-1, 1, 1 << 13, dtype=torch.float64))
    with pytest.raises(BadInput, match=str(MOST_CELLS)):
        Cells(cuts=(wide, wide), tuples=((0, 1),))


@pytest.mark.parametrize(
    "wrong",
    [{"numbers": 0}, {"start": -1}, {"numbers": 3, "edges": EDGES}, {"edges": EDGES[None]}],
    ids=["no number", "before the record", "categories with edges", "a table of edges"],
)
def test_cuts_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        dataclasses.replace(AGE, **wrong)


GROUPED = Cut(start=2, numbers=3, edges=NONE, groups=(1, 0, 1))


def test_categories_of_a_group_have_one_cell_and_missing_the_last() -> None:
    x = torch.tensor([[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1.0]])
    assert GROUPED.of(x).tolist() == [1, 0, 1, 1] and GROUPED.cells == 2
    gaps = dataclasses.replace(GROUPED, missing=True)
    assert gaps.of(x).tolist() == [1, 0, 1, 2] and gaps.cells == 3
    wild = torch.tensor([[value] * 6 for value in (math.nan, math.inf, -math.inf, 0.0)])
    assert gaps.of(wild).max() < 3


def test_other_groups_are_another_question_and_none_is_the_one_it_always_was() -> None:
    digests = {Cells(cuts=(cut,), tuples=((0,),)).digest() for cut in (CITY, GROUPED)}
    digests.add(Cells(cuts=(dataclasses.replace(GROUPED, groups=(0, 1, 1)),), tuples=((0,),)).digest())
    assert len(digests) == 3
    assert len(Cells(cuts=(CITY,), tuples=((0,),)).parameters()["cuts"][0]) == 4


@pytest.mark.parametrize("groups", [(0, 1), (0, 1, 1, 0), (0, 2, 0), (1, 1, 1), (-1, 0, 0)])
def test_groups_that_leave_a_category_or_a_cell_out_are_refused(groups: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="every cell has a number"):
        dataclasses.replace(CITY, groups=groups)


def test_a_label_is_a_column_and_none_is_out_of_range() -> None:
    mapping = Cells(cuts=(AGE, CITY), tuples=((2,), (1, 2)), classes=2)
    x = torch.tensor([[0.0, 0, 1, 0, 0], [0.0, 0, 0, 0, 1], [0.0, 0, 0, 1, 0]])
    y = torch.tensor([0, 1, 7])  # one that there should not be counts as the last
    counts = mapping.counts(x, y, torch.ones(3, dtype=torch.float64))
    assert counts.tolist() == [1, 2, 1, 0, 0, 1, 0, 1]
    total = mapping.clipped_sum(x, torch.zeros_like(y), y, 1, Bound(1.0, 2.0**-30))[0]
    assert torch.equal(total, counts * (total.max() / 2)) and torch.equal(mapping.rows(x, y).sum(0) > 0, counts > 0)


def test_a_label_makes_another_question_and_its_absence_none() -> None:
    plain = Cells(cuts=(AGE,), tuples=((0,),))
    assert "classes" not in plain.parameters()  # stored answers of older versions keep their digests
    assert dataclasses.replace(plain, classes=2).digest() != plain.digest()
    with pytest.raises(BadInput, match="classes"):
        Cells(cuts=(AGE,), tuples=((0,),), classes=-1)
