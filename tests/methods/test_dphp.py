"""DP-HP: Hermite features have norm 1 at most, one answer, its exact price, and a run that resumes to the same set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from interrupted import assert_paid_once, broken_off_and_resumed, make

from limbeck.errors import BadInput, BadSettings
from limbeck.methods import method_named
from limbeck.nets.features.hermite import HermiteSpec, hermite_features, hermite_values
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer
from limbeck.vault.ledger import Ledger
from working import make_plan

MNIST = Schema(
    name="m", shape=(1, 28, 28), low=0, high=255, classes=tuple("0123456789"), records=60_000, class_sizes=(6000,) * 10
)
SMALL: dict[str, Any] = {
    "C": 3,
    "pairs": 20,
    "C_pair": 1,
    "share": 0.5,
    "reach": 2,
    "T": 6,
    "batch": 4,
    "per_class": 3,
    "sigma": 1.0,
}


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.7306), (0.2, 16.304), (10.0, 0.49989)])
def test_the_noise_is_that_of_one_gaussian_exactly(epsilon: float, sigma: float) -> None:
    plan = make_plan(MNIST, method_named("dphp", {}), epsilon, 1e-5)
    (query,) = plan.queries
    assert query.noise_multiplier == pytest.approx(sigma, abs=3e-4)
    assert plan.price.epsilon <= epsilon and plan.price.epsilon_exact == plan.price.epsilon
    assert (query.count, query.clip, query.rate, query.by_class, query.map) == (1, 1.0, (1.0,), True, "hermite")


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("spread", [1.0, 5.0, 1e3, 1e30])
def test_values_have_norm_one_at_most_and_the_kernel_as_inner_product(rho: float, spread: float) -> None:
    x = torch.linspace(-spread, spread, 41, dtype=torch.float64)
    values = torch.stack(hermite_values(x, 200, rho))
    assert values.isfinite().all() and values.square().sum(0).max() <= 1 + 1e-9
    if spread == 1:
        kernel = torch.exp(-rho / (1 - rho**2) * (x[:, None] - x).square())
        assert torch.allclose(values.T @ values, kernel, atol=1e-3)


def test_the_features_are_those_of_the_polynomials() -> None:
    x, rho = torch.linspace(-1, 1, 9, dtype=torch.float64), 0.6
    polynomials = (torch.ones_like(x), 2 * x, 4 * x**2 - 2, 8 * x**3 - 12 * x)
    for c, (value, polynomial) in enumerate(zip(hermite_values(x, 3, rho), polynomials, strict=True)):
        norm = 2**c * torch.lgamma(torch.tensor(c + 1.0)).exp() * ((1 - rho) / (1 + rho)) ** 0.5
        expected = ((1 - rho) * rho**c / norm) ** 0.5 * polynomial * torch.exp(-rho / (1 + rho) * x**2)
        assert torch.allclose(value, expected, atol=1e-7)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 30.0])
def test_a_row_has_norm_one_at_most(share: float, spread: float) -> None:
    pairs = {"pairs": 40, "pair_order": 12, "share": share} if share else {}
    spec = HermiteSpec(numbers=30, order=30, rho=0.7, seed=2, **pairs)  # type: ignore[arg-type]
    x = (torch.rand((200, 30), generator=torch.Generator().manual_seed(1)) * 2 - 1) * spread
    norms = hermite_features(x, spec, spec.places()).norm(dim=1)
    assert norms.max() <= 1
    assert spread > 1 or norms.min() > 0.9  # and no more noise than it takes


@pytest.mark.parametrize("reach", [1, 3])
def test_pairs_of_a_picture_are_near_each_other_and_in_one_plane(reach: int) -> None:
    spec = HermiteSpec(numbers=3 * 5 * 7, order=1, rho=0.5, pairs=500, share=0.5, height=5, width=7, reach=reach)
    first, second = spec.places()
    assert torch.equal(first // 35, second // 35)
    for one, other in ((first % 35 // 7, second % 35 // 7), (first % 7, second % 7)):
        assert (one - other).abs().max() == reach


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": -1},
        {"order": 10_000},
        {"rho": 1.0},
        {"rho": 0.0},
        {"pair_rho": 1.0},
        {"share": 1.0},
        {"share": -0.1},
        {"pairs": 3},
        {"share": 1.0, "pairs": 3},
        {"numbers": 0},
        {"reach": 2},
        {"reach": 2, "height": 3, "width": 3},
        {"reach": -1, "height": 2, "width": 2},
    ],
)
def test_specs_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        HermiteSpec(**{"numbers": 4, "order": 2, "rho": 0.5, **wrong})


@pytest.mark.parametrize(
    "settings",
    [
        {"C": -1},
        {"C": 201},
        {"rho": 1},
        {"pairs": -1},
        {"reach": -1},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        method_named("dphp", settings)


@pytest.mark.parametrize("settings", [{"share": 0.2, "pairs": 0}, {"share": 0, "pairs": 5}])
def test_a_share_without_pairs_is_refused_before_anything_is_planned(settings: dict[str, Any]) -> None:
    """Together, so that each setting's own bounds are told first."""
    schema = Schema(name="grey", shape=(1, 8, 8), classes=("a", "b"), records=60_000, low=0, high=255)
    with pytest.raises(BadSettings, match="both are 0 or neither is"):
        method_named("dphp", settings).check(schema)


