"""DP-SGD and TopAgg: what they ask, what they do with the answers, and a model as a release."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import assert_paid_once, broken_off_and_resumed, make
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods import TrainedModel, method_named
from limbeck.methods.dpsgd import DPSGD
from limbeck.nets import NetSpec, build
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Answer, Map, NetworkGradient, TopGradient
from limbeck.vault.ledger import Ledger

SCHEMA = Schema(name="tiny", shape=(5,), classes=("a", "b", "c"), records=400, augmentation=(), low=0, high=255)
SMALL: dict[str, Any] = {"T": 6, "B": 40, "sigma": 2.0, "net": "mlp", "width": 4, "depth": 2}
CPU = torch.device("cpu")


class Steps:
    """A logbook that keeps nothing."""

    def steps(self, total: int, state: dict[str, Tensor], answers: str) -> Iterator[int]:
        yield from range(total)


def resolved(**settings: Any) -> DPSGD:
    method = method_named("dpsgd", {**SMALL, **settings}).resolved(SCHEMA)
    assert isinstance(method, DPSGD)
    return method


def weights_of(net: NetSpec, seed: int) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in build(net, SCHEMA.shape, 3, seed).named_parameters()}


def flat(model: TrainedModel) -> Tensor:
    return torch.cat([value.flatten() for value in model.weights.values()])


def test_one_query_of_t_answers_at_the_rate_of_the_batch() -> None:
    (query,) = resolved().queries(SCHEMA, 1.5)
    assert (query.map, query.clip, query.count, query.rate) == ("network_gradient", 0.1, 6, (0.1,))
    assert not query.by_class and query.noise_std == pytest.approx(0.15)
    (whole,) = resolved(B=1000).queries(SCHEMA, 1.5)
    assert whole.rate == (1.0,)


def test_topagg_by_norm_pays_for_less_and_by_dimension_does_not() -> None:
    (plain,) = resolved().queries(SCHEMA, 1.5)
    (norm,) = resolved(topagg="norm", k=0.64).queries(SCHEMA, 1.5)
    (dimension,) = resolved(topagg="dimension", k=0.64).queries(SCHEMA, 1.5)
    assert norm.map == dimension.map == "top_gradient"
    assert norm.clip == pytest.approx(0.8 * plain.clip) and norm.noise_std == pytest.approx(0.8 * plain.noise_std)
    assert dimension.clip == plain.clip and dimension.noise_std == plain.noise_std
    # The same price: the noise follows the sensitivity.
    assert norm.noise_multiplier == plain.noise_multiplier == dimension.noise_multiplier


def test_steps_divide_by_the_public_batch_and_follow_momentum() -> None:
    """Two steps by hand, with answers that are known."""
    method = resolved(T=2, momentum=0.5, eta=3.0, average=0.0)
    asked: list[Map] = []

    def ask(label: str, index: int, mapping: Map) -> Answer:
        assert (label, index) == ("gradients", len(asked))
        asked.append(mapping)
        return Answer(np.full(flat(start).numel(), 8.0, dtype=np.float32))

    start = TrainedModel(method.classifier(SCHEMA), weights_of(method.classifier(SCHEMA), method.seed_at("weights")))
    model = method.run(SCHEMA, ask, Steps(), CPU)
    step = 3.0 * 8.0 / 40
    assert torch.allclose(flat(model), flat(start) - step - 1.5 * step, atol=1e-5)
    first, second = asked
    assert isinstance(first, NetworkGradient) and isinstance(second, NetworkGradient)
    assert all(torch.equal(first.weights[name], value) for name, value in start.weights.items())
    assert torch.allclose(flat(TrainedModel(start.net, second.weights)), flat(start) - step, atol=1e-5)


def test_the_average_of_the_weights_is_released() -> None:
    ask = lambda label, index, mapping: Answer(np.ones(39, dtype=np.float32))  # noqa: E731
    last, mean = (resolved(T=30, average=average).run(SCHEMA, ask, Steps(), CPU) for average in (0.0, 0.9))
    start = flat(TrainedModel(last.net, weights_of(last.net, resolved().seed_at("weights"))))
    moved, averaged = (start - flat(last)).mean(), (start - flat(mean)).mean()
    assert 0.5 * moved < averaged < moved


def test_topagg_asks_for_the_top_of_the_gradient() -> None:
    asked: list[Map] = []

    def ask(label: str, index: int, mapping: Map) -> Answer:
        asked.append(mapping)
        return Answer(np.zeros(39, dtype=np.float32))

    resolved(T=1, topagg="dimension", k=0.3).run(SCHEMA, ask, Steps(), CPU)
    (top,) = asked
    assert isinstance(top, TopGradient)
    assert (top.clip, top.share, top.keep) == (0.1, 0.3, "dimension")


def test_it_goes_on_from_the_model_that_the_plan_names() -> None:
    zero = lambda label, index, mapping: Answer(np.zeros(39, dtype=np.float32))  # noqa: E731
    net = resolved().classifier(SCHEMA)
    start = TrainedModel(net, weights_of(net, 99))
    method = resolved(start=start.fingerprint())
    assert torch.equal(flat(method.run_from(start, SCHEMA, zero, Steps(), CPU)), flat(start))
    with pytest.raises(BadSettings, match="not the one that the plan names"):
        method.run_from(TrainedModel(net, weights_of(net, 98)), SCHEMA, zero, Steps(), CPU)
    with pytest.raises(BadSettings, match="was not given"):
        method.run(SCHEMA, zero, Steps(), CPU)
    wider = NetSpec(kind="mlp", width=5, depth=2)
    other = TrainedModel(wider, weights_of(wider, 0))
    with pytest.raises(BadSettings, match="the plan trains"):
        resolved(start=other.fingerprint()).run_from(other, SCHEMA, zero, Steps(), CPU)


def test_a_method_that_makes_a_set_starts_from_nothing() -> None:
    net = NetSpec(kind="mlp")
    with pytest.raises(BadSettings, match="no model to start from"):
        method_named("ldpdc", {}).run_from(TrainedModel(net, {}), SCHEMA, None, None, CPU)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"T": 0}, "T=0"), ({"B": 0}, "B=0"), ({"C": 0}, "C="), ({"C": "inf"}, "C=inf"), ({"eta": -1}, "eta="),
        ({"momentum": 1}, "momentum"), ({"average": 1}, "average"), ({"width": -1}, "width"), ({"sigma": 0}, "sigma"),
        ({"topagg": "sign"}, "topagg"), ({"topagg": "norm", "k": 0}, "k="), ({"topagg": "norm", "k": 1.5}, "k="),
        ({"k": 0.8}, "topagg=norm"), ({"per_class": 5}, "makes no set"), ({"per_class": 50}, "makes no set"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        method_named("dpsgd", settings)


def test_networks_fit_the_records() -> None:
    digits = Schema(name="digits", shape=(1, 8, 8), classes=("a", "b"), records=400, low=0, high=255)
    assert method_named("dpsgd", {}).classifier(digits).kind == "convnet"  # type: ignore[attr-defined]
    table = method_named("dpsgd", {}).classifier(SCHEMA)  # type: ignore[attr-defined]
    assert (table.kind, table.depth) == ("mlp", 1)
    with pytest.raises(Exception, match="reads images"):
        method_named("dpsgd", {"net": "lenet"}).check(SCHEMA)


DIGITS: dict[str, Any] = {"T": 5, "B": 100, "sigma": 1.0, "width": 4, "depth": 1}


@pytest.mark.parametrize("topagg", ["none", "norm"])
@pytest.mark.parametrize(("name", "call"), [("store", 3), ("forget", 3), ("finish", 1)])
def test_killed_and_resumed_ends_in_the_same_model(tmp_path: Path, topagg: str, name: str, call: int) -> None:
    settings = {**DIGITS, "topagg": topagg}
    whole = make("dpsgd", settings, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "ledger.sqlite"
    resumed = broken_off_and_resumed("dpsgd", settings, tmp_path / "out", ledger, Ledger, name, call)
    for file in ("model.safetensors", "model.json", "config.json"):
        assert (resumed / file).read_bytes() == (whole / file).read_bytes()
    assert_paid_once(ledger)


def test_topagg_of_the_whole_gradient_ends_where_dp_sgd_ends(tmp_path: Path) -> None:
    from limbeck.release.model import read_model

    plain = make("dpsgd", DIGITS, tmp_path / "plain", tmp_path / "plain.sqlite")
    whole = make("dpsgd", {**DIGITS, "topagg": "norm", "k": 1.0}, tmp_path / "top", tmp_path / "top.sqlite")
    first, second = read_model(plain).model, read_model(whole).model
    # Gradients are added up in another order, and the noise is the same by its seed.
    assert torch.allclose(flat(first), flat(second), atol=1e-3)


@pytest.mark.parametrize("topagg", ["none", "norm", "dimension"])
def test_it_learns_the_digits(tmp_path: Path, cli: Any, topagg: str) -> None:
    settings = {"T": 40, "B": 300, "sigma": 0.5, "width": 8, "depth": 1, "topagg": topagg}
    release = make("dpsgd", settings, tmp_path / "out", tmp_path / "ledger.sqlite")
    assert cli("evaluate", release, "--test", "digits", "--json").json["accuracy"]["model"]["mean"] > 80


def test_a_table_is_learnt_too(tmp_path: Path) -> None:
    from limbeck import Condenser

    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 600)
    x = (y[:, None] * 0.5 + generator.uniform(0, 0.5, (600, 4))).astype(np.float32)
    schema = dataclasses.replace(SCHEMA, name="flat", shape=(4,), classes=("a", "b"), records=600, low=0, high=1)
    fitted = Condenser(method="dpsgd", epsilon=3.0, settings={"T": 50, "B": 200}).fit(x, y, schema=schema)
    assert not hasattr(fitted, "X_") and fitted.certificate_.content == "model"
    guessed = fitted.model_(torch.from_numpy(2 * x - 1)).argmax(1).numpy()
    assert (guessed == y).mean() > 0.9 and math.isclose(fitted.certificate_.epsilon, 3.0, rel_tol=1e-2)
