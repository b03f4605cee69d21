"""What a record adds is the same bits whatever stands beside it: at the edge of a ReLU, at every place, for every map.

A ReLU's derivative jumps at 0, and a matrix product rounds differently for batches of another size. Before every pass had one
shape, one more record could move the gradients of the *others*: by up to 3.2 times the clip; those made here, by 2.0.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from test_sensitivity import CLASSES, MAPPINGS, some_records, summed
from tiny import MemorySource, plan_of
from torch import Tensor

from limbeck.data.records import Records
from limbeck.nets import NetSpec, build
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.maps import NetworkGradient
from limbeck.vault.maps.base import Map
from limbeck.vault.maps.top_gradient import TopGradient, top_by_norm
from limbeck.vault.noise import Randomness

TABLE, PICTURE = (96,), (1, 28, 28)
mappings = pytest.mark.parametrize("name", MAPPINGS)


def gradient_of(net: NetSpec, shape: tuple[int, ...], seed: int = 1) -> NetworkGradient:
    weights = {name: value.detach() for name, value in build(net, shape, CLASSES, seed).named_parameters()}
    return NetworkGradient(net=net, shape=shape, classes=CLASSES, weights=weights)


def at_the_edge(mapping: NetworkGradient, count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Records for which every unit of the first hidden layer stands at the edge of its ReLU, up to 1e-8."""
    first = next(value for value in mapping.weights.values() if value.dim() == 2).double()
    bias = next(value for value in mapping.weights.values() if value.dim() == 1).double()
    generator = torch.Generator().manual_seed(seed)
    free = torch.rand((count, first.shape[1]), generator=generator, dtype=torch.float64) - 0.5
    inverse = torch.linalg.pinv(first)
    x = free - (free @ first.T + bias) @ inverse.T
    assert (x @ first.T + bias).abs().max() < 1e-8
    return x.float().view(count, *mapping.shape), torch.arange(count) % CLASSES


def moved_by_one_more(mapping: Map, x: Tensor, y: Tensor, clip: float) -> float:
    """The largest |S(D + r) - S(D)| / clip over growing D."""
    sums = [summed(mapping, x[:count], y[:count], clip, False) for count in range(1, len(x) + 1)]
    return max((after - before).norm().item() for before, after in itertools.pairwise(sums)) / clip


@pytest.mark.parametrize("shape", [TABLE, PICTURE])
def test_one_more_record_at_the_edge_of_the_relus_moves_the_sum_by_at_most_the_clip(shape: tuple[int, ...]) -> None:
    mapping = gradient_of(NetSpec(kind="mlp", width=64, depth=2), shape)
    for seed in range(3):
        assert moved_by_one_more(mapping, *at_the_edge(mapping, 20, seed), 0.1) <= 1


