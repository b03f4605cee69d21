from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from limbeck.data.named import NAMED
from limbeck.methods import method_named
from limbeck.methods.parts.matching import Descent, class_means, shared_out

SIZES = st.lists(st.floats(1, 1e6), min_size=2, max_size=12)


class Plain:
    def steps(self, total: int, state: dict[str, Tensor], answers: str) -> Iterator[int]:
        yield from range(total)


@given(SIZES, st.integers(0, 500))
def test_rows_are_shared_out_whole_and_to_every_class(sizes: list[float], more: int) -> None:
    rows = shared_out(len(sizes) + more, sizes)
    assert sum(rows) == len(sizes) + more and min(rows) >= 1
    wanted = [1 + more * size / sum(sizes) for size in sizes]
    assert all(abs(row - share) <= 1 for row, share in zip(rows, wanted, strict=True))


@pytest.mark.parametrize(("dataset", "count"), [("mnist", 10_000), ("adult", 2000)])
def test_a_plan_prices_the_iterations_of_its_kind_of_data(dataset: str, count: int) -> None:
    schema = NAMED[dataset].schema
    method = method_named("ndpdc", {})
    assert method.queries(schema, 1.0) == method.resolved(schema).queries(schema, 1.0)
    assert method.queries(schema, 1.0)[0].count == count


def test_class_means_are_means_of_each_class() -> None:
    rows, labels = torch.tensor([[1.0], [3.0], [10.0]]), torch.tensor([0, 0, 1])
    assert class_means(rows, labels, 2).tolist() == [[2.0], [10.0]]


@pytest.mark.parametrize(("average", "expected"), [(0.0, -4.0), (0.5, -3.5), (1.0, -2.5)])
def test_the_last_sets_are_averaged(average: float, expected: float) -> None:
    descent = Descent(Plain(), 4, eta=1.0, momentum=0.0, average=average, labels=torch.tensor([0]), x=torch.zeros(1, 1))
    for _ in descent.steps("features"):
        descent.move(descent.x.sum())  # the gradient is 1, so the sets are -1, -2, -3, -4
    assert descent.result().x.item() == pytest.approx(expected)
