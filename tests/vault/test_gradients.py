"""The gradient engine against a loop over single records and against Opacus."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.errors import BadInput
from limbeck.nets import KINDS, NetSpec, Network, build
from limbeck.privacy.grid import step_of
from limbeck.vault.maps import clipped_gradients as gradients
from limbeck.vault.maps.bound import Bound
from limbeck.vault.maps.clipped_gradients import SAFE, ClippedGradients
from limbeck.vault.maps.layer_gradients import Ghost, Held, product

CPU = torch.device("cpu")
CLASSES = 4
SHAPES = {"image": (1, 8, 8), "colour": (3, 16, 16), "wide": (1, 12, 20), "table": (9,)}
CASES = [
    (kind, name)
    for kind in KINDS
    for name in SHAPES
    if not (name == "table" and kind not in ("mlp", "linear"))
    and not (kind in ("alexnet", "vgg11") and name != "colour")
]


def some_records(shape: tuple[int, ...], count: int = 7, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn((count, *shape), generator=generator, dtype=dtype), torch.arange(count) % CLASSES


def engine_of(network: Network, shape: tuple[int, ...]) -> ClippedGradients:
    weights = {name: value.detach() for name, value in network.named_parameters()}
    return ClippedGradients(network, shape, weights, CPU)


def gradients_one_by_one(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    network.requires_grad_(True)
    rows = []
    for record, label in zip(x, y, strict=True):
        loss = F.cross_entropy(network(record[None]), label[None])
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.parameters()))]))
    network.requires_grad_(False)
    return torch.stack(rows)


def clipped(rows: Tensor, clip: float) -> Tensor:
    return (rows * (clip / rows.norm(dim=1, keepdim=True)).clamp(max=1.0)).sum(0)


def small(kind: str) -> NetSpec:
    return NetSpec(kind=kind, width=8 if kind in ("convnet", "mlp", "linear") else 4)


@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_the_sum_is_that_of_a_loop_over_single_records(kind: str, shape: str) -> None:
    # In double precision, where a unit at the very edge of its ReLU falls to the same side both times.
    network = build(small(kind), SHAPES[shape], CLASSES, seed=2).double()
    x, y = some_records(SHAPES[shape])
    rows = gradients_one_by_one(network, x, y)
    # Between the norms, so that some records are clipped and some are not.
    clip = rows.norm(dim=1).median().item()
    engine = engine_of(network, SHAPES[shape])
    with torch.no_grad():
        summed, each = engine.clipped_sum(x, y, Bound(clip)), engine.rows(x, y)
    assert torch.allclose(each, rows, atol=1e-9 * rows.norm().item())
    assert (summed - clipped(rows, clip)).norm() < 1e-5 * summed.norm()
    assert (summed - clipped(rows, clip * SAFE)).norm() < 1e-5 * summed.norm()


@pytest.mark.parametrize("kind", ["convnet", "lenet", "mlp"])
def test_single_precision_agrees_to_five_digits(kind: str) -> None:
    network = build(small(kind), SHAPES["image"], CLASSES, seed=2)
    x, y = some_records(SHAPES["image"], dtype=torch.float32)
    rows = gradients_one_by_one(network, x, y)
    with torch.no_grad():
        summed = engine_of(network, SHAPES["image"]).clipped_sum(x, y, Bound(1.0))
    assert (summed - clipped(rows.double(), 1.0)).norm() < 1e-5 * summed.norm()


def test_opacus_agrees() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.grad_sample import GradSampleModule
    for kind in ("convnet", "lenet", "mlp"):
        network = build(small(kind), SHAPES["image"], CLASSES, seed=2).double()
        x, y = some_records(SHAPES["image"])
        with torch.no_grad():
            ours = engine_of(network, SHAPES["image"]).clipped_sum(x, y, Bound(0.7))
        theirs = GradSampleModule(network.requires_grad_(True), loss_reduction="sum")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            F.cross_entropy(theirs(x), y, reduction="sum").backward()
        rows = torch.cat([parameter.grad_sample.flatten(1) for parameter in theirs.parameters()], dim=1)
        assert (ours - clipped(rows, 0.7)).norm() < 1e-5 * ours.norm()


def test_an_embedding_layer_is_known() -> None:
    class Words(Network):
        def __init__(self) -> None:
            super().__init__(nn.Sequential(nn.Embedding(6, 5), nn.Linear(5, 3), nn.Flatten()), 12, CLASSES)

    network = Words().double()
    x, y = torch.randint(0, 6, (7, 4), generator=torch.Generator().manual_seed(0)), torch.arange(7) % CLASSES
    rows = gradients_one_by_one(network, x, y)
    with torch.no_grad():
        summed = engine_of(network, (4,)).clipped_sum(x, y, Bound(0.5))
    assert (summed - clipped(rows, 0.5)).norm() < 1e-5 * summed.norm()


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_the_sum_does_not_depend_on_how_many_are_taken_at_a_time(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "_records_at_once", lambda network, shape: at_once)
    network = build(small("convnet"), SHAPES["image"], CLASSES, seed=2).double()
    x, y = some_records(SHAPES["image"])
    with torch.no_grad():
        summed = engine_of(network, SHAPES["image"]).clipped_sum(x, y, Bound(1.0))
    assert torch.allclose(summed, clipped(gradients_one_by_one(network, x, y), SAFE), atol=1e-8)


def test_ghost_and_held_norms_are_the_same_and_the_cheaper_is_taken() -> None:
    generator = torch.Generator().manual_seed(3)
    draw: Callable[..., Tensor] = lambda *size: torch.randn(size, generator=generator)  # noqa: E731
    entered, flow, factors = draw(5, 4, 30), draw(5, 4, 20), torch.rand(5, generator=generator)
    ghost, held = Ghost(entered, flow), Held(torch.bmm(flow.mT, entered))
    assert torch.allclose(ghost.squares(), held.squares(), rtol=1e-5)
    assert torch.allclose(ghost.weighted(factors, 0.0), held.weighted(factors, 0.0), atol=1e-4)
    assert torch.allclose(ghost.each(), held.each(), atol=1e-5)
    assert isinstance(product(draw(2, 1, 300), draw(2, 1, 100)), Ghost)  # a linear layer
    assert isinstance(product(draw(2, 256, 72), draw(2, 256, 8)), Held)  # a convolution on a large map


def test_long_rows_are_measured_and_added_in_double_precision() -> None:
    rows = torch.randn((9, 40_001), generator=torch.Generator().manual_seed(5))
    held, exact = Held(rows), rows.double()
    assert torch.allclose(held.squares(), exact.square().sum(1), rtol=1e-6)
    factors = torch.linspace(0, 1, 9, dtype=torch.float64)
    assert (held.weighted(factors, 0.0) - factors @ exact).norm() < 1e-12


def test_gradients_whose_squares_vanish_are_clipped_all_the_same() -> None:
    for step in (0.0, step_of(1e-30, 1.0)):
        part = Held(torch.full((1, 1000), 1e-25))
        factor = gradients._factors(part.squares(), Bound(1e-30, step), {"rows": part}).item()
        assert 0 < factor * 1e-25 * 1000**0.5 <= 1e-30
    short = Held(torch.full((1, 1000), 1e-3))
    assert gradients._factors(short.squares(), Bound(1.0), {"rows": short}).item() == 1.0


def test_no_record_gives_a_zero_sum_and_no_rows() -> None:
    network = build(small("convnet"), SHAPES["image"], CLASSES, seed=2)
    x, y = some_records(SHAPES["image"], 0, torch.float32)
    engine = engine_of(network, SHAPES["image"])
    numbers = sum(parameter.numel() for parameter in network.parameters())
    assert torch.equal(engine.clipped_sum(x, y, Bound(1.0)), torch.zeros(numbers, dtype=torch.float64))
    assert engine.rows(x, y).shape == (0, numbers)


@pytest.mark.parametrize("kind", ["convnet", "lenet", "mlp"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, 3e38])
def test_a_record_without_a_finite_gradient_adds_nothing_and_spoils_nothing(kind: str, value: float) -> None:
    network = build(small(kind), SHAPES["image"], CLASSES, seed=2)
    x, y = some_records(SHAPES["image"], dtype=torch.float32)
    bad = x.clone()
    bad[3] = value
    others = torch.arange(len(x)) != 3
    with torch.no_grad():
        engine = engine_of(network, SHAPES["image"])
        difference = engine.clipped_sum(bad, y, Bound(1.0)) - engine.clipped_sum(x[others], y[others], Bound(1.0))
    assert difference.isfinite().all() and difference.norm() <= 1


def test_each_layer_has_its_share_of_the_bound() -> None:
    network = build(small("convnet"), SHAPES["image"], CLASSES, seed=2).double()
    x, y = some_records(SHAPES["image"], 1)
    with torch.no_grad():
        summed = engine_of(network, SHAPES["image"]).clipped_sum(x, y, Bound(1e-3), per_layer=True)
    sizes = [parameter.numel() for parameter in network.parameters()]
    norms = torch.stack([part.norm() for part in summed.split(sizes)])
    assert norms.max() <= 1e-3 / len(sizes) ** 0.5
    with_gradient = norms[norms > 0]  # the biases of the convolutions have none
    assert len(with_gradient) == len(sizes) - 3
    assert torch.allclose(with_gradient, torch.full_like(with_gradient, 1e-3 / len(sizes) ** 0.5), rtol=1e-5)


@pytest.mark.parametrize(
    ("layer", "word"),
    [
        (nn.BatchNorm2d(3), "BatchNorm2d: it mixes the records"),
        (nn.SyncBatchNorm(3), "SyncBatchNorm: it mixes the records"),
        (nn.Conv2d(3, 3, 3, groups=3), "groups=3"),
        (nn.LayerNorm(3), "LayerNorm, for which there is no rule"),
    ],
)
def test_layers_without_a_sound_rule_are_refused_by_name(layer: nn.Module, word: str) -> None:
    network = Network(nn.Sequential(nn.Conv2d(1, 3, 3), layer, nn.Flatten()), 27, CLASSES)
    with pytest.raises(BadInput, match=r"'body\.1'") as refused:
        engine_of(network, (1, 5, 5))
    assert word in str(refused.value)


@pytest.mark.slow
def test_the_compiled_engine_agrees_as_well() -> None:
    network = build(NetSpec(kind="convnet", width=16), (1, 28, 28), CLASSES, seed=2)
    x, y = some_records((1, 28, 28), 40, torch.float32)
    rows = gradients_one_by_one(network, x, y).double()
    with torch.no_grad():
        each = engine_of(network, (1, 28, 28)).rows(x, y)
    off = (each - rows).norm(dim=1) / rows.norm(dim=1)
    # A unit at the edge of its ReLU may fall to either side, so that a few records differ by one unit's part.
    assert off.median() < 1e-5 and off.max() < 1e-2


def test_sums_of_older_bookings_are_added_up_in_double_precision() -> None:
    """Without a step. In single precision a sum of thousands of records drifts by more than the clip leaves room for."""
    rows = torch.rand((4096, 8), generator=torch.Generator().manual_seed(1))
    factors = torch.linspace(0.5, 1.5, 4096, dtype=torch.float64)
    exact = (rows.double() * factors[:, None]).sum(0)
    assert torch.allclose(Held(rows).weighted(factors, 0.0), exact, rtol=1e-12, atol=0)
