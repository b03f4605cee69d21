"""DP-MERF AE: the split of its budget, the gradient of a reconstruction, and a run whose encoder never sees a record unpaid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from interrupted import assert_paid_once, broken_off_and_resumed, make
from torch.func import functional_call

from limbeck.errors import BadInput, BadSettings
from limbeck.methods import method_named
from limbeck.nets import NetSpec, build
from limbeck.nets.features.fourier import FourierSpec
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.accounting import price
from limbeck.privacy.schema import Schema
from limbeck.release.generator import Generator, load_generator
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import CodeFourier, NetworkGradient, RandomFourier, ReconstructionGradient
from limbeck.vault.ledger import Ledger
from working import make_plan

MNIST = Schema(
    name="m", shape=(1, 28, 28), low=0, high=255, classes=tuple("0123456789"), records=60_000, class_sizes=(6000,) * 10
)
SMALL: dict[str, Any] = {
    "T_ae": 4, "B": 100, "width": 6, "features": 20, "T": 5, "batch": 3, "per_class": 3, "sigma": 1.0,
}  # fmt: skip
NET = NetSpec(kind="autoencoder", width=5)


def reconstruction(shape: tuple[int, ...] = (1, 4, 4)) -> ReconstructionGradient:
    numbers = torch.Size(shape).numel()
    weights = {name: value.detach() for name, value in build(NET, shape, numbers, seed=1).named_parameters()}
    return ReconstructionGradient(net=NET, shape=shape, classes=numbers, weights=weights)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_whole_is_within_the_budget_and_both_parts_are_priced(epsilon: float, share: float) -> None:
    plan = make_plan(MNIST, method_named("dpmerf-ae", {"share": share}), epsilon, 1e-5)
    gradients, embedding = plan.queries
    assert plan.price.epsilon <= epsilon
    assert (gradients.count, gradients.rate, gradients.by_class) == (200, (4000 / 60_000,), False)
    assert (embedding.count, embedding.rate, embedding.by_class, embedding.clip) == (1, (1.0,), True, 1.0)
    for part in plan.queries:
        assert 0 < price((part,), 1e-5).epsilon < plan.price.epsilon


def test_the_share_is_that_of_the_squares_of_signal_over_noise() -> None:
    method = method_named("dpmerf-ae", {"share": 0.3, "T_ae": 50, "B": 6000})
    gradients, embedding = method.queries(MNIST, 2.0)
    signals = 50 * 0.1**2 / gradients.noise_multiplier**2, 1 / embedding.noise_multiplier**2
    assert signals == pytest.approx((0.3 / 4, 0.7 / 4))


def test_class_sizes_are_bought_where_they_are_not_public() -> None:
    unknown = Schema(name="m", shape=(4,), classes=("a", "b"), records=1000, augmentation=(), low=0, high=255)
    queries = method_named("dpmerf-ae", {}).queries(unknown, 2.0)
    assert [query.label for query in queries] == ["autoencoder", "embedding", "counts"]


def test_rows_are_the_gradients_of_single_reconstructions() -> None:
    mapping, network = reconstruction(), build(NET, (1, 4, 4), 16, seed=1)
    x, y = torch.rand((5, 1, 4, 4), generator=torch.Generator().manual_seed(0)) * 2 - 1, torch.arange(5)
    rows = []
    for one in x:
        outputs = functional_call(network, dict(network.named_parameters()), (one[None],))
        shares = (one.flatten()[None] + 1) / 2
        loss = -(shares * F.logsigmoid(outputs) + (1 - shares) * F.logsigmoid(-outputs)).sum()
        rows.append(torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(network.parameters()))]))
    each = torch.stack(rows)
    assert torch.allclose(mapping.rows(x, y), each, atol=1e-4)
    assert torch.equal(mapping.rows(x, y), mapping.rows(x, y.flip(0)))  # a label counts for nothing
    clipped = each * (0.5 / each.norm(dim=1, keepdim=True)).clamp(max=1)
    assert torch.allclose(mapping.public_sum(x, y, 0.5), clipped.sum(0), atol=1e-4)


def test_a_reconstruction_and_a_cross_entropy_are_different_questions() -> None:
    mapping = reconstruction()
    plain = NetworkGradient(net=NET, shape=mapping.shape, classes=16, weights=mapping.weights)
    assert mapping.digest() != plain.digest()


def test_an_autoencoder_makes_as_many_numbers_as_it_reads_and_is_no_convnet() -> None:
    mapping = reconstruction()
    with pytest.raises(BadInput, match="16 numbers"):
        ReconstructionGradient(net=NET, shape=(1, 4, 4), classes=10, weights=mapping.weights)
    convnet = NetSpec(kind="convnet", width=4)
    weights = {name: value.detach() for name, value in build(convnet, (1, 8, 8), 64, seed=1).named_parameters()}
    x = torch.zeros(2, 1, 8, 8)
    with pytest.raises(BadInput, match="use an autoencoder"):
        ReconstructionGradient(net=convnet, shape=(1, 8, 8), classes=64, weights=weights).rows(x, torch.arange(2))


def test_features_are_those_of_the_code_and_of_norm_one() -> None:
    network = build(NET, (1, 4, 4), 16, seed=1)
    spec = FourierSpec(numbers=5, features=40, bandwidth=0.7, seed=3)
    weights = {name: value.detach() for name, value in network.body.named_parameters()}
    mapping = CodeFourier(net=NET, shape=(1, 4, 4), weights=weights, spec=spec)
    x, y = torch.rand((6, 1, 4, 4), generator=torch.Generator().manual_seed(0)) * 2 - 1, torch.arange(6)
    codes = network.embed(x).detach()
    assert torch.allclose(codes.mean(1), torch.zeros(6), atol=1e-5)
    assert torch.allclose(codes.square().mean(1), torch.ones(6), atol=1e-2)
    assert torch.allclose(mapping.rows(x, y), RandomFourier(spec=spec).rows(codes, y), atol=1e-5)
    assert torch.allclose(mapping.rows(x * 100, y).norm(dim=1), torch.ones(6), atol=1e-5)
    other = CodeFourier(net=NET, shape=(1, 4, 4), weights={k: v + 1 for k, v in weights.items()}, spec=spec)
    assert other.digest() != mapping.digest()


def test_a_generator_makes_codes_of_the_encoders_form_and_records_in_range() -> None:
    spec = GeneratorSpec(kind="merf_coded", latent=3, width=6)
    generator = build_generator(spec, (1, 5, 7), 4, seed=0)
    latents, labels = torch.randn(9, 3), torch.arange(9) % 4
    assert generator(latents, labels).shape == (9, 1, 5, 7) and generator(latents, labels).abs().max() <= 1
    assert torch.allclose(generator.codes(latents, labels).square().mean(1), torch.ones(9), atol=1e-2)


def test_the_set_is_made_by_the_decoder_that_is_released(tmp_path: Path) -> None:
    out = make("dpmerf-ae", SMALL, tmp_path / "out", tmp_path / "ledger.sqlite")
    release = read_release(out)
    assert release.x.shape == (30, 1, 8, 8) and release.certificate.drawn == {"autoencoder": 4, "embedding": 1}
    generator = load_generator(out)
    assert isinstance(generator, Generator)
    latents = generator.spec.latents(30, method_named("dpmerf-ae", SMALL).rng("codes", "set"))
    again = generator.network(latents, torch.from_numpy(release.y))
    assert torch.allclose(again, torch.from_numpy(release.x), atol=1e-5)
    x, y = generator.sample(12, seed=1)
    assert x.shape == (12, 1, 8, 8) and len(y) == 12


# Before the autoencoder's end, at the embedding, while the generator learns, and at the very end.
@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [(RunLog, "_save", 3), (Ledger, "forget", 4), (RunLog, "_save", 5), (RunLog, "_save", 7), (Ledger, "finish", 1)],
)
def test_killed_and_resumed_ends_in_the_same_set(tmp_path: Path, owner: type, name: str, call: int) -> None:
    whole = make("dpmerf-ae", SMALL, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "ledger.sqlite"
    resumed = broken_off_and_resumed("dpmerf-ae", SMALL, tmp_path / "out", ledger, owner, name, call)
    for file in ("set.npz", "generator.safetensors"):
        assert (resumed / file).read_bytes() == (whole / file).read_bytes()
    assert_paid_once(ledger)


@pytest.mark.parametrize(
    "settings", [{"share": 0}, {"share": 1}, {"T_ae": 0}, {"B": 0}, {"C": 0}, {"width": 1}, {"eta_ae": 0}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        method_named("dpmerf-ae", settings)
