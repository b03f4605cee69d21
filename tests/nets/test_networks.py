"""Shapes, seeds and specs of the networks."""

from __future__ import annotations

import itertools

import pytest
import torch

from limbeck.errors import BadInput
from limbeck.nets import KINDS, NetSpec, build, use_fused_layers

IMAGES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 7, 13)]


@pytest.mark.parametrize(("shape", "kind"), list(itertools.product(IMAGES, KINDS)))
def test_images_give_embeddings_and_logits(shape: tuple[int, ...], kind: str) -> None:
    network = build(NetSpec(kind=kind, width=8), shape, 10, seed=0)
    x = torch.randn(3, *shape)
    assert network.embed(x).shape == (3, network.features)
    assert network(x).shape == (3, 10)
    assert network.embed(x).abs().sum(1).min() > 0


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_tables(kind: str) -> None:
    network = build(NetSpec(kind=kind, width=64), (14,), 2, seed=0)
    assert network.embed(torch.randn(5, 14)).shape == (5, 64)
    assert network(torch.randn(5, 14)).shape == (5, 2)


def test_the_papers_sizes() -> None:
    assert build(NetSpec(kind="convnet"), (1, 28, 28), 10, seed=0).features == 2048
    assert build(NetSpec(kind="convnet"), (3, 32, 32), 10, seed=0).features == 2048
    mlp = build(NetSpec(kind="mlp"), (1, 28, 28), 10, seed=0)
    assert [tuple(p.shape) for p in mlp.parameters() if p.dim() == 2] == [(128, 784), (128, 128), (10, 128)]


@pytest.mark.parametrize("kind", ["convnet", "lenet"])
def test_image_networks_refuse_tables(kind: str) -> None:
    with pytest.raises(BadInput, match="images"):
        build(NetSpec(kind=kind), (14,), 2, seed=0)


def test_seed_fixes_weights_and_leaves_the_global_generator_alone() -> None:
    spec = NetSpec(kind="convnet", width=8)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = build(spec, (1, 8, 8), 10, seed=1)
    assert torch.equal(torch.rand(3), expected)
    second, other = build(spec, (1, 8, 8), 10, seed=1), build(spec, (1, 8, 8), 10, seed=2)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.head.weight, other.head.weight)


@pytest.mark.parametrize("kind", ["convnet", "mlp", "lenet"])
def test_a_row_depends_on_its_own_record_only(kind: str) -> None:
    network = build(NetSpec(kind=kind, width=8), (1, 28, 28), 10, seed=0)
    x = torch.randn(4, 1, 28, 28)
    changed = x.clone()
    changed[2] = 7.0
    difference = (network(x) - network(changed)).abs().amax(1)
    assert difference[2] > 0 and difference[[0, 1, 3]].max() == 0


def test_spec_survives_json_and_refuses_nonsense() -> None:
    spec = NetSpec(kind="mlp", width=32, depth=2)
    assert NetSpec.from_dict(spec.to_dict()) == spec
    for bad in ({"kind": "vgg"}, {"kind": "mlp", "width": 0}, {"kind": "mlp", "size": 3}, {"width": 3}):
        with pytest.raises(BadInput):
            NetSpec.from_dict(bad)


def test_fused_layers_train_as_the_plain_ones_do() -> None:
    spec, shape = NetSpec(kind="convnet", width=32), (1, 28, 28)
    x = torch.randn(6, *shape)
    plain, fused = build(spec, shape, 10, seed=0), build(spec, shape, 10, seed=0)
    use_fused_layers(fused, shape)
    for network in (plain, fused):
        with torch.no_grad():
            for name, value in network.named_parameters():
                if "norm" in name:
                    value.copy_(torch.linspace(-0.5, 1.5, len(value)))
        network(x).square().sum().backward()
    for (name, a), b in zip(plain.named_parameters(), fused.parameters(), strict=True):
        if name.endswith("conv.bias") and b.grad is None:
            continue  # the norm takes this bias away: its gradient is zero, and the fused layers skip it
        assert a.grad is not None and b.grad is not None
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3)
