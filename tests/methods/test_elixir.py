"""Elixir: its initial set, its pool of networks, and runs that are broken off."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import assert_paid_once, broken_off_and_resumed, make
from safetensors.torch import load_file

from limbeck.errors import BadSettings
from limbeck.methods.elixir.generating import GeneratorFit
from limbeck.methods.elixir.initial_set import (
    PARTS,
    ClassModel,
    Model,
    balanced_normal,
    components,
    generator_of,
    low_frequencies,
)
from limbeck.methods.elixir.method import Elixir
from limbeck.methods.elixir.set_descent import MOST_PARTS
from limbeck.methods.elixir.snapping import snapped
from limbeck.nets import FrozenEmbedding, NetSpec
from limbeck.nets.generators.spec import build_generator
from limbeck.nets.training.descent import TrainingSchedule
from limbeck.nets.training.pool import Pool
from limbeck.nets.training.warp import BACKGROUND, draw_change, warp
from limbeck.privacy.accounting import price
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.vault.api import FeatureResidual
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from working import make_plan

SETTINGS: dict[str, Any] = {
    "per_class": 2, "T": 6, "L": 30, "networks": 2, "life": 3, "memory": 3, "width": 4, "waves": 8, "sigma": 1.0,
    "generator": 0,
}  # fmt: skip
IMAGES = Schema(
    name="images", shape=(3, 12, 10), classes=("a", "b"), records=1000, class_sizes=(500, 500), low=0, high=255
)


def test_a_component_that_stands_out_is_found_with_its_true_length() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(100, 100, generator=generator, dtype=torch.float64) * 0.02
    direction = torch.zeros(100, dtype=torch.float64)
    direction[3] = 1
    found = components(1.0 * torch.outer(direction, direction) + noise)
    assert found.shape == (1, 100)
    assert found[0].norm().item() == pytest.approx(1.0, abs=0.03)
    assert abs(found[0, 3].item()) > 0.97


def test_noise_alone_has_no_components() -> None:
    for seed in range(5):
        noise = torch.randn(60, 60, generator=torch.Generator().manual_seed(seed))
        assert len(components(noise)) <= 1


@pytest.mark.parametrize(("count", "numbers"), [(50, 12), (5, 40), (2, 3), (1, 4), (6, 0)])
def test_balanced_rows_have_the_mean_and_the_covariance_that_they_stand_for(count: int, numbers: int) -> None:
    rows = balanced_normal(count, numbers, torch.Generator().manual_seed(3))
    assert rows.shape == (count, numbers)
    if count > 1:
        assert torch.allclose(rows.mean(0), torch.zeros(numbers), atol=1e-4)
    if count > numbers:
        assert torch.allclose(rows.T @ rows / count, torch.eye(numbers), atol=1e-4)


def test_rows_that_are_lined_up_obey_the_models_own_rule() -> None:
    """Three classes in 30 columns, 12 rows: far too few for least squares on the rows themselves."""
    generator = torch.Generator().manual_seed(4)
    axes = torch.randn(30, 30, generator=generator) / 6
    means = torch.randn(3, 30, generator=generator) / 4
    model = Model([ClassModel(mean, axes) for mean in means], torch.tensor([0.5, 0.3, 0.2]), 0.01)
    labels = torch.tensor([0] * 6 + [1] * 4 + [2] * 2)
    plain = model.sample(labels, generator)
    rows = model.lined_up(plain, labels)
    centre = model.shares @ means
    spread = axes.T @ axes + ((means - centre).T * model.shares) @ (means - centre) + 0.01 * torch.eye(30)
    rule = torch.linalg.solve(spread, ((means - centre) * model.shares[:, None]).T)
    scores = (rows - centre) @ rule + model.shares
    assert torch.allclose(scores, torch.nn.functional.one_hot(labels, 3).float(), atol=1e-3)
    # Nothing else changes: what the rule does not look at stays as it was drawn.
    outside = torch.eye(30) - rule @ torch.linalg.pinv(rule, rtol=1e-3)
    assert torch.allclose((rows - plain) @ outside, torch.zeros(12, 30), atol=1e-4)
    assert torch.allclose(model.lined_up(rows, labels), rows, atol=1e-3)


def test_tables_spend_everything_on_the_first_set() -> None:
    table = Schema(name="table", shape=(7,), classes=("a", "b"), records=1000, class_sizes=(500, 500), low=0, high=255)
    resolved = Elixir().resolved(table)
    assert (resolved.T, resolved.first) == (0, 1.0)
    assert {query.label for query in resolved.queries(table, 1.0)} == set(PARTS)
    assert Elixir().resolved(IMAGES).T == 0  # 500 a class are few
    assert (resolved.width, Elixir().resolved(IMAGES).width, Elixir(width=8).resolved(IMAGES).width) == (16, 32, 8)
    many = dataclasses.replace(IMAGES, records=2000, class_sizes=(1000, 1000))
    grey = dataclasses.replace(many, shape=(1, 12, 10))
    for schema, by_epsilon in ((many, [(500, 32), (500, 32), (1000, 32)]), (grey, [(500, 16), (500, 16), (500, 32)])):
        methods = [Elixir().resolved(schema, epsilon) for epsilon in (None, 1.0, 10.0)]
        assert [(method.T, method.width) for method in methods] == by_epsilon
    assert [Elixir().resolved(many, epsilon).waves for epsilon in (None, 0.2, 1.0, 10.0)] == [256, 0, 256, 256]
    assert Elixir(waves=8).resolved(many, 0.2).waves == 8


@pytest.mark.parametrize("shape", [(3, 12, 10), (1, 28, 28), (1, 5, 40), (7,)])
def test_low_frequencies_are_orthonormal(shape: tuple[int, ...]) -> None:
    basis = low_frequencies(Schema(name="x", shape=shape, classes=("a", "b"), records=10, low=0, high=255))
    assert basis.shape[1] == math.prod(shape) and len(basis) <= 200
    assert torch.allclose(basis @ basis.T, torch.eye(len(basis)), atol=1e-5)


def test_the_shares_of_the_budget_add_up_to_one_gaussian() -> None:
    method = Elixir(T=50, L=10**9, first=0.3)  # every record in every sample: no amplification
    queries = method.queries(IMAGES, 2.0)
    assert sum(query.noise_multiplier**-2 * query.count for query in queries) == pytest.approx(2.0**-2)
    assert {query.label for query in queries} == {*PARTS, "features"}


def test_a_sample_costs_about_what_all_records_cost() -> None:
    """The rule by which the noise of samples is set is a rule of thumb; the price is the accountant's."""
    whole = price(Elixir(T=400, L=10**9, first=0.2).queries(IMAGES, 4.0), 1e-5)
    sampled = price(Elixir(T=400, L=50, first=0.2).queries(IMAGES, 4.0), 1e-5)
    assert sampled.epsilon == pytest.approx(whole.epsilon, rel=0.1)