@pytest.mark.parametrize("clipping", ["joint", "per_layer"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_neither_threads_nor_clipping_change_that(clipping: str, threads: int) -> None:
    mapping = gradient_of(NetSpec(kind="mlp", width=64, depth=2), TABLE)
    object.__setattr__(mapping, "clipping", clipping)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert moved_by_one_more(mapping, *at_the_edge(mapping, 12), 0.1) <= 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("keep", ["norm", "dimension"])
def test_the_choice_of_the_largest_coordinates_does_not_flip_with_the_neighbours(keep: str) -> None:
    gradient = gradient_of(NetSpec(kind="linear"), TABLE)
    # Equal pixels in pairs: their coordinates of the gradient are equal but for rounding, so that a choice hangs on it.
    x, y = some_table(24)
    x[:, 48:] = x[:, :48]
    for share in (0.3, 0.5, 0.8):
        mapping = TopGradient(gradient=gradient, clip=0.1, share=share, keep=keep)
        assert moved_by_one_more(mapping, x, y, 0.1) <= 1
        edge = TopGradient(gradient=gradient_of(NetSpec(kind="mlp", width=64), TABLE), clip=0.1, share=share, keep=keep)
        assert moved_by_one_more(edge, *at_the_edge(edge.gradient, 12), 0.1) <= 1


def test_neither_does_a_choice_between_two_classes_of_equal_chance() -> None:
    """Two logits that are the same sum in another order. Before, the choice between them moved the sum by 1.27 clips."""
    net, clip = NetSpec(kind="mlp", depth=1), 0.1 * 0.9**0.5
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        weights = {name: value.detach() for name, value in build(net, TABLE, CLASSES, seed).named_parameters()}
        row = torch.randn(TABLE, generator=generator)
        weights["head.weight"][1], weights["head.weight"][2] = row, row[torch.randperm(len(row), generator=generator)]
        weights["head.bias"][1:] = 0
        mapping = TopGradient(
            gradient=NetworkGradient(net=net, shape=TABLE, classes=CLASSES, weights=weights), clip=0.1, share=0.9
        )
        for value in (0.3, 0.7, -0.6, -0.9):
            x, y = torch.full((20, *TABLE), value), torch.zeros(20, dtype=torch.long)
            assert moved_by_one_more(mapping, x, y, clip) <= 1


def test_how_far_one_row_is_searched_does_not_depend_on_another() -> None:
    """A flat row has to be searched whole, a peaked one not; together each is as alone."""
    peaked, flat = torch.zeros(1, 4000, dtype=torch.float64), torch.ones(1, 4000, dtype=torch.float64)
    peaked[0, :3] = torch.tensor([3.0, 2.0, 1.0])
    flat[0] += torch.rand(4000, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 1e-3
    both = top_by_norm(torch.cat([peaked, flat]), 0.9)
    assert torch.equal(both, torch.cat([top_by_norm(peaked, 0.9), top_by_norm(flat, 0.9)]))
    assert 0.88 < both[1].norm().square() / flat.norm().square() <= 0.9
    assert both[0].count_nonzero() == 1 and top_by_norm(peaked, 13 / 14).count_nonzero() == 2


def test_the_vault_gives_neighbours_answers_that_are_at_most_the_clip_apart(tmp_path: Path) -> None:
    """Through the vault, with the same secret stream for both: what one more record moves is all that differs."""
    schema = Schema(name="edge", shape=TABLE, classes=("a", "b", "c"), records=40, low=-1.0, high=1.0)
    mapping = gradient_of(NetSpec(kind="mlp", width=64, depth=2), TABLE)
    # Solved for what the vault's scaling makes of them.
    x, y = at_the_edge(mapping, 12)
    query = ClippedSum(label="sum", map="network_gradient", clip=0.1, noise_multiplier=2.0, by_class=False)
    answers = []
    for count in range(1, 12):
        records = Records(x[:count].numpy(), y[:count].numpy())
        with Ledger.open(tmp_path / f"{count}.sqlite") as ledger:
            vault = LocalVault(MemorySource(schema, records), ledger, Randomness(5))
            answers.append(vault.ask(vault.grant(plan_of(query, dataset="edge")), "sum", 0, mapping).values)
    # An answer is rounded to single precision last of all.
    assert all(np.linalg.norm(a - b) <= 0.1 * (1 + 1e-5) for a, b in itertools.pairwise(answers))


def some_table(count: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    return torch.rand((count, *TABLE), generator=generator) * 2 - 1, torch.arange(count) % CLASSES


@mappings
@pytest.mark.parametrize("count", [1, 3, 63, 64, 65, 257])
def test_a_sum_is_that_of_its_records_one_by_one_to_the_last_bits_of_a_double(name: str, count: int) -> None:
    x, y = some_records(count)
    alone = [summed(MAPPINGS[name], x[i : i + 1], y[i : i + 1], 1.0, True) for i in range(0, count, 17)]
    chosen = torch.arange(count) % 17 == 0
    without = summed(MAPPINGS[name], x[~chosen], y[~chosen], 1.0, True)
    residual = summed(MAPPINGS[name], x, y, 1.0, True) - without - torch.stack(alone).sum(0)
    assert residual.norm().item() <= 1e-12 * count


@mappings
def test_the_order_of_the_records_changes_last_bits_of_the_sum_only(name: str) -> None:
    x, y = some_records(67)
    order = torch.randperm(67, generator=torch.Generator().manual_seed(4))
    apart = summed(MAPPINGS[name], x, y, 1.0, False) - summed(MAPPINGS[name], x[order], y[order], 1.0, False)
    assert apart.norm().item() <= 1e-11


@pytest.mark.slow
def test_the_sum_over_thousands_of_records_has_no_residual_of_single_precision() -> None:
    mapping = gradient_of(NetSpec(kind="mlp", width=64), PICTURE)
    generator = torch.Generator().manual_seed(5)
    x, y = torch.rand((8000, *PICTURE), generator=generator), torch.arange(8000) % CLASSES
    whole, less, last = (
        summed(mapping, x[p], y[p], 0.1, False) for p in (slice(0, 8000), slice(0, 7999), slice(7999, 8000))
    )
    assert (whole - less - last).norm().item() / 0.1 < 1e-10
