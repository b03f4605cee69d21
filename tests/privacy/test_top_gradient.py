"""TopAgg: the bounds that its noise relies on hold for the map by itself, before the vault clips once more."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets import NetSpec, build
from limbeck.vault.api import NetworkGradient, TopGradient
from limbeck.vault.maps import MAPS
from limbeck.vault.maps.base import records_mix
from limbeck.vault.maps.bound import Bound, clip_rows
from limbeck.vault.maps.top_gradient import top_by_dimension, top_by_norm

SHAPE, CLASSES = (1, 8, 8), 3
NET = NetSpec(kind="convnet", width=4)
ROUNDING = 1 + 1e-6


def gradient() -> NetworkGradient:
    weights = {name: value.detach() for name, value in build(NET, SHAPE, CLASSES, seed=3).named_parameters()}
    return NetworkGradient(net=NET, shape=SHAPE, classes=CLASSES, weights=weights)


def records(count: int = 9) -> tuple[Tensor, Tensor]:
    x = torch.rand((count, *SHAPE), generator=torch.Generator().manual_seed(0)) * 2 - 1
    return x, torch.arange(count) % CLASSES


def numbers(seed: int, rows: int = 20, columns: int = 300) -> Tensor:
    return torch.randn((rows, columns), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_vault_knows_the_map() -> None:
    assert MAPS["top_gradient"] is TopGradient
    assert not records_mix(TopGradient(gradient=gradient(), clip=1.0, share=0.8), SHAPE, CLASSES)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("clip", [0.1, 1.0, 1e-30])
def test_by_norm_a_row_is_within_the_root_of_the_share(share: float, clip: float) -> None:
    x, y = records()
    rows = TopGradient(gradient=gradient(), clip=clip, share=share).rows(x, y)
    assert rows.norm(dim=1).max().item() <= math.sqrt(share) * clip * ROUNDING
    assert rows.norm(dim=1).min().item() >= 0.3 * math.sqrt(share) * clip


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.floats(width=32), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_by_norm_any_row_at_all_is_within_the_root_of_the_share(values: list[float], share: float) -> None:
    row = clip_rows(torch.tensor([values]), 1.0)
    assert top_by_norm(row, share).norm().item() <= math.sqrt(share) * row.norm().item() * ROUNDING


def test_by_norm_the_largest_are_kept_and_no_more_fits() -> None:
    rows = numbers(1)
    kept = top_by_norm(rows, 0.8)
    for row, left in zip(rows, kept, strict=True):
        chosen = left != 0
        assert torch.equal(left[chosen], row[chosen])
        assert row[chosen].abs().min() > row[~chosen].abs().max()
        one_more = left.square().sum() + row[~chosen].square().max()
        assert left.square().sum() <= 0.8 * row.square().sum() < one_more


def test_by_dimension_keeps_the_share_and_may_keep_the_whole_norm() -> None:
    rows = numbers(2)
    kept = top_by_dimension(rows, 0.25)
    assert (kept != 0).sum(1).tolist() == [75] * len(rows)
    lonely = torch.zeros(1, 300, dtype=torch.float64)
    lonely[0, 7] = 1.0
    # The worst case that forbids less noise than plain DP-SGD's: nothing of this gradient is taken away.
    assert torch.equal(top_by_dimension(lonely, 0.01), lonely)
    assert top_by_norm(lonely, 0.99).count_nonzero() == 0


def test_ties_are_decided_by_the_record_alone() -> None:
    """The other rows of a chunk decide how far the search looks; that must not choose between equal values."""
    tied = torch.cat([torch.full((40,), 2.0), torch.full((60,), 1.0)]).double()[None]
    flat, peaked = torch.ones(1, 100).double(), torch.zeros(1, 100).double()
    peaked[0, 0] = 1
    alone = top_by_norm(tied, 0.5)
    for other in (flat, peaked, numbers(3, 4, 100)):
        assert torch.equal(top_by_norm(torch.cat([tied, other]), 0.5)[:1], alone)


@pytest.mark.parametrize("keep", ["norm", "dimension"])
def test_the_whole_gradient_is_plain_dp_sgd(keep: str) -> None:
    x, y = records()
    plain, whole = gradient(), TopGradient(gradient=gradient(), clip=0.1, share=1.0, keep=keep)
    row = torch.zeros_like(y)
    with torch.no_grad():
        expected = plain.clipped_sum(x, row, y, 1, Bound(0.1))
        assert torch.allclose(whole.clipped_sum(x, row, y, 1, Bound(0.1)), expected, rtol=1e-4, atol=1e-6)


def test_the_digest_covers_every_parameter() -> None:
    base = {"gradient": gradient(), "clip": 1.0, "share": 0.8, "keep": "norm"}
    moved = {name: value + 1e-3 for name, value in gradient().weights.items()}
    other = NetworkGradient(net=NET, shape=SHAPE, classes=CLASSES, weights=moved)
    variants = [base, {**base, "clip": 2.0}, {**base, "share": 0.7}, {**base, "keep": "dimension"}]
    digests = [TopGradient(**values).digest() for values in [*variants, {**base, "gradient": other}]]
    assert len(set(digests)) == len(digests)


def test_nonsense_is_refused() -> None:
    for wrong in ({"share": 0.0}, {"share": 1.1}, {"share": math.nan}, {"keep": "sign"}):
        with pytest.raises(BadInput):
            TopGradient(**{"gradient": gradient(), "clip": 1.0, "share": 0.8, **wrong})
