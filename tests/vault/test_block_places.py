"""Whether a block is steady, tried on maps that are unsteady in one way only."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from limbeck.vault.maps.blocks import is_steady, same_bits

SIZE, SHAPE = 16, (4,)
HAIR = 2.0**-23  # one unit in the last place


def steady(x: Tensor, y: Tensor) -> Tensor:
    return x * 3


def by_parity(x: Tensor, y: Tensor) -> Tensor:
    """Odd places differ, so that turning by an even number changes nothing."""
    return x * (1 + HAIR * (torch.arange(len(x)) % 2)[:, None])


def by_last_place(x: Tensor, y: Tensor) -> Tensor:
    return x * (1 + HAIR * (torch.arange(len(x)) == len(x) - 1)[:, None])


def by_neighbours(x: Tensor, y: Tensor) -> Tensor:
    """Turning changes nothing; a block that is filled up does."""
    return x * (1 + HAIR * bool((x == 0).all(1).any()))


def by_strange_neighbours(x: Tensor, y: Tensor) -> Tensor:
    return x * (1 + HAIR * bool(x.isnan().any()))


@pytest.mark.parametrize("rows", [by_parity, by_last_place, by_neighbours, by_strange_neighbours])
def test_one_way_to_be_unsteady_is_enough(rows: object) -> None:
    assert is_steady(steady, SIZE, SHAPE, classes=3)
    assert not is_steady(rows, SIZE, SHAPE, classes=3)  # type: ignore[arg-type]


def test_the_last_bit_counts() -> None:
    one = torch.tensor([1.0, 0.0, torch.inf])
    assert same_bits(one, one.clone())
    for other in ([1.0 + HAIR, 0.0, torch.inf], [1.0, 1e-30, torch.inf], [1.0, 0.0, 3.0]):
        assert not same_bits(one, torch.tensor(other))
