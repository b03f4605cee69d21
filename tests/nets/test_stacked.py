"""Stacked layers against ordinary ones, network by network."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.architectures.discriminator import StackedDiscriminator
from limbeck.nets.features.compression import CountSketch, Projection, Rotation
from limbeck.nets.generators.datalens import DataLensGenerator
from limbeck.nets.kernels import stacked


@pytest.fixture(autouse=True)
def single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The references are in single precision; `test_bfloat16_is_close` looks at the other one."""
    monkeypatch.setattr(stacked, "has_fast_bfloat16", lambda device: False)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(5, 2, 2), (3, 1, 1), (4, 3, 0), (1, 1, 0)])
def test_patches_and_both_derivatives(kernel: int, stride: int, padding: int) -> None:
    x = torch.randn(2, 7, 6, 3, dtype=torch.double, requires_grad=True)
    taken = stacked.patches(x, kernel, stride, padding)
    expected = F.unfold(x.movedim(-1, 1), kernel, padding=padding, stride=stride)
    assert torch.equal(taken, expected.view(2, 3, kernel**2, -1).permute(0, 3, 2, 1).flatten(2))
    assert torch.autograd.gradcheck(lambda x: stacked.patches(x, kernel, stride, padding), x)
    assert torch.autograd.gradgradcheck(lambda x: stacked.patches(x, kernel, stride, padding).square(), x)


def plain_logits(net: StackedDiscriminator, weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    """One network, with labels as maps beside the channels and as numbers beside the units."""
    label = F.one_hot(y, net.classes).float()
    layers = ["joint", "last"] if net.convolves else ["joint", "middle", "last"]
    for name in ("conv1", "conv2") if net.convolves else ():
        kernel = torch.cat([weights[f"{name}.weight"], weights[f"{name}.label"]], dim=1)
        kernel = kernel.view(5, 5, *kernel.shape[1:]).permute(3, 2, 0, 1)
        x = torch.cat([x, label[:, :, None, None].expand(-1, -1, *x.shape[2:])], dim=1)
        x = F.leaky_relu(F.conv2d(x, kernel, weights[f"{name}.bias"], stride=2, padding=2), 0.2)
    x = (x.movedim(1, -1) if net.convolves else x).flatten(1)
    by_class = 0 if net.convolves else x @ weights["template.weight"] + weights["template.bias"]
    template = 0 if net.convolves else by_class.gather(1, y[:, None])[:, 0]
    if not net.hidden:
        return template
    for name in layers:
        both = torch.cat([weights[f"{name}.weight"], weights[f"{name}.label"]])
        x = torch.cat([x, label], dim=1) @ both + weights[f"{name}.bias"]
        x = x if name == "last" else F.leaky_relu(x, 0.2)
    return x[:, 0] + template


@pytest.mark.parametrize(
    ("shape", "first", "hidden"),
    [((1, 28, 28), 11, 8), ((3, 7, 5), 4, 8), ((1, 8, 8), 0, 8), ((12,), 11, 8), ((1, 8, 8), 0, 0), ((12,), 0, 0)],
)
def test_a_row_of_discriminators_is_each_of_them(shape: tuple[int, ...], first: int, hidden: int) -> None:
    net = StackedDiscriminator(shape=shape, classes=4, first=first, second=6, hidden=hidden)
    weights = net.start([5, 6, 7])
    x, y = torch.randn(3, 5, *shape), torch.randint(0, 4, (3, 5))
    for row in range(3):
        one = {name: value[row] for name, value in weights.items()}
        assert torch.allclose(net.logits(weights, x, y)[row], plain_logits(net, one, x[row], y[row]), atol=1e-5)
    shared = net.logits(weights, x[:1], y[:1])
    assert torch.allclose(shared[2], plain_logits(net, {n: v[2] for n, v in weights.items()}, x[0], y[0]), atol=1e-5)


def test_bfloat16_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    net = StackedDiscriminator(shape=(1, 28, 28), classes=10)
    weights, x, y = net.start([1, 2]), torch.randn(2, 3, 1, 28, 28), torch.randint(0, 10, (2, 3))
    exact = net.logits(weights, x, y)
    monkeypatch.setattr(stacked, "has_fast_bfloat16", lambda device: True)
    assert torch.allclose(net.logits(weights, x, y), exact, atol=0.02) and not torch.equal(
        net.logits(weights, x, y), exact
    )


def test_the_papers_teacher_has_555_thousand_numbers() -> None:
    assert sum(math.prod(s) for s in StackedDiscriminator(shape=(1, 28, 28), classes=10).shapes().values()) == 555_059


def test_first_weights_are_those_of_their_seed() -> None:
    net = StackedDiscriminator(shape=(1, 8, 8), classes=3, first=2, second=3, hidden=4)
    both, second = net.start([3, 9]), net.start([9])
    assert all(torch.equal(both[name][1:], second[name]) for name in both)
    assert not any(torch.equal(value[0], value[1]) for value in both.values())
    assert both["joint.weight"].abs().max() <= 1 / math.sqrt(12)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (1, 5, 9), (12,)])
def test_the_generator_makes_records_of_any_shape(shape: tuple[int, ...]) -> None:
    made = DataLensGenerator(shape, 3, latent=4, width=2)(torch.randn(6, 4), torch.arange(6) % 3)
    assert made.shape == (6, *shape) and made.abs().max() <= 1


def test_the_papers_generator() -> None:
    generator = DataLensGenerator((1, 28, 28), 10)
    assert (generator.first.out_features, generator.second.out_features) == (1024, 128 * 7 * 7)


@pytest.mark.parametrize("numbers", [1, 5, 8, 784])
def test_a_rotation_keeps_lengths_and_can_be_undone(numbers: int) -> None:
    rotation, x = Rotation(dimension=numbers, seed=3), torch.randn(4, numbers, dtype=torch.double)
    assert torch.allclose(rotation(x).norm(dim=1), x.norm(dim=1))
    assert torch.allclose(rotation.back(rotation(x)), x)


def test_a_sketch_is_linear_and_remembers_what_stands_out() -> None:
    sketch = CountSketch(dimension=300, rows=5, columns=60, seed=1)
    x, other = torch.zeros(2, 300), torch.randn(2, 300)
    x[0, 17], x[1, 250] = 10.0, -10.0
    assert torch.allclose(sketch(x + other), sketch(x) + sketch(other), atol=1e-4)
    found = sketch.back(sketch(x))
    assert found[0, 17] == 10 and found[1, 250] == -10
    assert sketch.back(sketch(x + 0.1 * other)).abs().argmax(1).tolist() == [17, 250]


def test_a_projection_and_its_way_back() -> None:
    projection, x = Projection(dimension=50, kept=20_000, seed=2), torch.randn(3, 50)
    assert torch.allclose(projection.back(projection(x)), x, atol=0.2)