class Plain:
    """A logbook that keeps nothing."""

    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str) -> Iterator[int]:
        return iter(range(total))


@pytest.mark.parametrize("seed", range(3))
def test_the_generator_survives_a_dark_background(seed: int) -> None:
    """Nine tenths of the pixels are black: all of a picture was, within 20 steps, and stayed so for hundreds at some seeds."""
    labels = torch.arange(300) % 3
    records = torch.full((300, 1, 28, 28), -1.0)
    for label in range(3):
        records[labels == label, :, 8 * label + 2 : 8 * label + 9, 8:20] = 0.9
    schema = Schema(
        name="d", shape=(1, 28, 28), low=0, high=255, classes=tuple("abc"), records=300, class_sizes=(100,) * 3
    )

    def ask(label: str, index: int, mapping: Any) -> Answer:
        rows = mapping.rows(records, labels)
        return Answer(torch.zeros(3, rows.shape[1]).index_add_(0, labels, rows).numpy())

    method = method_named("dphp", {"T": 60, "batch": 8, "per_class": 4, "seed": seed})
    made = torch.from_numpy(method.run(schema, ask, Plain(), torch.device("cpu")).x)
    inside = torch.stack([made[4 * k : 4 * k + 4, 0, 8 * k + 3 : 8 * k + 8, 9:19].mean() for k in range(3)])
    assert inside.min() > 0.3 and made[:, :, 26:, :4].max() < -0.5


def test_the_sum_kernel_alone_goes_through_the_vault(tmp_path: Path) -> None:
    settings = {"C": 2, "T": 2, "batch": 2, "per_class": 1, "sigma": 1.0}
    release = read_release(make("dphp", settings, tmp_path / "out", tmp_path / "ledger.sqlite"))
    assert release.x.shape == (10, 1, 8, 8) and release.certificate.drawn == {"embedding": 1}


def test_the_set_is_made_from_one_answer_and_its_generator_is_released(tmp_path: Path) -> None:
    out = make("dphp", SMALL, tmp_path / "out", tmp_path / "ledger.sqlite")
    release = read_release(out)
    assert release.x.shape == (30, 1, 8, 8) and release.certificate.drawn == {"embedding": 1}
    assert (out / "generator.safetensors").exists() and (out / "generator.json").exists()


@pytest.mark.parametrize(
    ("owner", "name", "call"), [(Ledger, "forget", 3), (RunLog, "_save", 4), (Ledger, "finish", 1)]
)
def test_killed_and_resumed_ends_in_the_same_set(tmp_path: Path, owner: type, name: str, call: int) -> None:
    whole = make("dphp", SMALL, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "ledger.sqlite"
    resumed = broken_off_and_resumed("dphp", SMALL, tmp_path / "out", ledger, owner, name, call)
    assert (resumed / "set.npz").read_bytes() == (whole / "set.npz").read_bytes()
    assert_paid_once(ledger)
