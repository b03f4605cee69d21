"""Blocks of one shape, and the trial that finds one in which a record's place makes no difference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from limbeck.nets import KINDS, Augmentation, NetSpec, build
from limbeck.nets.features.embedding import CHUNK_NUMBERS, FrozenEmbedding, _chunks, records_at_once
from limbeck.vault.maps import Identity, NetworkGradient, RandomFeatures
from limbeck.vault.maps import blocks as module
from limbeck.vault.maps.base import Map, form_of
from limbeck.vault.maps.blocks import MOST, block_size, blocks, is_steady, same_bits, steady_block

SHAPE, CLASSES = (1, 8, 8), 3


def gradient_of(kind: str, shape: tuple[int, ...] = SHAPE, width: int = 8) -> NetworkGradient:
    net = NetSpec(kind=kind, width=width)
    weights = {name: value.detach() for name, value in build(net, shape, CLASSES, 1).named_parameters()}
    return NetworkGradient(net=net, shape=shape, classes=CLASSES, weights=weights, augmentation=Augmentation())


def test_blocks_are_whole_tiles_unless_a_record_is_huge() -> None:
    assert [block_size(at_once) for at_once in (0, 1, 3, 4, 16, 47, 200, 10**9)] == [1, 1, 2, 16, 16, 32, 64, MOST]


@pytest.mark.parametrize(("count", "expected"), [(0, [0]), (3, [3]), (4, [4]), (9, [4, 4, 1])])
def test_every_block_has_one_shape_and_is_filled_up_with_zeros(count: int, expected: list[int]) -> None:
    x, y = torch.rand(count, 2, 3) + 1, torch.arange(count) + 1
    made = list(blocks(4, x, y))
    assert [real for real, _ in made] == expected
    assert all(part.shape == (4, 2, 3) and labels.shape == (4,) for _, (part, labels) in made)
    assert torch.equal(torch.cat([part[:real] for real, (part, _) in made]), x)
    assert torch.equal(torch.cat([labels[:real] for real, (_, labels) in made]), y)
    assert all(not part[real:].any() and not labels[real:].any() for real, (part, labels) in made)


def test_a_block_is_a_copy() -> None:
    x = torch.ones(4, 2)
    ((_, (part,)),) = blocks(4, x)
    part.zero_()
    assert x.all()


def by_place(size: int) -> Tensor:
    return torch.arange(size)[:, None] * 2.0**-40


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("steady", lambda x, y: x, 64),
        ("by place", lambda x, y: x.double() + by_place(len(x)), 1),
        ("by place in large blocks", lambda x, y: x.double() + (by_place(len(x)) if len(x) > 16 else 0), 16),
        ("by place, one number in 500", lambda x, y: x.double() + by_place(len(x)) * ((x * 1e4).floor() % 500 == 0), 1),
        ("the last is odd", lambda x, y: torch.cat([x[:-1], x[-1:] * (1 + 2**-23)]), 1),
        ("by neighbours", lambda x, y: x.double() + x.double().nan_to_num(3.0).sum() * 1e-12, 1),
        ("spoilt by neighbours", lambda x, y: x + 0 * x.sum(), 1),
    ],
)
def test_the_largest_block_without_a_difference_is_taken(name: str, rows: module.Rows, expected: int) -> None:
    assert steady_block(rows, 64, (5,), CLASSES) == expected


def test_two_numbers_that_are_not_finite_count_as_the_same() -> None:
    assert same_bits(torch.tensor([1.0, torch.nan]), torch.tensor([1.0, torch.inf]))
    assert not same_bits(torch.tensor([1.0]), torch.tensor([1.0 + 2**-23]))
    assert not same_bits(torch.tensor([1.0]), torch.tensor([torch.nan]))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_this_machine_has_a_steady_block_for_every_network(kind: str, threads: int) -> None:
    shape = (3, 16, 16) if kind in ("alexnet", "vgg11", "resnet18") else SHAPE
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        maps: list[Map] = [
            gradient_of(kind, shape, 4),
            RandomFeatures(net=NetSpec(kind=kind, width=4), shape=shape, seed=1),
        ]
        for mapping in maps:
            size = steady_block(mapping.trial, min(mapping.block, 32), shape, CLASSES)
            assert size == 1 or is_steady(mapping.trial, size, shape, CLASSES)
    finally:
        torch.set_num_threads(before)


def test_an_embedding_passes_a_block_in_one_piece() -> None:
    """Its own pieces would have sizes that differ by one."""
    for width, shape in ((4, SHAPE), (32, (1, 28, 28)), (128, (3, 32, 32)), (64, (1, 31, 17))):
        spec = NetSpec(kind="convnet", width=width)
        size = block_size(records_at_once(spec, shape))
        layers = FrozenEmbedding(spec, shape, 0)._layers
        assert layers is None or len(_chunks(torch.zeros(size, *shape), layers)) == 1
    assert records_at_once(NetSpec(kind="mlp"), (5,)) == CHUNK_NUMBERS


def test_the_form_of_a_map_is_that_of_its_kernels() -> None:
    one, other = gradient_of("mlp"), gradient_of("mlp")
    object.__setattr__(other, "seed", 5)
    assert form_of(one) == form_of(other)
    assert len({form_of(m) for m in (one, gradient_of("mlp", width=9), gradient_of("linear"), Identity())}) == 4
    assert form_of(one) != form_of(NetworkGradient(**{**vars(one), "augmentation": None}))
