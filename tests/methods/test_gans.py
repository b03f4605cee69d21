"""DP-CGAN and DP-GAN: the price of the discriminator's steps, which gradients they take, and runs that resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from interrupted import assert_paid_once, broken_off_and_resumed, make
from torch.func import functional_call

from limbeck.errors import BadSettings
from limbeck.methods import method_named
from limbeck.methods.parts.adversary import Adversarial
from limbeck.nets import NetSpec, build
from limbeck.privacy.accounting import price
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import NetworkGradient, ScoreGradient
from limbeck.vault.ledger import Ledger

MNIST = Schema(
    name="m", shape=(1, 28, 28), low=0, high=255, classes=tuple("0123456789"), records=60_000, class_sizes=(6000,) * 10
)
SMALL: dict[str, Any] = {
    "T": 4,
    "B": 40,
    "batch": 6,
    "hidden": 5,
    "width": 2,
    "latent": 3,
    "n_dis": 2,
    "per_class": 2,
    "snapshots": 2,
    "sigma": 1.0,
}
gans = pytest.mark.parametrize("name", ["dpcgan", "dpgan"])


@gans
def test_every_step_of_the_discriminator_is_priced_and_the_generators_are_free(name: str) -> None:
    """The papers' setting: 30,000 steps at rate 600 / 60,000 with noise 2.1 is epsilon 10 or somewhat less."""
    method = method_named(name, {"T": 30_000, "B": 600, "C": 1.1, "sigma": 2.1, "n_dis": 7})
    (query,) = method.queries(MNIST, 2.1)
    assert (query.count, query.clip, query.rate, query.by_class) == (30_000, 1.1, (0.01,), False)
    assert 3.5 < price((query,), 1e-5).epsilon < 10


@pytest.mark.parametrize("net", [NetSpec(kind="mlp", width=5, depth=2), NetSpec(kind="convnet", width=4)])
@pytest.mark.parametrize("kind", [NetworkGradient, ScoreGradient])
def test_rows_are_the_gradients_of_single_records(net: NetSpec, kind: type[NetworkGradient]) -> None:
    network = build(net, (1, 8, 8), 6, seed=1)
    weights = {name: value.detach() for name, value in network.named_parameters()}
    mapping = kind(net=net, shape=(1, 8, 8), classes=6, weights=weights)
    x, y = torch.rand((5, 1, 8, 8), generator=torch.Generator().manual_seed(0)) * 2 - 1, torch.arange(5)
    rows = []
    for one, label in zip(x, y, strict=True):
        logits = functional_call(network, dict(network.named_parameters()), (one[None],))
        loss = -logits[0, label] if kind is ScoreGradient else F.cross_entropy(logits, label[None])
        parts = torch.autograd.grad(loss, list(network.parameters()), allow_unused=True)
        rows.append(
            torch.cat(
                [
                    torch.zeros(value.numel()) if part is None else part.flatten()
                    for part, value in zip(parts, network.parameters(), strict=True)
                ]
            )
        )
    each = torch.stack(rows)
    assert torch.allclose(mapping.rows(x, y), each, atol=1e-4)
    clipped = each * (0.5 / each.norm(dim=1, keepdim=True)).clamp(max=1)
    assert torch.allclose(mapping.public_sum(x, y, 0.5), clipped.sum(0), atol=1e-4)


def test_a_score_and_a_cross_entropy_are_different_questions() -> None:
    net = NetSpec(kind="mlp", width=5, depth=2)
    weights = {name: value.detach() for name, value in build(net, (4,), 3, seed=1).named_parameters()}
    maps = [kind(net=net, shape=(4,), classes=3, weights=weights) for kind in (NetworkGradient, ScoreGradient)]
    assert maps[0].digest() != maps[1].digest()


@gans
def test_a_made_record_that_looks_real_pleases_the_generator(name: str) -> None:
    method = method_named(name, {})
    assert isinstance(method, Adversarial)
    y = torch.tensor([0, 3])
    outputs = torch.zeros(2, method.outputs(MNIST))
    real = outputs.clone()
    real[torch.arange(2), y] = 2.0
    assert method.generator_loss(real, y, MNIST) < method.generator_loss(outputs, y, MNIST)


def test_the_weights_of_a_critic_are_cut() -> None:
    method = method_named("dpgan", {"c": 0.01})
    assert isinstance(method, Adversarial)
    weights = [torch.nn.Parameter(torch.linspace(-1, 1, 9))]
    method.moved(weights)
    assert weights[0].detach().abs().max().item() == pytest.approx(0.01)


@gans
@pytest.mark.parametrize(
    ("owner", "call_name", "call"), [(Ledger, "store", 2), (RunLog, "_save", 3), (Ledger, "finish", 1)]
)
def test_killed_and_resumed_ends_in_the_same_set(
    name: str, tmp_path: Path, owner: type, call_name: str, call: int
) -> None:
    whole = make(name, SMALL, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "ledger.sqlite"
    resumed = broken_off_and_resumed(name, SMALL, tmp_path / "out", ledger, owner, call_name, call)
    assert (resumed / "set.npz").read_bytes() == (whole / "set.npz").read_bytes()
    assert (resumed / "generator.safetensors").read_bytes() == (whole / "generator.safetensors").read_bytes()
    assert read_release(resumed).certificate.drawn == {"discriminator": 4}
    assert_paid_once(ledger)


@gans
@pytest.mark.parametrize(
    "settings",
    [
        {"T": 0},
        {"B": 0},
        {"C": 0},
        {"n_dis": 0},
        {"batch": 0},
        {"eta_D": 0},
        {"eta_G": -1},
        {"hidden": 0},
        {"ema": 1},
        {"sigma": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        method_named(name, settings)
