"""The two halves of gradient matching against automatic differentiation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.methods.parts.gradients import distance
from limbeck.nets import DCGAN, NetSpec, SetGradients, build
from limbeck.nets.training import set_gradients as module

CPU = torch.device("cpu")
CLASSES = 3
CASES = [("convnet", (1, 8, 8)), ("convnet", (2, 9, 14)), ("lenet", (1, 8, 8)), ("mlp", (7,))]


def example(kind: str, shape: tuple[int, ...]) -> tuple[SetGradients, dict[str, Tensor], Tensor, Tensor]:
    spec = NetSpec(kind=kind, width=6)
    made = SetGradients(spec, shape, CLASSES, CPU)
    made._network.double()
    generator = torch.Generator().manual_seed(4)
    weights = {name: value.double() for name, value in made.fresh_weights(5).items()}
    return made, weights, torch.randn((6, *shape), generator=generator, dtype=torch.float64), torch.arange(6) % CLASSES


def plain_gradient(
    kind: str, shape: tuple[int, ...], weights: dict[str, Tensor], x: Tensor, y: Tensor
) -> dict[str, Tensor]:
    network = build(NetSpec(kind=kind, width=6), shape, CLASSES, seed=0).double()
    leaves = {name: value.clone().requires_grad_(True) for name, value in weights.items()}
    loss = F.cross_entropy(torch.func.functional_call(network, leaves, (x,)), y)
    found = torch.autograd.grad(loss, list(leaves.values()), create_graph=True)
    return dict(zip(leaves, found, strict=True))


@pytest.mark.parametrize(("kind", "shape"), CASES)
@pytest.mark.parametrize("at_once", [1, 10**9])
def test_both_halves_are_those_of_autograd(
    kind: str, shape: tuple[int, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", at_once)
    gradients, weights, x, y = example(kind, shape)
    target = {name: torch.randn_like(value) for name, value in weights.items()}
    records = x.clone().requires_grad_(True)
    expected = plain_gradient(kind, shape, weights, records, y)
    loss = distance(expected, target)
    (slope,) = torch.autograd.grad(loss, records)
    found = gradients.gradient(weights, x, y)
    assert list(found) == list(weights)
    for name, value in found.items():
        assert torch.allclose(value, expected[name], atol=1e-10), name
    measured, pulled = gradients.pull_back(weights, x, y, lambda gradient: distance(gradient, target))
    assert torch.allclose(measured, loss.detach(), atol=1e-9)
    assert torch.allclose(pulled, slope, atol=1e-9 * slope.abs().max().item())


def test_the_distance_counts_rows_and_no_vectors() -> None:
    one = {"weight": torch.tensor([[3.0, 4.0], [1.0, 0.0]]), "bias": torch.tensor([1.0, 2.0])}
    assert distance(one, one).item() == pytest.approx(0, abs=1e-5)
    opposite = {name: -value for name, value in one.items()}
    assert distance(one, opposite).item() == pytest.approx(4, abs=1e-5)
    scaled = {"weight": one["weight"] * torch.tensor([[10.0], [0.5]]), "bias": torch.zeros(2)}
    assert distance(one, scaled).item() == pytest.approx(0, abs=1e-5)
    # A convolution counts by filters, and a filter without any gradient counts 1.
    kernel = {"weight": torch.ones(2, 3, 2, 2)}
    half = {"weight": torch.cat([torch.ones(1, 3, 2, 2), torch.zeros(1, 3, 2, 2)])}
    assert distance(kernel, half).item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (1, 15, 40)])
def test_the_generator_makes_pictures_of_any_size_in_range(shape: tuple[int, ...]) -> None:
    generator = DCGAN(shape, classes=10, latent=4, width=8)
    z, y = torch.randn(5, 4), torch.arange(5)
    made = generator(z, y)
    assert made.shape == (5, *shape) and made.abs().max() <= 1
    assert torch.allclose(generator(z[2:3], y[2:3]), made[2:3], atol=1e-5)  # no picture depends on another


def test_the_generator_for_mnist_has_the_papers_sizes() -> None:
    sizes = {name: tuple(value.shape) for name, value in DCGAN((1, 28, 28), 10).named_parameters()}
    assert sizes["linear.weight"] == (256 * 4 * 4, 20)
    assert sizes["deconv1.weight"] == (256, 128, 5, 5)
    assert sizes["deconv2.weight"] == (128, 64, 5, 5)
    assert sizes["deconv3.weight"] == (64, 1, 8, 8)
