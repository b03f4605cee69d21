"""DP-MERF: one answer, its exact price, and a generator that learns from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from interrupted import assert_paid_once, broken_off_and_resumed, make

from limbeck.errors import BadInput, BadSettings
from limbeck.methods import method_named
from limbeck.nets.features.fourier import FourierSpec, fourier_features
from limbeck.nets.generators.merf import MerfGenerator
from limbeck.privacy.accounting import price
from limbeck.privacy.calibration import calibrate
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer
from limbeck.vault.ledger import Ledger
from working import make_plan

MNIST = Schema(
    name="m",
    shape=(1, 28, 28),
    classes=tuple("0123456789"),
    records=60_000,
    class_sizes=(6000,) * 10,
    low=0.0,
    high=255.0,
)
SMALL: dict[str, Any] = {"features": 60, "T": 6, "batch": 4, "per_class": 3, "sigma": 1.0}


@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.7306), (0.2, 16.304), (10.0, 0.49989)])
def test_the_noise_is_that_of_one_gaussian_exactly(epsilon: float, sigma: float) -> None:
    plan = make_plan(MNIST, method_named("dpmerf", {}), epsilon, 1e-5)
    (query,) = plan.queries
    # The tool rounds the multiplier up to four decimals, the reference has five digits.
    assert query.noise_multiplier == pytest.approx(sigma, abs=3e-4)
    assert plan.price.epsilon <= epsilon and plan.price.epsilon_exact == plan.price.epsilon
    assert (query.count, query.clip, query.rate, query.by_class) == (1, 1.0, (1.0,), True)


def test_class_sizes_are_bought_where_they_are_not_public() -> None:
    unknown = Schema(name="m", shape=(4,), classes=("a", "b"), records=1000, augmentation=(), low=0, high=255)
    queries = method_named("dpmerf", {}).queries(unknown, 2.0)
    assert [query.label for query in queries] == ["embedding", "counts"]
    noise = calibrate(lambda noise: method_named("dpmerf", {}).queries(unknown, noise), 1.0, 1e-5)
    assert price(method_named("dpmerf", {}).queries(unknown, noise), 1e-5).epsilon <= 1.0


def test_fourier_features_have_norm_one_and_the_kernel_as_inner_product() -> None:
    x = torch.rand((6, 20), generator=torch.Generator().manual_seed(0)) * 2 - 1
    spec = FourierSpec(numbers=20, features=20_000, bandwidth=0.7, seed=1)
    rows = fourier_features(x, spec.frequencies())
    assert torch.allclose(rows.norm(dim=1), torch.ones(6), atol=1e-5)
    kernel = torch.exp(-torch.cdist(x, x).square() / (2 * 0.7**2 * 20))
    assert torch.allclose(rows @ rows.T, kernel, atol=0.03)
    assert torch.equal(spec.frequencies(), spec.frequencies())


@pytest.mark.parametrize("wrong", [{"features": 3}, {"features": 0}, {"bandwidth": 0.0}])
def test_fourier_specs_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        FourierSpec(**{"numbers": 2, "features": 4, "bandwidth": 1.0, "seed": 0, **wrong})


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (1, 5, 9), (12,)])
def test_generators_make_records_of_any_shape(shape: tuple[int, ...]) -> None:
    for normed in (False, True):
        made = MerfGenerator(shape, 3, 5, normed)(torch.randn(6, 5), torch.arange(6) % 3)
        assert made.shape == (6, *shape) and made.abs().max() <= 1


def test_the_papers_sizes_for_digits() -> None:
    generator = MerfGenerator((1, 28, 28), 10, code=5)
    assert (generator.first.in_features, generator.first.out_features, generator.second.out_features) == (15, 200, 784)


def test_the_bandwidth_suits_the_data_and_a_run_that_was_booked_with_another_keeps_it() -> None:
    colour = Schema(
        name="c", shape=(3, 8, 8), classes=("a", "b"), records=1000, class_sizes=(500, 500), low=0, high=255
    )
    table = Schema(name="t", shape=(4,), classes=("a", "b"), records=1000, augmentation=(), low=0, high=1)
    for schema, bandwidth in ((colour, 0.3), (MNIST, 0.73), (table, 0.73)):
        plan = make_plan(schema, method_named("dpmerf", {}), 1.0, 1e-5)
        assert plan.settings["bandwidth"] == bandwidth
    booked = method_named("dpmerf", {"bandwidth": 0.73})
    assert booked.resolved(colour, 1.0) == booked
    assert booked.embedding(colour).spec.bandwidth == 0.73  # type: ignore[attr-defined]


class Plain:
    """A logbook that keeps nothing."""

    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str) -> Iterator[int]:
        return iter(range(total))


def test_the_generator_survives_colour_images() -> None:
    colour = Schema(
        name="c",
        shape=(3, 32, 32),
        classes=tuple("0123456789"),
        records=2000,
        class_sizes=(200,) * 10,
        low=0.0,
        high=255.0,
    )
    shades = torch.rand((2000, 3, 4, 4), generator=torch.Generator().manual_seed(0)) * 1.6 - 0.9
    records, labels = F.interpolate(shades, size=(32, 32)), torch.arange(10).repeat(200)

    def ask(label: str, index: int, mapping: Any) -> Answer:
        return Answer(torch.zeros(10, 300).index_add_(0, labels, mapping.rows(records, labels)).numpy())

    method = method_named("dpmerf", {"features": 300, "T": 40, "per_class": 4, "batch": 30})
    made = method.run(colour, ask, Plain(), torch.device("cpu")).x.reshape(10, 4, -1)
    assert made.std(1).mean() > 0.1


def test_the_set_is_made_from_one_answer(tmp_path: Path) -> None:
    release = read_release(make("dpmerf", SMALL, tmp_path / "out", tmp_path / "ledger.sqlite"))
    assert release.x.shape == (30, 1, 8, 8) and np.bincount(release.y).tolist() == [3] * 10
    assert release.certificate.drawn == {"embedding": 1}


@pytest.mark.parametrize(
    ("owner", "name", "call"), [(Ledger, "forget", 3), (RunLog, "_save", 4), (Ledger, "finish", 1)]
)
def test_killed_and_resumed_ends_in_the_same_set(tmp_path: Path, owner: type, name: str, call: int) -> None:
    whole = make("dpmerf", SMALL, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "ledger.sqlite"
    resumed = broken_off_and_resumed("dpmerf", SMALL, tmp_path / "out", ledger, owner, name, call)
    assert (resumed / "set.npz").read_bytes() == (whole / "set.npz").read_bytes()
    assert_paid_once(ledger)


def test_it_learns_where_the_classes_are(tmp_path: Path) -> None:
    """Of a table with one class low and one high, in proportion to the class sizes."""
    from limbeck import Condenser

    generator = np.random.default_rng(0)
    y = (np.arange(900) % 3 == 0).astype(np.int64)
    x = (0.8 * y[:, None] + generator.uniform(0, 0.2, (900, 4))).astype(np.float32)
    schema = Schema(name="flat", shape=(4,), classes=("low", "high"), records=900, low=0, high=1, augmentation=())
    settings = {"features": 200, "T": 60, "batch": 20, "bandwidth": 0.5}
    fitted = Condenser(method="dpmerf", epsilon=10.0, per_class=15, settings=settings).fit(x, y, schema=schema)
    low, high = fitted.X_[fitted.y_ == 0], fitted.X_[fitted.y_ == 1]
    assert low.mean() < -0.5 and high.mean() > 0.5
    assert len(low) + len(high) == 30 and 18 <= len(low) <= 22


@pytest.mark.parametrize(
    "settings",
    [
        {"features": 7},
        {"bandwidth": 0},
        {"T": 0},
        {"batch": 1},
        {"eta": 0},
        {"code": 0},
        {"sigma": 0},
        {"per_class": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        method_named("dpmerf", settings)
