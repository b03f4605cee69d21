"""Graphical models: exact marginals by brute force, a fit that finds what was measured, rows in the model's shares."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck.methods.graphical.columns import measurement
from limbeck.methods.graphical.fitting import combined, fitted
from limbeck.methods.graphical.junction_tree import JunctionTree
from limbeck.methods.graphical.model import GraphicalModel, spread, summed
from limbeck.methods.graphical.rows import cells_given, rows_of

SIZES = (2, 3, 4, 2, 3)
TUPLES = [(0, 1), (1, 2), (2, 3), (0, 3)]  # a circle, which needs a chord
EVERY = tuple(range(len(SIZES)))


def model(tuples: list[tuple[int, ...]] = TUPLES, seed: int = 0) -> GraphicalModel:
    tree, rng = JunctionTree.of(SIZES, tuples), torch.Generator().manual_seed(seed)
    tables = [torch.randn([SIZES[p] for p in c], generator=rng, dtype=torch.float64) for c in tree.cliques]
    return GraphicalModel(tree, tuple(tables))


def whole(made: GraphicalModel) -> torch.Tensor:
    """The joint distribution of all columns, cell by cell."""
    logs = torch.zeros(SIZES, dtype=torch.float64)
    for clique, table in zip(made.tree.cliques, made.potentials, strict=True):
        logs = logs + spread(table, clique, EVERY)
    return torch.softmax(logs.flatten(), 0).view(SIZES)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3).map(lambda part: tuple(sorted(part))), max_size=6))
def test_a_junction_tree_holds_every_tuple_and_keeps_to_the_running_intersection(
    tuples: list[tuple[int, ...]],
) -> None:
    tree = JunctionTree.of(SIZES, tuples)
    assert all(tree.holding(part) is not None for part in [*tuples, *((place,) for place in EVERY)])
    assert tree.parents[0] == -1 and all(parent < child for child, parent in enumerate(tree.parents))
    for place in EVERY:
        holding = [index for index, clique in enumerate(tree.cliques) if place in clique]
        # All cliques with a column but the one nearest to the root have a parent with it.
        assert sum(tree.parents[index] not in holding for index in holding) == 1


@pytest.mark.parametrize("tuples", [TUPLES, [], [(0, 4), (1, 4), (2, 4)], [(0, 1, 2), (2, 3), (3, 4)]])
def test_every_marginal_is_that_of_the_whole_table(tuples: list[tuple[int, ...]]) -> None:
    made = model(tuples)
    joint = whole(made)
    for count in range(1, 6):
        for places in combinations(EVERY, count):
            assert torch.allclose(made.marginal(places), summed(joint, EVERY, places), rtol=0, atol=1e-12)


def test_a_model_stays_the_same_on_a_larger_tree_and_under_conditions() -> None:
    made = model()
    moved = made.on(JunctionTree.of(SIZES, [*made.tree.cliques, (0, 4)]))
    assert torch.allclose(whole(moved), whole(made), atol=1e-12)
    kept = torch.tensor([1.0, 0.0, 0.5])
    joint = whole(made) * kept.view(1, 3, 1, 1, 1)
    found = made.given(1, kept).marginal((0, 1, 4))
    assert torch.allclose(found, summed(joint / joint.sum(), EVERY, (0, 1, 4)), atol=1e-12)


def test_a_fit_finds_what_was_measured_exactly() -> None:
    joint, even = whole(model()), GraphicalModel.even(JunctionTree.of(SIZES, []))
    measured = [measurement(places, summed(joint, EVERY, places).flatten() * 1000, 1.0) for places in [*TUPLES, (4,)]]
    found = fitted(even, measured, 1000.0, 1000)
    for each in measured:
        assert torch.allclose(found.marginal(each.places).flatten() * 1000, each.counts, atol=1e-4)
    assert torch.allclose(found.marginal((0, 4)), torch.outer(found.marginal((0,)), found.marginal((4,))), atol=1e-10)


def test_what_is_more_precise_counts_for_more() -> None:
    counts = torch.tensor([10.0, 20], dtype=torch.float64), torch.tensor([20.0, 10], dtype=torch.float64)
    both = combined([measurement((0,), counts[0], 1.0), measurement((0,), counts[1], 2.0)])[0,]
    assert both.counts.tolist() == [12.0, 18.0] and both.noise.tolist() == pytest.approx([0.8**0.5] * 2)


def test_rows_come_in_the_models_shares() -> None:
    made, count = model(), 40_000
    rows = rows_of(made, count, np.random.default_rng(2))
    found = np.bincount(np.ravel_multi_index(tuple(rows.T), SIZES), minlength=144) / count
    # Drawn one by one they would be this far off; they are shared out and so closer.
    expected = whole(made).flatten().numpy()
    assert np.abs(found - expected).sum() < 0.8 * np.sqrt(2 * expected / np.pi / count).sum()
    assert np.abs(np.bincount(rows[:, 1]) - count * made.marginal((1,)).numpy()).max() < 10


def test_lines_without_a_row_and_lines_of_nothing_are_no_fault() -> None:
    table = np.array([[1.0, 3.0], [0.0, 0.0], [0.0, 2.0]])
    cells = cells_given(table, np.repeat([0, 2], [4, 3]), np.random.default_rng(0))
    assert sorted(cells[:4]) == [0, 1, 1, 1] and cells[4:].tolist() == [1, 1, 1]
    assert len(cells_given(table, np.zeros(0, dtype=np.int64), np.random.default_rng(0))) == 0


def test_it_agrees_with_private_pgm() -> None:
    mbi = pytest.importorskip("mbi")
    joint = whole(model())
    rng = np.random.default_rng(4)
    parts = [*TUPLES, (4,)]
    noised = {
        part: summed(joint, EVERY, part).numpy() * 1000 + rng.normal(0, 5, [SIZES[p] for p in part]) for part in parts
    }
    names = "abcde"
    domain = mbi.Domain(tuple(names), SIZES)
    theirs = mbi.estimation.mirror_descent(
        domain,
        [mbi.LinearMeasurement(table.flatten(), tuple(names[p] for p in part), 5.0) for part, table in noised.items()],
        known_total=1000.0,
        iters=5000,
    )
    measured = [measurement(part, torch.from_numpy(table.flatten()), 5.0) for part, table in noised.items()]
    ours = fitted(GraphicalModel.even(JunctionTree.of(SIZES, [])), measured, 1000.0, 5000)
    for part in combinations(EVERY, 2):
        found = theirs.project(tuple(names[p] for p in part)).datavector()
        assert np.abs(ours.marginal(part).flatten().numpy() * 1000 - np.asarray(found)).max() < 0.5
