"""GS-WGAN: what it costs and what the paper's accounting would really cost, what it asks, and that it learns and resumes."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from interrupted import assert_paid_once, broken_off_and_resumed, make

import working as work
from limbeck import Condenser
from limbeck.errors import BadSettings, BudgetRefused
from limbeck.methods import method_named
from limbeck.methods.parts.generator_training import MEANS
from limbeck.privacy import renyi
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import TeacherGradient
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.generator import load_generator
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer
from limbeck.vault.ensemble.critics import Rivals
from limbeck.vault.ensemble.ensemble import Ensemble
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
SMALL: dict[str, Any] = {
    "K": 12, "T": 5, "B": 4, "block": 3, "n_dis": 2, "M": 4, "T_w": 1, "width": 2, "critic_width": 2, "per_class": 2,
    "sigma": 2.0, "snapshots": 2,
}  # fmt: skip
PAPERS: dict[str, Any] = {
    "K": 1000, "block": 1, "T": 20_000, "B": 32, "n_dis": 5, "M": 32, "T_w": 2000, "eta_G": 1e-4, "eta_D": 1e-4, "ema": 0.999,
    "latent": 10, "width": 64, "critic_width": 64,
}  # fmt: skip


def asked(**settings: Any) -> TeacherGradient:
    (query,) = method_named("gswgan", {**PAPERS, **settings}).queries(MNIST, settings.get("sigma", 1.0))
    assert isinstance(query, TeacherGradient)
    return query


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupts."""
    root = tmp_path_factory.mktemp("whole")
    return make("gswgan", SMALL, root / "out", root / "ledger.sqlite")


def test_a_critic_for_every_image_costs_what_the_paper_claims() -> None:
    query = asked(sigma=1.07)
    assert (query.teachers, query.draws, query.count, query.clip) == (1000, 32, 20_000, 2.0)
    curve = query.draws * query.count * renyi.subset_gaussian(1 / 1000, 1.07)
    assert renyi.epsilon_mironov(curve, 1e-5) == pytest.approx(9.9926, abs=1e-3)
    assert price([query], 1e-5).epsilon == pytest.approx(9.2428, abs=1e-3)


def test_one_critic_for_all_images_really_costs_thirty_times_that() -> None:
    """The published form: 32 images of a step, each noised with 1.07, all from the one critic that was drawn. They are one
    Gaussian answer of multiplier 1.07 / sqrt(32), seen with a chance of 1 / 1000; its accountant took them for 32 draws."""
    claimed = renyi.epsilon_mironov(32 * 20_000 * renyi.subset_gaussian(1 / 1000, 1.07), 1e-5)
    # On a coarse grid, which a test has the time for; on ours it is 329.4.
    once = PoissonSampledDpEvent(1 / 1000, GaussianDpEvent(1.07 / math.sqrt(32)))
    accountant = PLDAccountant(value_discretization_interval=1e-2).compose(SelfComposedDpEvent(once, 20_000))
    assert claimed == pytest.approx(9.99, abs=0.01)
    assert accountant.get_epsilon(1e-5) == pytest.approx(329.5, abs=0.2)


def test_the_unsound_form_is_no_option() -> None:
    for variant in ("paper", "C", ""):
        with pytest.raises(BadSettings, match="variant must be A"):
            method_named("gswgan", {"variant": variant})
    # One draw for the batch goes with one clip for the batch, and is booked as one release a step.
    assert asked(variant="B").draws == 1 and asked(variant="B").clip == asked().clip


@pytest.mark.parametrize(
    ("variant", "epsilon", "sigma"), [("A", 10.0, 1.0033), ("A", 1.0, 6.5159), ("B", 10.0, 0.5076), ("B", 1.0, 1.3372)]
)
def test_the_noise_of_both_variants(variant: str, epsilon: float, sigma: float) -> None:
    plan = make_plan(MNIST, method_named("gswgan", {**PAPERS, "variant": variant}), epsilon, 1e-5)
    assert plan.queries[0].noise_multiplier == pytest.approx(sigma, rel=0.01)
    assert plan.price.epsilon <= epsilon