def test_samples_are_so_large_that_a_large_epsilon_buys_what_it_could_over_all_records() -> None:
    """Little noise hides little of a small sample, which then costs more than its share."""
    many = dataclasses.replace(IMAGES, records=10_000, class_sizes=(5000, 5000))

    def noise_of_a_mean(**settings: int) -> float:
        method = Elixir(T=500, **settings)
        queries = make_plan(many, method, 10.0, 1e-5).queries
        return next(query.noise_multiplier for query in queries if query.label == "features") / method.L

    everybody = noise_of_a_mean(L=5000)
    assert noise_of_a_mean() < 1.1 * everybody
    assert noise_of_a_mean(L=200) > 1.4 * everybody


def test_epsilon_is_met_from_below() -> None:
    plan = make_plan(IMAGES, Elixir(per_class=5, T=100, L=20), 1.0, 1e-5)
    assert 0.99 < plan.price.epsilon <= 1.0


def test_a_pool_goes_on_where_it_stopped() -> None:
    x = torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(1)) * 2 - 1
    y, spec = torch.arange(40) % 2, NetSpec(kind="convnet", width=4)
    once, twice = (Pool(spec, (1, 8, 8), 2, 3, torch.device("cpu")) for _ in range(2))
    for pool in (once, twice):
        for index in range(3):
            pool.renew(index, seed=index)
    schedule = TrainingSchedule(epochs=1, batch=16, decay_at=1.0)
    for seed in (5, 6):
        once.learn(1, x, y, schedule, seed)
    twice.learn(1, x, y, schedule, 5)
    kept = {name: value.clone() for name, value in twice.state.items()}
    fresh = Pool(spec, (1, 8, 8), 2, 3, torch.device("cpu"))
    for name, value in fresh.state.items():
        value.copy_(kept[name])
    fresh.learn(1, x, y, schedule, 6)
    assert torch.equal(fresh.weights[1], once.weights[1]) and torch.equal(fresh.velocity[1], once.velocity[1])
    assert not torch.equal(fresh.weights[1], twice.weights[1])
    assert torch.equal(fresh.weights[0], once.weights[0]) and fresh.ages.tolist() == [0, 2, 0]


