"""One record, added or removed, moves a clipped sum by at most `clip`: replayed on neighbours, without noise."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from limbeck.nets import Augmentation, NetSpec, build
from limbeck.nets.features.fourier import FourierSpec
from limbeck.nets.features.hermite import HermiteSpec
from limbeck.privacy.grid import LEAST_CLIP, step_of
from limbeck.privacy.schema import Schema
from limbeck.vault.encoding import encode
from limbeck.vault.maps import Cells, Cut, Identity, NetworkGradient, OneHot, RandomFeatures, SecondMoment
from limbeck.vault.maps.base import Map
from limbeck.vault.maps.bound import Bound, clip_rows
from limbeck.vault.maps.hermite import Hermite
from limbeck.vault.maps.label_cells import LabelCells
from limbeck.vault.maps.labelled import Labelled
from limbeck.vault.maps.network_gradient import ReconstructionGradient, ScoreGradient
from limbeck.vault.maps.random_fourier import CodeFourier, RandomFourier
from limbeck.vault.maps.residuals import FeatureResidual, Residual, ResidualFourier
from limbeck.vault.maps.top_gradient import TopGradient
from limbeck.vault.maps.transport import Transport

SHAPE, CLASSES, RECORDS = (1, 8, 8), 3, 11
MLP = NetSpec(kind="mlp", width=5, depth=2)


def gradient(net: NetSpec, clipping: str = "joint", augmentation: Augmentation | None = None) -> NetworkGradient:
    weights = {name: value.detach() for name, value in build(net, SHAPE, CLASSES, seed=3).named_parameters()}
    return NetworkGradient(
        net=net, shape=SHAPE, classes=CLASSES, weights=weights, clipping=clipping, augmentation=augmentation
    )


def score_gradient(net: NetSpec) -> ScoreGradient:
    weights = {name: value.detach() for name, value in build(net, SHAPE, CLASSES, seed=3).named_parameters()}
    return ScoreGradient(net=net, shape=SHAPE, classes=CLASSES, weights=weights)


def reconstruction_gradient() -> ReconstructionGradient:
    net, numbers = NetSpec(kind="autoencoder", width=8), math.prod(SHAPE)
    weights = {name: value.detach() for name, value in build(net, SHAPE, numbers, seed=3).named_parameters()}
    return ReconstructionGradient(net=net, shape=SHAPE, classes=numbers, weights=weights)


def code_fourier() -> CodeFourier:
    net = NetSpec(kind="autoencoder", width=8)
    weights = {name: value.detach() for name, value in build(net, SHAPE, 1, seed=3).body.named_parameters()}
    spec = FourierSpec(numbers=8, features=50, bandwidth=0.7, seed=1)
    return CodeFourier(net=net, shape=SHAPE, weights=weights, spec=spec)


def transport(points: int, blur: float) -> Transport:
    generator = torch.Generator().manual_seed(8)
    return Transport(
        points=torch.rand((CLASSES, points, 64), generator=generator) * 2 - 1,
        potentials=torch.randn((CLASSES, points), generator=generator),
        blur=blur,
        weight=3.0,
    )


def features(kind: str, with_count: bool = False, augmented: bool = False) -> RandomFeatures:
    augmentation = Augmentation() if augmented else None
    net = NetSpec(kind=kind, width=4)
    return RandomFeatures(net=net, shape=SHAPE, seed=5, augmentation=augmentation, with_count=with_count)


def residual(form: str, by_class: bool = True, basis: bool = False) -> Residual:
    centre = torch.linspace(-1, 1, 64 * CLASSES).view(CLASSES, 64)[: CLASSES if by_class else 1]
    waves = torch.linalg.qr(torch.randn(64, 9, generator=torch.Generator().manual_seed(2)))[0].T if basis else None
    return Residual(centre=centre, scale=0.3, basis=waves, form=form)


def feature_residual(kind: str, change: tuple[float, ...] | None = None, waving: bool = False) -> FeatureResidual:
    net = NetSpec(kind=kind, width=4)
    body = build(net, SHAPE, CLASSES, seed=4).body
    weights = {name: value.detach() for name, value in body.state_dict().items()}
    features = build(net, SHAPE, CLASSES, seed=4).features
    centre = torch.linspace(-1, 1, CLASSES * features).view(CLASSES, features)
    waves = ResidualFourier(
        directions=torch.randn(features, 20, generator=torch.Generator().manual_seed(6)),
        phases=torch.linspace(0, 6, 20),
        centre=torch.linspace(-0.1, 0.1, CLASSES * 20).view(CLASSES, 20),
        scale=0.5,
    )
    return FeatureResidual(
        net=net, shape=SHAPE, weights=weights, centre=centre, scale=0.5, change=change, waves=waves if waving else None
    )


def smaller_residual() -> Residual:
    centre = torch.linspace(-1, 1, 16 * CLASSES).view(CLASSES, 16)
    return Residual(centre=centre, scale=0.3, size=(4, 4))


def smaller_feature_residual() -> FeatureResidual:
    """Of pictures that are averaged down to half of their sides."""
    net, shape = NetSpec(kind="convnet", width=4), (1, 4, 4)
    network = build(net, shape, CLASSES, seed=4)
    weights = {name: value.detach() for name, value in network.body.state_dict().items()}
    centre = torch.linspace(-1, 1, CLASSES * network.features).view(CLASSES, network.features)
    return FeatureResidual(net=net, shape=shape, weights=weights, centre=centre, scale=0.5, size=(4, 4))


def cells() -> Cells:
    """A number that may be missing, one that is cut, and categories."""
    edges = torch.tensor([-0.5, 0.0, 0.5], dtype=torch.float64)
    cuts = (
        Cut(start=0, numbers=1, edges=edges, missing=True),
        Cut(start=9, numbers=1, edges=edges),
        Cut(start=20, numbers=5, edges=edges[:0]),
        Cut(start=25, numbers=5, edges=edges[:0], missing=True, groups=(1, 0, 1, 2, 0)),
    )
    return Cells(cuts=cuts, tuples=((0,), (0, 1), (1, 2), (0, 1, 2), (3,), (2, 3), (2, 0)))


def label_cells(odds: float | None = None) -> LabelCells:
    """odds: how large the log odds of the model are; None: the label itself."""
    cuts = cells().cuts
    shape = (1 + sum(cut.cells for cut in cuts), CLASSES)
    terms = None if odds is None else torch.randn(shape, generator=torch.Generator().manual_seed(3)) * odds
    return LabelCells(cuts=cuts, classes=CLASSES, terms=terms)


MAPPINGS: dict[str, Map] = {
    "identity": Identity(),
    "shifted": Identity(shift=1.0, scale=0.5),
    "blown up": Identity(scale=1e38),
    "one hot": OneHot(classes=CLASSES),
    "second moment": SecondMoment(),
    "centred second moment": SecondMoment(centre=(0.1,) * 64),
    "convnet": features("convnet"),
    "convnet with count": features("convnet", with_count=True),
    "augmented convnet": features("convnet", augmented=True),
    "linear": features("linear"),
    "gradient": gradient(MLP),
    "gradient of a convnet": gradient(NetSpec(kind="convnet", width=4)),
    "gradient of a lenet": gradient(NetSpec(kind="lenet")),
    "gradient clipped per layer": gradient(NetSpec(kind="convnet", width=4), clipping="per_layer"),
    "augmented gradient": gradient(NetSpec(kind="convnet", width=4), augmentation=Augmentation()),
    "top gradient by norm": TopGradient(gradient=gradient(NetSpec(kind="convnet", width=4)), clip=1.0, share=0.8),
    "top gradient by dimension": TopGradient(gradient=gradient(MLP), clip=1.0, share=0.8, keep="dimension"),
    "residual": residual("vector"),
    "residual around one centre": residual("vector", by_class=False),
    "length of the residual": residual("length"),
    "outer product of the residual": residual("outer"),
    "outer product in a basis": residual("outer", basis=True),
    "residual of features": feature_residual("convnet"),
    "residual of warped features": feature_residual("convnet", (0.9, 0.1, 0.05, -0.1, 1.1, -0.05)),
    "residual of an mlp's features": feature_residual("mlp"),
    "residual and waves of features": feature_residual("convnet", waving=True),
    "residual of smaller pictures": smaller_residual(),
    "residual of smaller pictures' features": smaller_feature_residual(),
    "cells of a table": cells(),
    "cells that count differently": dataclasses.replace(cells(), weights=(1.0, 0.1, 7.0, 2.0, 2.0, 3.0, 0.5)),
    "labels by cell": label_cells(),
    "expected labels by cell": label_cells(0.5),
    "surely expected labels by cell": label_cells(1e4),
    "random fourier": RandomFourier(spec=FourierSpec(numbers=64, features=50, bandwidth=0.7, seed=1)),
    "record and label": Labelled(classes=CLASSES, weight=5.0, shift=1.0, scale=0.5),
    "transport": transport(5, 0.1),
    "transport to the nearest": transport(4, 1e-9),
    "gradient of a score": score_gradient(MLP),
    "gradient of a convnet's score": score_gradient(NetSpec(kind="convnet", width=4)),
    "gradient of a reconstruction": reconstruction_gradient(),
    "random fourier of a code": code_fourier(),
    "hermite": Hermite(spec=HermiteSpec(numbers=64, order=4, rho=0.8)),
    "hermite with pairs": Hermite(
        spec=HermiteSpec(
            numbers=64, order=2, rho=0.8, pairs=9, pair_order=2, share=0.5, height=8, width=8, reach=2, seed=1
        )
    ),
}
mappings = pytest.mark.parametrize("name", MAPPINGS)


def some_records(count: int = RECORDS, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand((count, *SHAPE), generator=generator) * 2 - 1
    return x, (torch.arange(count) * CLASSES // max(count, 1))


def summed(mapping: Map, x: Tensor, y: Tensor, clip: float, by_class: bool) -> Tensor:
    with torch.no_grad():
        row = y if by_class else torch.zeros_like(y)
        bound = Bound(clip, step_of(clip, 1.0))
        total = mapping.clipped_sum(x, row, y, CLASSES if by_class else 1, bound)
        assert torch.equal(total, total.round())  # whole steps
        return total * bound.step


def strange(kind: str) -> Tensor:
    filled = {"zeros": 0.0, "huge": 1e30, "largest": 3.4e38, "nan": math.nan, "infinite": math.inf, "low": -math.inf}
    if kind in filled:
        return torch.full(SHAPE, filled[kind])
    mixed = torch.linspace(-1, 1, math.prod(SHAPE)).view(SHAPE).clone()
    mixed[0, 0, 0], mixed[0, 1, 1], mixed[0, 2, 2] = math.nan, 1e30, -math.inf
    return mixed


@mappings
@pytest.mark.parametrize("by_class", [True, False])
@pytest.mark.parametrize("clip", [1e-3, 1.0, 50.0])
def test_adding_an_ordinary_record_moves_the_sum_by_at_most_the_clip(name: str, by_class: bool, clip: float) -> None:
    x, y = some_records()
    for place in (0, RECORDS // 2, RECORDS - 1):
        others = torch.arange(RECORDS) != place
        whole = summed(MAPPINGS[name], x, y, clip, by_class)
        moved = whole - summed(MAPPINGS[name], x[others], y[others], clip, by_class)
        assert moved.dtype == torch.float64 and moved.isfinite().all()
        assert moved.norm().item() <= clip


@mappings
@pytest.mark.parametrize("kind", ["zeros", "huge", "largest", "nan", "infinite", "low", "mixed"])
def test_adding_an_adversarial_record_moves_the_sum_by_at_most_the_clip(name: str, kind: str) -> None:
    x, y = some_records()
    more, labels = torch.cat([x, strange(kind)[None]]), torch.cat([y, torch.tensor([CLASSES - 1])])
    for clip in (1e-3, 1.0):
        for by_class in (True, False):
            moved = summed(MAPPINGS[name], more, labels, clip, by_class) - summed(MAPPINGS[name], x, y, clip, by_class)
            assert moved.isfinite().all()
            assert moved.norm().item() <= clip


@mappings
def test_the_clip_is_reached_and_not_wasted(name: str) -> None:
    x, y = some_records(1)
    # Clipped per layer, a convolution's bias, which has no gradient, leaves its share of the bound unused: 3 of 14 shares.
    reached = math.sqrt(11 / 14) if name == "gradient clipped per layer" else 1.0
    # Outer products are rounded before they are multiplied, in steps of 2^-15 of a vector.
    assert summed(MAPPINGS[name], x, y, 1e-3, True).norm().item() > 1e-3 * reached * (1 - 5e-4)


@mappings
def test_a_record_touches_the_row_of_its_class_only(name: str) -> None:
    x, y = some_records()
    moved = summed(MAPPINGS[name], x, y, 1.0, True) - summed(MAPPINGS[name], x[:-1], y[:-1], 1.0, True)
    assert moved[:-1].count_nonzero() == 0 and moved[-1].norm() > 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=64),
    st.one_of(st.floats(1e-6, 1e6), st.sampled_from([1e-44, 3e-42, 1e-40, 1e-38])),
)
def test_a_clipped_row_never_exceeds_the_clip(values: list[float], clip: float) -> None:
    clipped = clip_rows(torch.tensor([values], dtype=torch.float32), clip)
    assert clipped.isfinite().all()
    assert np.linalg.norm(clipped.double().numpy()) <= clip


def test_rows_beyond_single_precision_are_clipped_as_well() -> None:
    rows = torch.rand((500, 3072), generator=torch.Generator().manual_seed(0)) * 3.4e38
    for clip in (1.0, 0.01, 1e-5):
        assert clip_rows(rows, clip).double().norm(dim=1).max().item() <= clip


@pytest.mark.parametrize("length", [1e-140, 1e-155, 1e-160, 1e-161, 1e-200, 1e-250, 1e-307])
@pytest.mark.parametrize("shorter", [1e-10, 1e-50])
def test_rows_whose_squares_are_too_small_for_a_double_are_clipped_as_well(length: float, shorter: float) -> None:
    """A public centre or scale in double precision makes such rows. Their norm, as it is computed, may be 0."""
    rows = torch.rand((50, 64), generator=torch.Generator().manual_seed(0), dtype=torch.float64) * length
    clip = max(length * shorter, 1e-307)
    step = step_of(clip, 1.0)
    for clipped, most in ((clip_rows(rows, clip), clip), (Bound(clip, step).rows(rows), clip / step)):
        assert (clipped / most).norm(dim=1).max().item() <= 1.0


@pytest.mark.parametrize("clip", [LEAST_CLIP, 1e-30, 1.0, 1e30])
@pytest.mark.parametrize("kind", ["mlp", "linear", "convnet"])
def test_gradients_of_any_size_keep_to_the_least_clip(kind: str, clip: float) -> None:
    """From there down the factors of long gradients are no normal doubles, their products no numbers."""
    mapping = gradient(NetSpec(kind=kind, width=4, depth=2))
    sizes = torch.tensor([1e-45, 1e-30, 1e-6, 1.0, 1e6, 1e12, 1e19, 1e30, 3e38])
    x = sizes[:, None, None, None] * torch.linspace(-1, 1, 64).view(1, *SHAPE)
    x[:, 0, 0] = 0.0
    y, row, bound = torch.arange(len(x)) % CLASSES, torch.arange(len(x)), Bound(clip, step_of(clip, 0.05))
    whole = mapping.clipped_sum(x, row, y, len(x), bound)
    assert whole.isfinite().all() and torch.equal(whole, whole.round())
    assert whole.norm(dim=1).max().item() <= clip / bound.step


def test_short_rows_are_left_as_they_are() -> None:
    rows = torch.rand((5, 7), generator=torch.Generator().manual_seed(0))
    assert torch.equal(clip_rows(rows, 100.0), rows.double())


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.floats(width=32), min_size=64, max_size=64), st.integers(0, CLASSES - 1))
def test_any_record_at_all_keeps_the_bound_after_encoding(values: list[float], label: int) -> None:
    schema = Schema(name="tiny", shape=SHAPE, classes=("a", "b", "c"), records=100, high=16.0, low=0.0)
    x, y = some_records()
    encoded = encode(np.array(values, dtype=np.float32).reshape(1, *SHAPE), schema)
    assert encoded.isfinite().all() and encoded.abs().max() <= 1
    for name in ("identity", "second moment", "convnet with count", "linear", "gradient"):
        more, labels = torch.cat([x, encoded]), torch.cat([y, torch.tensor([label])])
        moved = summed(MAPPINGS[name], more, labels, 0.5, False) - summed(MAPPINGS[name], x, y, 0.5, False)
        assert moved.norm().item() <= 0.5


def test_the_second_moment_is_the_sum_of_clipped_outer_products() -> None:
    mapping = SecondMoment(centre=(0.2,) * 64)
    x, y = some_records()
    rows = torch.stack([torch.outer(z, z).flatten() for z in x.flatten(1).double() - 0.2])
    expected = torch.zeros(CLASSES, 64 * 64, dtype=torch.float64).index_add_(0, y, clip_rows(rows, 3.0))
    assert torch.allclose(summed(mapping, x, y, 3.0, True), expected, atol=2e-3)
    with torch.no_grad():
        assert torch.allclose(mapping.clipped_sum(x, y, y, CLASSES, Bound(3.0)), expected, atol=1e-5)
    assert torch.allclose(
        summed(mapping, x, y, 3.0, True), Map.clipped_sum(mapping, x, y, y, CLASSES, Bound(3.0)), atol=2e-3
    )


def test_network_gradients_are_those_of_single_records() -> None:
    x, y = some_records(5)
    rows = MAPPINGS["gradient"].rows(x, y)
    network = build(MLP, SHAPE, CLASSES, seed=3)
    for place in range(5):
        network.zero_grad()
        torch.nn.functional.cross_entropy(network(x[place : place + 1]), y[place : place + 1]).backward()
        expected = torch.cat([value.grad.flatten() for _, value in network.named_parameters()])
        assert torch.allclose(rows[place], expected, atol=1e-5)
    alone = sum(summed(MAPPINGS["gradient"], x[i : i + 1], y[i : i + 1], 0.1, True) for i in range(5))
    assert torch.allclose(summed(MAPPINGS["gradient"], x, y, 0.1, True), alone, atol=1e-5)


@mappings
def test_a_sum_in_chunks_is_the_whole_sum(name: str) -> None:
    x, y = some_records()
    whole = summed(MAPPINGS[name], x, y, 1.0, True)
    for size in (1, 4):
        parts = [summed(MAPPINGS[name], x[i : i + size], y[i : i + size], 1.0, True) for i in range(0, RECORDS, size)]
        assert torch.allclose(sum(parts), whole, atol=1e-5)


@mappings
def test_the_sum_over_no_record_is_zero(name: str) -> None:
    x, y = some_records(0)
    for by_class in (True, False):
        total = summed(MAPPINGS[name], x, y, 1.0, by_class)
        assert len(total) == (CLASSES if by_class else 1) and total.count_nonzero() == 0