@pytest.mark.parametrize("variant", ["A", "B"])
def test_the_set_and_its_generator_are_released(tmp_path: Path, whole: Path, variant: str) -> None:
    out = whole
    if variant == "B":
        out = make("gswgan", {**SMALL, "variant": "B"}, tmp_path / "out", tmp_path / "ledger.sqlite")
    release, generator = read_release(out), load_generator(out)
    assert release.x.shape == (20, 1, 8, 8) and np.bincount(release.y).tolist() == [2] * 10
    assert release.certificate.drawn == {"gradients": 5}
    assert (generator.spec.kind, generator.spec.law, generator.spec.fitted) == ("dcgan", "bernoulli", 0)
    latents = generator.spec.latents(20, method_named("gswgan", SMALL).rng("set"))
    again = generator.network(latents, torch.from_numpy(release.y)).numpy()
    assert np.allclose(again, release.x, atol=1e-6)
    course = json.loads((out / "course.json").read_text())
    assert len(course.pop(MEANS)) == SMALL["T"]
    assert len(course) == 2 and all(len(values) == SMALL["T"] and min(values) > 0 for values in course.values())
    kept = np.load(out / "snapshots.npz")
    assert kept["after"].tolist() == [3, 5] and np.allclose(kept["x"][-1], release.x)
    assert not np.allclose(kept["x"][0], release.x)


@pytest.mark.parametrize(
    ("owner", "name", "call"),
    [
        (Rivals, "move", 1),
        (Ensemble, "learn", 1),
        (Ensemble, "learn", 4),
        (Ledger, "store", 3),
        (RunLog, "_save", 3),
        (Ledger, "forget", 2),
        (Ledger, "finish", 1),
    ],
)
def test_killed_and_resumed_ends_in_the_same_release(
    tmp_path: Path, whole: Path, owner: type, name: str, call: int
) -> None:
    ledger = tmp_path / "own" / "ledger.sqlite"
    resumed = broken_off_and_resumed("gswgan", SMALL, tmp_path / "out", ledger, owner, name, call)
    for file in ("set.npz", "generator.safetensors", "generator.json", "snapshots.npz", "course.json"):
        assert (resumed / file).read_bytes() == (whole / file).read_bytes(), file
    assert_paid_once(ledger)
    assert not list(ledger.parent.rglob("*.sealed")), "critics are forgotten when the run is over"


def test_a_short_budget_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    request = work.asked(ledger=str(tmp_path / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, "gswgan", SMALL, None, 1e-5)
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        ledger.set_budget("digits", plan.price.epsilon / 2, 1e-4)
    with pytest.raises(BudgetRefused, match="digits"):
        work.condense(request, plan, source, tmp_path / "out", Silent())
    assert not (tmp_path / "out").exists() and not (tmp_path / "teachers").exists()


@pytest.mark.parametrize(
    ("epsilon", "given", "expected"),
    [
        (10.0, {}, {"K": 500, "T": 500, "smooth": 0.0, "block": 500}),
        (10.0, {"K": 900, "T": 20, "smooth": 0.0}, {"K": 900, "T": 20, "smooth": 0.0, "block": 900}),
        (1.0, {}, {"K": 2000, "T": 250, "smooth": 1.0, "block": 500}),
        (1.0, {"K": 400}, {"K": 400, "T": 250, "block": 400}),
    ],
)
def test_critics_and_steps_suit_the_budget(epsilon: float, given: dict[str, Any], expected: dict[str, Any]) -> None:
    plan = make_plan(MNIST, method_named("gswgan", given), epsilon, 1e-5)
    assert {name: plan.settings[name] for name in expected} == expected
    (query,) = plan.queries
    assert isinstance(query, TeacherGradient) and (query.teachers, query.count) == (expected["K"], plan.settings["T"])


def test_a_run_that_was_booked_with_no_block_has_all_critics_learn() -> None:
    for settings, block in (({"K": 900, "block": None}, None), ({"K": 900, "block": 30}, 30)):
        assert method_named("gswgan", settings)._ensemble(MNIST).block == block  # type: ignore[attr-defined]


def test_few_records_have_fewer_critics() -> None:
    few = dataclasses.replace(MNIST, records=8000, class_sizes=(800,) * 10)
    assert make_plan(few, method_named("gswgan", {}), 1.0, 1e-5).settings["K"] == 266
    assert make_plan(few, method_named("gswgan", {}), 10.0, 1e-5).settings["K"] == 500


class Noise:
    """Answers of noise alone."""

    def __call__(self, label: str, index: int, question: Any) -> Answer:
        rng = np.random.default_rng(index)
        return Answer(rng.normal(size=question.x.numel()).astype(np.float32), 1.0)


class Steps:
    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str, ends: Any = None) -> Any:
        yield from range(total)