def test_a_body_embeds_like_its_network() -> None:
    pool = Pool(NetSpec(kind="convnet", width=4), (1, 8, 8), 2, 1, torch.device("cpu"))
    pool.renew(0, seed=9)
    x = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    embedding = FrozenEmbedding(NetSpec(kind="convnet", width=4), (1, 8, 8), 9, precision="float32")
    same = FrozenEmbedding(
        NetSpec(kind="convnet", width=4), (1, 8, 8), 0, precision="float32", weights=pool.body_weights(pool.body(0))
    )
    assert torch.equal(embedding(x), same(x))


def test_a_change_moves_in_background() -> None:
    x = torch.ones(2, 1, 9, 9)
    moved = warp(x, (1.0, 0.0, 1.0, 0.0, 1.0, 0.0))
    assert moved[0, 0, 4, 0].item() == pytest.approx(1) and moved[0, 0, 4, 8].item() == pytest.approx(BACKGROUND)
    assert torch.allclose(warp(x, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)), x, atol=1e-5)
    assert warp(x[:0], (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)).shape == (0, 1, 9, 9)
    still = draw_change(torch.Generator().manual_seed(0), 0.0, 0.0, 0.0)
    assert still == (1.0, -0.0, 0.0, 0.0, 1.0, 0.0)


def test_a_mirrored_change_swaps_left_and_right() -> None:
    x = torch.rand(1, 1, 6, 6)
    drawn = [draw_change(torch.Generator().manual_seed(seed), 0.0, 0.0, 0.0, mirror=True) for seed in range(40)]
    mirrored = [change for change in drawn if change[0] < 0]
    assert 10 <= len(mirrored) <= 30
    assert torch.allclose(warp(x, mirrored[0]), x.flip(3), atol=1e-5)


def test_colour_images_that_may_be_flipped_are_mirrored() -> None:
    grey = dataclasses.replace(IMAGES, shape=(1, 12, 10))
    upright = dataclasses.replace(IMAGES, augmentation=("crop", "rotate"))
    for schema, method, mirrored in (
        (IMAGES, Elixir(), True), (IMAGES, Elixir(mirror=False), False), (upright, Elixir(), False),
        (grey, Elixir(), False), (grey, Elixir(mirror=True), True),
    ):  # fmt: skip
        changes = [method.resolved(schema).questions(schema).change(step) for step in range(20)]
        assert any(change is not None and change[0] < 0 for change in changes) is mirrored


