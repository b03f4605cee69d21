"""The critic over stacked weights: every critic for itself, its matrices of norm one, both ways of computing it alike."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets.architectures import critic
from limbeck.nets.architectures.critic import NORMED, VECTORS, critic_score, critic_weights, turn_vectors

SHAPE, CLASSES = (1, 12, 12), 3


def batch(critics: int, images: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand((critics, images, *SHAPE), generator=generator) * 2 - 1
    return x, torch.randint(0, CLASSES, (critics, images), generator=generator)


def test_the_papers_sizes() -> None:
    weights = critic_weights((1, 28, 28), 10, 64, [0])
    assert [weights[f"conv{place}.weight"].shape[1:] for place in (1, 2, 3)] == [(25, 64), (1600, 128), (3200, 256)]
    assert weights["head.weight"].shape == (1, 4 * 4 * 256, 1) and weights["label.weight"].shape == (1, 4096, 10)
    assert set(VECTORS) < set(weights)


def test_a_critic_starts_from_its_own_seed_alone() -> None:
    together, alone = critic_weights(SHAPE, CLASSES, 4, [5, 6, 7]), critic_weights(SHAPE, CLASSES, 4, [6])
    for name, value in alone.items():
        assert torch.allclose(together[name][1], value[0], atol=1e-6), name


@pytest.mark.parametrize(("width", "hidden"), [(0, 0), (0, 5), (4, 0), (20, 0)])
def test_stacked_critics_are_the_single_ones(width: int, hidden: int) -> None:
    weights, (x, y) = critic_weights(SHAPE, CLASSES, width, [1, 2, 3], hidden), batch(3, 5)
    together = critic_score(weights, x, y)
    for place in range(3):
        single = {name: value[place : place + 1] for name, value in weights.items()}
        alone = critic_score(single, x[place : place + 1], y[place : place + 1])
        assert torch.allclose(together[place], alone[0], atol=1e-4)
    shared = critic_score(weights, x[:1], y[:1])
    assert torch.allclose(shared[0], together[0], atol=1e-4) and shared.shape == (3, 5)


@pytest.mark.parametrize(("width", "hidden"), [(0, 0), (0, 5), (4, 0), (20, 0)])
def test_no_gradient_crosses_from_critic_to_critic_or_image_to_image(width: int, hidden: int) -> None:
    weights, (x, y) = critic_weights(SHAPE, CLASSES, width, [1, 2], hidden), batch(2, 3)
    x.requires_grad_(True)
    (slope,) = torch.autograd.grad(critic_score(weights, x, y)[1, 2], x, create_graph=True)
    assert slope[1, 2].abs().sum() > 0
    slope = slope.detach().clone()
    slope[1, 2] = 0
    assert slope.abs().max() == 0


def test_both_ways_agree_with_their_second_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, (x, y) = critic_weights(SHAPE, CLASSES, 4, [1, 2]), batch(2, 3)
    monkeypatch.setattr("limbeck.nets.kernels.stacked.has_fast_bfloat16", lambda device: False)
    trained = [name for name in weights if name not in VECTORS]
    found = []
    for narrow in (0, 100):
        monkeypatch.setattr(critic, "NARROW", narrow)
        moved = {name: value.clone().requires_grad_(name in trained) for name, value in weights.items()}
        image = x.clone().requires_grad_(True)
        scores = critic_score(moved, image, y)
        (slope,) = torch.autograd.grad(scores.sum(), image, create_graph=True)
        penalty = (slope.flatten(2).norm(dim=2) - 1).square().sum() + scores.square().sum()
        found.append([scores, slope, *torch.autograd.grad(penalty, [moved[name] for name in trained])])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)


def test_every_matrix_counts_with_a_largest_singular_value_of_one() -> None:
    weights = critic_weights(SHAPE, CLASSES, 4, [1, 2])
    for _ in range(200):
        turn_vectors(weights)
    for name in NORMED:
        largest = torch.linalg.matrix_norm(weights[f"{name}.weight"], ord=2)
        assert torch.allclose(critic._norm(weights, name), largest, rtol=1e-3), name
    # So a scaled matrix gives the same scores.
    x, y = batch(2, 3)
    scaled = weights | {"conv2.weight": 7 * weights["conv2.weight"]}
    assert torch.allclose(critic_score(scaled, x, y), critic_score(weights, x, y), atol=1e-5)


def test_the_label_matters_and_tables_are_refused() -> None:
    weights, (x, y) = critic_weights(SHAPE, CLASSES, 4, [1]), batch(1, 3)
    assert not torch.allclose(critic_score(weights, x, y), critic_score(weights, x, (y + 1) % CLASSES))
    with pytest.raises(BadInput, match="critic reads images"):
        critic_weights((5,), 2, 4, [0])
