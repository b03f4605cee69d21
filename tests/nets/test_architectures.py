"""AlexNet, VGG11 and ResNet18: the papers' sizes, small pictures, derivatives of second order, no mixing of records."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

from limbeck.errors import BadInput
from limbeck.nets import NetSpec, Network, build

KINDS = ("alexnet", "vgg11", "resnet18")
SHAPES = ((1, 28, 28), (3, 32, 32), (1, 8, 8), (1, 7, 13), (2, 2, 3), (3, 33, 21))


def small(kind: str, shape: tuple[int, ...] = (1, 8, 8), seed: int = 0) -> Network:
    return build(NetSpec(kind=kind, width=8), shape, 4, seed)


def convolutions(network: Network) -> list[torch.nn.Conv2d]:
    return [layer for layer in network.modules() if isinstance(layer, torch.nn.Conv2d)]


@pytest.mark.parametrize(("kind", "shape"), list(itertools.product(KINDS, SHAPES)))
def test_any_picture_gives_features_that_tell_records_apart(kind: str, shape: tuple[int, ...]) -> None:
    network = small(kind, shape)
    features = network.embed(torch.randn(3, *shape))
    assert features.shape == (3, network.features) and network(torch.randn(3, *shape)).shape == (3, 4)
    assert torch.isfinite(features).all() and (features[0] - features[1]).abs().max() > 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(14,), (1, 1, 5), (1, 5, 1)])
def test_records_without_a_picture_are_refused_in_a_sentence(kind: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="mlp"):
        small(kind, shape)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
def test_the_papers_sizes(shape: tuple[int, ...]) -> None:
    built = {kind: build(NetSpec(kind=kind), shape, 10, seed=0) for kind in KINDS}
    assert {kind: network.features for kind, network in built.items()} == {
        "alexnet": 192 * 4 * 4, "vgg11": 512, "resnet18": 512
    }  # fmt: skip
    filters = {kind: [layer.out_channels for layer in convolutions(network)] for kind, network in built.items()}
    assert filters["alexnet"] == [128, 192, 256, 192, 192]
    assert filters["vgg11"] == [64, 128, 256, 256, 512, 512, 512, 512]
    assert len(filters["resnet18"]) == 17 + 3 and max(filters["resnet18"]) == 512
    paddings = {kind: convolutions(network)[0].padding[0] for kind, network in built.items()}
    assert paddings == (
        {"alexnet": 4, "vgg11": 3, "resnet18": 3} if shape[0] == 1 else {"alexnet": 2, "vgg11": 1, "resnet18": 1}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_width_scales_every_layer(kind: str) -> None:
    half, whole = (build(NetSpec(kind=kind, width=width), (1, 28, 28), 10, seed=0) for width in (64, 128))
    pairs = zip(convolutions(half), convolutions(whole), strict=True)
    assert all(2 * a.out_channels == b.out_channels for a, b in pairs) and 2 * half.features == whole.features


@pytest.mark.parametrize("kind", KINDS)
def test_no_layer_mixes_records_or_keeps_statistics(kind: str) -> None:
    network = small(kind)
    x = torch.randn(4, 1, 8, 8)
    changed = x.clone()
    changed[2] = torch.randn(1, 8, 8)
    difference = (network(x) - network(changed)).abs().amax(1)
    assert difference[2] > 0 and difference[[0, 1, 3]].max() == 0
    assert not list(network.buffers())


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_fixes_the_weights(kind: str) -> None:
    first, second, other = (small(kind, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.head.weight, other.head.weight)


@pytest.mark.parametrize("kind", KINDS)
def test_twice_differentiable(kind: str) -> None:
    """Gradient matching needs the derivative of a weight gradient with respect to the pixels."""
    network = small(kind).double()
    # Always the same records: a finite difference across the kink of a ReLU is no derivative.
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(3, 1, 8, 8, dtype=torch.float64, generator=generator).requires_grad_()
    y = torch.tensor([0, 1, 2])
    weight = convolutions(network)[0].weight
    direction = torch.randn(x.shape, dtype=torch.float64, generator=generator)

    def first_order(pixels: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(network(pixels), y)
        (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
        return gradient.square().sum()

    (second,) = torch.autograd.grad(first_order(x), x)
    step = 1e-6
    slope = (first_order(x + step * direction) - first_order(x - step * direction)) / (2 * step)
    torch.testing.assert_close((second * direction).sum(), slope, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_single_records(kind: str) -> None:
    # In double precision: the instance norm of maps of a few pixels blows rounding up.
    network = small(kind).double()
    x = torch.randn(3, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    y = torch.tensor([0, 1, 2])
    weights = {name: value.detach() for name, value in network.named_parameters()}

    def loss(weights: dict[str, torch.Tensor], record: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(functional_call(network, weights, (record[None],)), label[None])

    rows = vmap(grad(loss), (None, 0, 0))(weights, x, y)
    F.cross_entropy(network(x[1:2]), y[1:2]).backward()
    torch.testing.assert_close(rows["head.weight"][1], network.head.weight.grad, rtol=1e-3, atol=1e-5)
    name = next(name for name, value in network.named_parameters() if value.dim() == 4)
    torch.testing.assert_close(rows[name][1], network.get_parameter(name).grad, rtol=1e-3, atol=1e-5)