def test_a_run_that_was_booked_before_answers_were_smoothed_goes_on_without() -> None:
    """Plans of before 0.8.0 state every setting but `smooth`."""

    def made(**settings: Any) -> np.ndarray:
        method = method_named(
            "gswgan", {**PAPERS, "K": 100, "T": 2, "snapshots": 0, "width": 4, "per_class": 1, **settings}
        )
        return method.run(MNIST, Noise(), Steps(), torch.device("cpu")).x  # type: ignore[no-any-return, union-attr]

    assert np.array_equal(made(), made(smooth=0.0))
    assert not np.array_equal(made(), made(smooth=1.0))


@pytest.mark.slow
def test_it_learns_where_the_classes_are() -> None:
    """Dark pictures of one class and bright ones of the other, from two critics."""
    y = np.arange(400) % 2
    x = (np.random.default_rng(0).uniform(0, 0.3, (400, 1, 8, 8)) + 0.7 * y[:, None, None, None]).astype(np.float32)
    schema = Schema(name="flat", shape=(1, 8, 8), classes=("dark", "bright"), records=400, low=0, high=1)
    settings = {**SMALL, "K": 2, "T": 40, "B": 16, "block": 2, "n_dis": 5, "M": 8, "T_w": 0, "sigma": 0.06}
    settings |= {"snapshots": 0, "width": 8, "critic_width": 8, "eta_G": 0.003, "eta_D": 0.003, "ema": 0.9}
    settings.pop("per_class")
    fitted = Condenser(method="gswgan", epsilon=None, per_class=20, settings=settings).fit(x, y, schema=schema)
    dark, bright = (fitted.X_[fitted.y_ == place].mean() for place in (0, 1))
    assert bright - dark > 0.2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"K": 0}, "K must be at least 1, got K=0"),
        ({"T": 0}, "T must be at least 1"),
        ({"B": 0}, "B must be at least 1"),
        ({"latent": 0}, "latent must be at least 1, got latent=0"),
        ({"C": 0}, "C must be positive, got C=0"),
        ({"sigma": -1}, "sigma must be positive"),
        ({"K": 5, "block": 6}, "block=6 critics cannot learn at a step, there are K=5"),
        ({"ema": 1}, "ema must lie in [0, 1)"),
        ({"T_w": -1}, "T_w must be at least 0"),
        ({"T": 3, "snapshots": 4}, "snapshots in 0 ... 3"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_words(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSettings) as refused:
        method_named("gswgan", settings)
    assert words in refused.value.message


def test_data_that_does_not_fit_is_refused_in_words() -> None:
    table = Schema(name="rows", shape=(4,), classes=("a", "b"), records=1000, augmentation=(), low=0, high=255)
    with pytest.raises(BadSettings, match="'rows' is a table; use --method dpmerf"):
        make_plan(table, method_named("gswgan", {"K": 10}), 10.0, 1e-5)
    few = Schema(name="few", shape=(1, 8, 8), classes=("a", "b"), records=500, low=0, high=255)
    with pytest.raises(BadSettings, match=r"K=1000 is more than the 500 records of 'few'; choose K=100 or less"):
        make_plan(few, method_named("gswgan", {"K": 1000}), 10.0, 1e-5)
