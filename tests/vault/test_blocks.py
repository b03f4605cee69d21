"""Blocks of one shape, and the trial that finds one in which a record's place makes no difference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from limbeck.nets import KINDS, Augmentation, NetSpec, build
from limbeck.nets.features.embedding import CHUNK_NUMBERS, FrozenEmbedding, _chunks, records_at_once
from limbeck.nets.features.fourier import FourierSpec
from limbeck.privacy.schema import Schema
from limbeck.vault.clipped_sums import ClippedSums
from limbeck.vault.maps import Identity, NetworkGradient, RandomFeatures, RandomFourier, SecondMoment, TopGradient
from limbeck.vault.maps import blocks as module
from limbeck.vault.maps.base import Map, form_of, stand_in
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


@dataclass(frozen=True, kw_only=True)
class ByPlace(Map):
    """Rounds by a record's place, which a scale of 0 hides."""

    kind: ClassVar[str] = "by_place"
    scale: float

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return x.flatten(1) * self.scale * (1 + 2.0**-20 * (torch.arange(len(x)) % 5 == 4))[:, None]


def test_no_number_of_a_map_hides_that_its_kernels_round_by_place() -> None:
    """Kernels are tried once for each form; whoever chooses the first map of a form must not decide for the others."""
    schema = Schema(name="any", shape=(64,), classes=("a", "b", "c"), records=100, low=0, high=1)
    for scale in (1.0, 0.0):
        assert ClippedSums(schema, torch.device("cpu")).block_for(ByPlace(scale=scale)) == 1
    net = NetSpec(kind="mlp", width=13, depth=2)
    honest = NetworkGradient(net=net, shape=(64,), classes=3, weights=dict(build(net, (64,), 3, 0).state_dict()))
    zeros = replace(honest, weights={name: torch.zeros_like(value) for name, value in honest.weights.items()})
    blocks_of = [ClippedSums(schema, torch.device("cpu")).block_for(each) for each in (honest, zeros)]
    assert blocks_of[0] == blocks_of[1]


def test_a_form_has_its_sizes_and_no_seeds() -> None:
    one = RandomFourier(spec=FourierSpec(numbers=64, features=20, bandwidth=0.7, seed=1))
    assert form_of(one) == form_of(RandomFourier(spec=replace(one.spec, seed=2, bandwidth=0.1)))
    assert form_of(one) != form_of(RandomFourier(spec=replace(one.spec, features=30)))
    assert form_of(SecondMoment(centre=(0.1,) * 4)) != form_of(SecondMoment(centre=(0.1,) * 5))


def test_a_stand_in_has_the_same_form_and_none_of_the_numbers() -> None:
    net = NetSpec(kind="convnet", width=4, depth=1)
    weights = {name: torch.full_like(value, 7.0) for name, value in build(net, (1, 8, 8), 3, 0).state_dict().items()}
    top = TopGradient(
        gradient=NetworkGradient(net=net, shape=(1, 8, 8), classes=3, weights=weights), clip=1e300, share=0.9
    )
    other = stand_in(top)
    assert form_of(other) == form_of(top) and other.clip == other.share == 0.5
    assert all(value.abs().max() < 7 and value.std() > 0 for value in other.gradient.weights.values())
