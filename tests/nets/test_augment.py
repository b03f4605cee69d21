"""Siamese and per-image augmentation."""

from __future__ import annotations

import json

import pytest
import torch

from limbeck.errors import BadInput
from limbeck.nets import FAMILIES, Augmentation, AugmentationDraw, apply, augment_each

SHAPE = (3, 16, 12)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("family", FAMILIES)
def test_shared_parameters_and_gradients(family: str) -> None:
    draw = Augmentation((family,)).draw(1, SHAPE)
    x = torch.randn(1, *SHAPE).expand(4, -1, -1, -1).clone().requires_grad_()
    changed = apply(x, draw)
    assert changed.shape == x.shape
    assert torch.equal(changed[0], changed[3])
    (gradient,) = torch.autograd.grad(changed.sum(), x)
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_each_image_has_its_own_parameters(family: str) -> None:
    x = torch.randn(1, *SHAPE).expand(16, -1, -1, -1)
    changed = augment_each(x, (family,), seeded(0))
    assert changed.shape == x.shape
    assert any(not torch.equal(changed[0], other) for other in changed[1:])
    assert torch.equal(changed, augment_each(x, (family,), seeded(0)))


def test_draws_follow_the_seed_and_reach_every_family() -> None:
    augmentation = Augmentation()
    assert augmentation.draw(7, SHAPE) == augmentation.draw(7, SHAPE)
    assert {augmentation.draw(seed, SHAPE).family for seed in range(100)} == set(FAMILIES)
    generator = seeded(0)
    assert augmentation.draw(generator, SHAPE) != augmentation.draw(generator, SHAPE)


def test_what_moves_in_or_is_cut_out_is_zero() -> None:
    x = torch.full((1, *SHAPE), -1.0)
    shifted = apply(x, AugmentationDraw("crop", (0.0, 0.5)))  # two rows up there is nothing
    assert shifted[0, :, :2].eq(0).all() and shifted[0, :, 2:].eq(-1).all()
    cut = apply(x, AugmentationDraw("cutout", (0.5, 0.5)))
    assert cut.eq(0).sum() == 3 * 8 * 6
    scaled = apply(x, AugmentationDraw("scale", (0.999999, 0.999999)))
    assert scaled[0, 0, 0, 0] == 0 and scaled[0, 0, 8, 6] == -1


def test_middle_values_change_nothing() -> None:
    x = torch.randn(2, *SHAPE)
    for draw in (("color", (0.5, 0.5, 0.5)), ("crop", (0.5, 0.5)), ("flip", (0.7,)), ("rotate", (0.5,)), ("", ())):
        torch.testing.assert_close(apply(x, AugmentationDraw(*draw)), x)


def test_a_row_depends_on_its_own_record_only() -> None:
    x = torch.randn(3, *SHAPE)
    changed = x.clone()
    changed[1] += 1
    for family in FAMILIES:
        draw = Augmentation((family,)).draw(3, SHAPE)
        assert torch.equal(apply(x, draw)[[0, 2]], apply(changed, draw)[[0, 2]])


def test_tables_and_empty_families_pass_through() -> None:
    x = torch.randn(3, 14)
    assert apply(x, Augmentation().draw(0, (14,))) is x
    assert augment_each(x, FAMILIES, seeded(0)) is x
    assert Augmentation(()).draw(0, SHAPE).family == ""


def test_json_and_refusals() -> None:
    augmentation = Augmentation(("crop", "rotate"))
    assert Augmentation.from_dict(json.loads(json.dumps(augmentation.to_dict()))) == augmentation
    with pytest.raises(BadInput, match="shear"):
        Augmentation(("shear",))