def test_an_answer_that_is_remembered_is_matched_as_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matched: list[str] = []
    rows = FeatureResidual.rows

    def listen(question: FeatureResidual, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        matched.extend([question.digest()] if x.requires_grad else [])
        return rows(question, x, y)

    monkeypatch.setattr(FeatureResidual, "rows", listen)
    asked = questions_of({}, tmp_path, monkeypatch)
    own = {question.digest() for question in asked}  # of network, centre, change and waves
    assert len(own) == len({question.change for question in asked}) == 6
    assert set(matched) == own and len(matched) == 6 * (1 + 7) * MOST_PARTS


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [(LocalVault, "ask", 3), (LocalVault, "ask", 9), (Ledger, "store", 7), (LocalVault, "forget", 2)],
)
def test_broken_off_and_resumed_ends_in_the_same_set(owner: type, name: str, call: int, tmp_path: Path) -> None:
    whole = make("elixir", SETTINGS, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "broken.sqlite"
    resumed = broken_off_and_resumed("elixir", SETTINGS, tmp_path / "broken", ledger, owner, name, call)
    assert np.array_equal(read_release(resumed).x, read_release(whole).x)
    assert_paid_once(ledger)


@pytest.mark.parametrize("call", [3, 11])
def test_the_generator_is_taken_up_in_its_middle(call: int, tmp_path: Path) -> None:
    """In its first block of steps and in its second; nothing is said of a generator, so there is one."""
    settings = {name: value for name, value in SETTINGS.items() if name != "generator"}
    ledger = tmp_path / "broken.sqlite"
    whole = make("elixir", settings, tmp_path / "whole", tmp_path / "whole.sqlite")
    resumed = broken_off_and_resumed("elixir", settings, tmp_path / "broken", ledger, GeneratorFit, "move", call)
    first, second = (load_file(folder / "generator.safetensors") for folder in (whole, resumed))
    assert set(first) == set(second) and all(torch.equal(first[name], second[name]) for name in first)
    assert np.array_equal(read_release(resumed).x, read_release(whole).x)
    assert_paid_once(ledger)


def test_how_long_a_generator_is_matched_and_where_there_is_none() -> None:
    many = dataclasses.replace(IMAGES, records=2000, class_sizes=(1000, 1000))
    table = Schema(name="table", shape=(7,), classes=("a", "b"), records=5000, low=0, high=255)

    def chosen(schema: Schema, epsilon: float = 1.0, **settings: Any) -> tuple[int | None, str | None]:
        found = Elixir(**settings).resolved(schema, epsilon)
        found.check(schema)
        assert found.resolved(schema, epsilon) == found
        return found.generator, found.generator_kind

    assert chosen(many) == (1250, "smooth_dcgan") and chosen(many, 10.0) == (2500, "smooth_dcgan")
    assert chosen(many, T=6) == (15, "smooth_dcgan") and chosen(many, generator=7) == (7, "smooth_dcgan")
    assert chosen(many, generator=7, answers=False, generator_kind="upsampling") == (7, "upsampling")
    assert chosen(many, generator=0) == chosen(many, answers=False) == (0, None)
    assert chosen(table) == (0, None)
    assert chosen(IMAGES) == (0, "gaussian") and chosen(IMAGES, generator=0) == (0, None)
    for schema, settings, said in (
        (IMAGES, {"generator": 5}, "needs answers of networks"),
        (table, {"generator": 5}, "needs answers of networks"),
        (table, {"generator_kind": "gaussian"}, "is a table"),
        (many, {"generator_kind": "gaussian"}, "first set's model"),
        (many, {"generator": 0, "generator_kind": "upsampling"}, "generator=0"),
        (IMAGES, {"generator_kind": "upsampling"}, "generator=0"),
    ):
        with pytest.raises(BadSettings, match=said):
            chosen(schema, **settings)


def test_a_model_as_a_generator_draws_what_the_model_does() -> None:
    """The same means and spread; a class with fewer components has nothing of the others'."""
    schema = dataclasses.replace(IMAGES, shape=(1, 6, 5))
    basis, rng = low_frequencies(schema), torch.Generator().manual_seed(2)
    axes = [torch.randn(count, len(basis), generator=rng) @ basis / 20 for count in (4, 0)]
    model = Model([ClassModel(torch.full((30,), shade), one) for shade, one in zip((-0.2, 0.4), axes, strict=True)],
                  torch.tensor([0.5, 0.5]), 0.0)  # fmt: skip
    made = generator_of(model, schema, 0)
    network = build_generator(made.spec, schema.shape, 2, seed=0)
    network.load_state_dict(made.weights)
    labels = torch.tensor([1, 0]).repeat(4000)
    drawn = network(made.spec.latents(len(labels), rng), labels).flatten(1).detach()
    assert torch.allclose(drawn[labels == 1], torch.full((4000, 30), 0.4), atol=1e-5)
    own = drawn[labels == 0]
    assert torch.allclose(own.mean(0), torch.full((30,), -0.2), atol=0.02)
    assert torch.allclose(own.T.cov(), axes[0].T @ axes[0], atol=0.02)
    large = build_generator(dataclasses.replace(made.spec, size=6), (1, 24, 20), 2, seed=0)
    large.load_state_dict(made.weights)
    assert torch.allclose(
        large(torch.zeros(2, made.spec.latent), labels[:2])[0], torch.full((1, 24, 20), 0.4), atol=1e-5
    )


def questions_of(settings: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[FeatureResidual]:
    """What a run with these settings asks by its networks."""
    asked: list[FeatureResidual] = []
    answer = LocalVault.ask

    def listen(vault: LocalVault, grant: Any, label: str, index: int, mapping: Any) -> Any:
        asked.extend([mapping] if isinstance(mapping, FeatureResidual) else [])
        return answer(vault, grant, label, index, mapping)

    monkeypatch.setattr(LocalVault, "ask", listen)
    make("elixir", {**SETTINGS, **settings}, folder / "run", folder / "ledger.sqlite")
    return asked


def test_networks_without_a_life_ask_untrained_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("a random network must not learn")

    monkeypatch.setattr(Pool, "learn", fail)
    asked = questions_of({"life": 0}, tmp_path, monkeypatch)
    kernels = [next(iter(question.weights.values())) for question in asked]
    assert len(kernels) == 6 and len({tuple(kernel.flatten().tolist()) for kernel in kernels}) == 6


def test_waves_tell_how_a_class_is_spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records at both ends of a line and records in the middle have the same mean; only waves see the difference."""
    asked = questions_of({"waves": 64}, tmp_path, monkeypatch)[-1]
    assert asked.waves is not None
    features = asked.centre.shape[1]
    ends = torch.randn(features, generator=torch.Generator().manual_seed(3)) / math.sqrt(features) * 2
    apart, middle = torch.stack([ends, -ends]), torch.zeros(2, features)
    y = torch.zeros(2, dtype=torch.long)
    assert torch.allclose(apart.mean(0), middle.mean(0))
    heights = [asked.waves.rows(residuals, y).mean(0) for residuals in (apart, middle)]
    assert (heights[0] - heights[1]).norm() > 0.3


def test_waves_share_the_clip_with_the_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = questions_of({"waves": 16}, tmp_path, monkeypatch)[0]
    x = torch.rand(50, *asked.shape, generator=torch.Generator().manual_seed(3)) * 2 - 1
    y = torch.arange(50) % len(asked.centre)
    alone, both = dataclasses.replace(asked, waves=None).rows(x, y), asked.rows(x, y)
    assert asked.waves is not None and both.shape[1] == alone.shape[1] + 16
    assert torch.allclose(both[:, :-16], alone * math.sqrt(0.5), atol=1e-6)
    assert torch.allclose(both[:, -16:], asked.waves.rows(alone, y) * math.sqrt(0.5), atol=1e-5)


def test_pixels_close_to_a_bound_lie_on_it(tmp_path: Path) -> None:
    shades = torch.tensor([-1.0, -0.91, -0.89, 0.0, 0.89, 0.91, 1.0])
    assert snapped(shades, 0.05).tolist() == pytest.approx([-1, -1, -0.89, 0, 0.89, 1, 1])
    assert torch.equal(snapped(shades, 0.0), shades)
    for snap, between in ((0.2, False), (0.0, True)):
        out = tmp_path / str(snap)
        made = read_release(make("elixir", {**SETTINGS, "snap": snap}, out, tmp_path / f"{snap}.sqlite")).x
        assert bool(((abs(made) > 0.6) & (abs(made) < 1)).any()) is between


def test_news_is_what_differs_from_the_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    news = questions_of({}, tmp_path, monkeypatch)
    assert all(question.centre.abs().sum() > 0 for question in news)
    monkeypatch.undo()
    (tmp_path / "whole").mkdir()
    features = questions_of({"news": False}, tmp_path / "whole", monkeypatch)
    assert all(question.centre.abs().sum() == 0 for question in features)
    assert features[0].scale > news[0].scale  # a feature is longer than what is new about it


@pytest.mark.parametrize(
    "settings",
    [
        {"T": -1},
        {"life": -1},
        {"waves": -1},
        {"waves": 10_001},
        {"first": 0.0},
        {"first": 1.0, "T": 5},
        {"L": 0},
        {"eta": 0.0},
        {"average": 1.0},
        {"replay": -1},
        {"networks": 0},
        {"width": 0},
        {"shift": -1.0},
        {"snap": -0.1},
        {"snap": 0.6},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        Elixir(**settings)
