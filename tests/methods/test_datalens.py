"""DataLens, G-PATE and PATE-GAN: prices, switches, settings that make no sense, and runs that are broken off."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import assert_paid_once, broken_off_and_resumed, make

import working as work
from limbeck.errors import BadInput, BadSettings, BudgetRefused, RunConflict
from limbeck.methods import method_named
from limbeck.methods.base import SyntheticSet
from limbeck.methods.parts.smoothing import smoothed
from limbeck.methods.pategan import PATEGAN
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import TeacherVote
from limbeck.privacy.renyi import gaussian_epsilon_mironov
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.generator import load_generator
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer, Asked, Discriminator, FeatureTeacher
from limbeck.vault.ensemble.ensemble import Ensemble
from limbeck.vault.ensemble.store import EnsembleStore
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
TINY: dict[str, Any] = {
    "teachers": 30, "T": 4, "batch": 6, "teacher_batch": 4, "first_steps": 2, "first": 2, "second": 3, "hidden": 8, "width": 4,
    "latent": 3, "per_class": 3,
}  # fmt: skip
PAPERS: dict[str, Any] = {
    "teachers": 4000, "T": 149, "batch": 15, "teacher_batch": 15, "teacher_steps": 2, "first_steps": 10, "teacher_eta": 1e-3,
    "teacher_decay": 0.0, "first": 11, "hidden": 256, "latent": 50, "width": 128, "k": 200, "beta": 0.7, "gamma": 1.0, "fit": 1,
    "smooth": 0.0,
}  # fmt: skip
SMALL = {
    "datalens": {**TINY, "sigma": 60.0, "k": 20, "beta": 0.2, "snapshots": 2},
    "gpate": {**TINY, "sigma": 20.0, "kept": 4, "bins": 3},
    "pategan": {**TINY, "sigma": 20.0, "student_steps": 2},
}


def vote_of(name: str, **settings: Any) -> TeacherVote:
    (query,) = method_named(name, settings).queries(MNIST, 1.0)
    assert isinstance(query, TeacherVote)
    return query


# Prices


def test_149_steps_for_epsilon_one_and_86_by_the_papers_route() -> None:
    def exact(steps: int) -> float:
        return price([vote_of("datalens", k=200, sigma=5000.0, batch=15, T=steps)], 1e-5).epsilon

    def papers(steps: int) -> float:
        return gaussian_epsilon_mironov(2 * math.sqrt(200 * 15 * steps) / 5000, 1e-5)

    assert exact(149) <= 1 < exact(150)
    assert papers(86) <= 1 < papers(87)
    assert exact(86) == pytest.approx(0.738, abs=1e-3)


def test_the_noise_follows_from_epsilon() -> None:
    plan = make_plan(MNIST, method_named("datalens", PAPERS), 1.0, 1e-5)
    (query,) = plan.queries
    assert isinstance(query, TeacherVote) and (query.teachers, query.count) == (4000, 149)
    assert query.clip == pytest.approx(2 * math.sqrt(200 * 15))
    assert query.noise_std == pytest.approx(4988.5, abs=1) and plan.price.epsilon == plan.price.epsilon_exact <= 1


@pytest.mark.parametrize(
    ("settings", "clip"),
    [
        ({}, 2 * math.sqrt(200 * 15)),
        ({"top_k": False}, 2 * math.sqrt(784 * 15)),
        ({"stochastic": False, "threshold": False}, 2 * math.sqrt(200 * 15)),
        ({"aggregate": "d2pfed", "levels": 4}, 2 * 3 * math.sqrt(1024 * 15)),
        ({"aggregate": "fetchsgd", "rows": 5}, 2 * math.sqrt(5 * 200 * 15)),
    ],
)
def test_every_form_states_its_sensitivity(settings: dict[str, Any], clip: float) -> None:
    assert vote_of("datalens", **{**PAPERS, **settings}).clip == pytest.approx(clip)


def test_baselines_state_theirs() -> None:
    assert vote_of("pategan", batch=64).clip == 8
    assert vote_of("gpate", batch=15, kept=10).clip == pytest.approx(math.sqrt(300))


# Runs


@pytest.mark.parametrize("name", SMALL)
def test_a_run_ends_in_a_set_and_a_generator(tmp_path: Path, name: str) -> None:
    out = make(name, SMALL[name], tmp_path / "out", tmp_path / "ledger.sqlite")
    release = read_release(out)
    assert release.x.shape == (30, 1, 8, 8) and np.bincount(release.y).tolist() == [3] * 10
    assert release.certificate.drawn == {"votes": 4}
    more, labels = load_generator(out).sample(20, seed=1)
    assert more.shape == (20, 1, 8, 8) and np.bincount(labels).tolist() == [2] * 10
    assert not (tmp_path / "teachers").exists()
    assert_paid_once(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": False},
        {"stochastic": False},
        {"threshold": False, "fit": 2},
        {"first": 0},
        {"first": 0, "hidden": 0},
        {"teacher_decay": 1.0},
        {"smooth": 0.0},
        {"aggregate": "d2pfed", "levels": 4},
        {"aggregate": "fetchsgd", "rows": 3, "columns": 30},
    ],
)
def test_every_switch_changes_the_set(tmp_path: Path, settings: dict[str, Any]) -> None:
    short = {**SMALL["datalens"], "T": 2, "sigma": 20.0, "snapshots": 0, "c": 1.0}
    plain, other = (
        read_release(make("datalens", chosen, tmp_path / name, tmp_path / f"{name}.sqlite")).x
        for name, chosen in (("plain", short), ("other", {**short, **settings}))
    )
    assert np.isfinite(other).all() and not np.array_equal(plain, other)


@pytest.mark.parametrize(
    ("owner", "called", "call"),
    [
        (Ledger, "store", 3),
        (Ledger, "forget", 2),
        (EnsembleStore, "save", 2),
        (RunLog, "_save", 1),
        (Ensemble, "learn", 3),
    ],
)
def test_killed_and_resumed_ends_in_the_same_set(tmp_path: Path, owner: type, called: str, call: int) -> None:
    settings, ledger = SMALL["datalens"], tmp_path / "ledger.sqlite"
    whole = make("datalens", settings, tmp_path / "whole", tmp_path / "whole.sqlite")
    resumed = broken_off_and_resumed("datalens", settings, tmp_path / "out", ledger, owner, called, call)
    for name in ("set.npz", "snapshots.npz", "generator.safetensors", "course.json"):
        assert (resumed / name).read_bytes() == (whole / name).read_bytes()
    assert_paid_once(ledger)
    assert not (tmp_path / "teachers").exists()


@pytest.mark.parametrize("name", ["gpate", "pategan"])
def test_baselines_resume_too(tmp_path: Path, name: str) -> None:
    whole = make(name, SMALL[name], tmp_path / "whole", tmp_path / "whole.sqlite")
    resumed = broken_off_and_resumed(name, SMALL[name], tmp_path / "out", tmp_path / "l.sqlite", Ledger, "forget", 2)
    assert (resumed / "set.npz").read_bytes() == (whole / "set.npz").read_bytes()


def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that stops after its second checkpoint."""
    original, calls = Ledger.forget, [0]

    def breaking(self: Ledger, *arguments: Any) -> None:
        calls[0] += 1
        original(self, *arguments)
        if calls[0] == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "forget", breaking)
        with pytest.raises(KeyboardInterrupt):
            make("datalens", SMALL["datalens"], tmp_path / "out", tmp_path / "ledger.sqlite")
    return tmp_path / "out"


def test_teachers_wait_in_the_vaults_folder_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = interrupted(tmp_path, monkeypatch)
    (folder,) = (tmp_path / "teachers").iterdir()
    assert {path.suffix for path in folder.iterdir()} == {"", ".sealed"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    size = next(folder.glob("*.sealed")).stat().st_size
    inside = [path for path in out.rglob("*") if path.is_file()]
    assert not [path for path in inside if path.suffix == ".sealed"] and size > 30 * 100 * 4
    assert json.loads((out / ".run" / "run.json").read_text())["grant"] == folder.name


def test_lost_teachers_are_a_sentence_and_nothing_more_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = interrupted(tmp_path, monkeypatch)
    next((tmp_path / "teachers").rglob("*.sealed")).unlink()
    with pytest.raises(RunConflict, match="checkpoint is missing or older"):
        work.resume(out, Silent())
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        (booking,) = ledger.accounts()[0].bookings
        assert ledger.drawn(booking.grant) == {"votes": 2}


def test_a_budget_that_is_short_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with Ledger.open(ledger) as book:
        book.set_budget("digits", 0.01, 1e-4)
    with pytest.raises(BudgetRefused):
        make("datalens", SMALL["datalens"], tmp_path / "out", ledger)
    assert not (tmp_path / "out").exists() and not (tmp_path / "teachers").exists()


def test_it_learns_where_the_classes_are() -> None:
    """Of a table with one class low and one high."""
    from limbeck import Condenser

    random = np.random.default_rng(0)
    y = (np.arange(900) % 2).astype(np.int64)
    x = (0.8 * y[:, None] + random.uniform(0, 0.2, (900, 4))).astype(np.float32)
    schema = Schema(name="flat", shape=(4,), classes=("low", "high"), records=900, low=0, high=1, augmentation=())
    settings = {
        "teachers": 60, "T": 40, "batch": 8, "teacher_batch": 8, "hidden": 8, "width": 4, "latent": 2, "k": 4, "beta": 0.3,
        "eta": 0.01, "teacher_eta": 0.01, "fit": 3,
    }  # fmt: skip
    fitted = Condenser(method="datalens", epsilon=8.0, per_class=15, settings=settings).fit(x, y, schema=schema)
    assert fitted.X_[fitted.y_ == 0].mean() < -0.2 < 0.2 < fitted.X_[fitted.y_ == 1].mean()


def test_a_student_of_pategan_believes_what_gets_more_votes_than_usual_in_its_class() -> None:
    votes, labels = torch.tensor([-50.0, -40.0, -30.0, 5.0, 9.0, 7.0]), torch.tensor([0, 0, 0, 1, 1, 1])
    method = method_named("pategan", {})
    assert isinstance(method, PATEGAN)
    assert method._believed(votes, labels).tolist() == [
        0,
        0,
        1,
        0,
        1,
        0,
    ]  # a majority of teachers would be 0, 0, 0, 1, 1, 1


def test_of_records_that_stray_a_student_believes_their_ranks() -> None:
    votes, labels = torch.tensor([-50.0, -40.0, -30.0, 5.0, 9.0, 7.0]), torch.tensor([0, 0, 0, 1, 1, 1])
    method = method_named("pategan", {"stray": 0.5})
    assert isinstance(method, PATEGAN)
    assert method._believed(votes, labels).tolist() == [0, 0.5, 1, 0, 1, 0.5]


# What makes no sense


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"teachers": 60_001}, "more than the 60000 records"),
        ({"teachers": 20_000}, "3.0 records of 'm' for each"),
        ({"k": 785}, "more than the 784 numbers"),
        ({"snapshots": 21}, "T = 20, got snapshots=21"),
    ],
)
def test_what_does_not_fit_the_data_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSettings, match=sentence):
        make_plan(MNIST, method_named("datalens", settings), 1.0, 1e-5)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("datalens", {key: 0}) for key in ("teachers", "T", "batch", "teacher_steps", "second", "latent", "width")],
        *[
            ("datalens", {key: 0})
            for key in ("k", "fit", "rows", "c", "gamma", "eta", "teacher_eta", "sigma", "levels")
        ],
        ("datalens", {"first": -1}),
        ("datalens", {"hidden": -1}),
        ("datalens", {"first": 2, "hidden": 0}),
        ("pategan", {"first": 2}),
        ("datalens", {"teacher_decay": -1.0}),
        ("datalens", {"smooth": -0.5}),
        ("datalens", {"beta": -0.1}),
        ("datalens", {"aggregate": "mean"}),
        ("datalens", {"snapshots": 21, "T": 20}),
        ("datalens", {"snapshots": -1}),
        ("gpate", {"kept": 0}),
        ("gpate", {"bins": 1}),
        ("gpate", {"confident": 1.5}),
        ("gpate", {"c": 0}),
        ("pategan", {"student_steps": 0}),
        ("pategan", {"student_eta": 0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        method_named(name, wrong)


def test_teachers_over_features_are_there_where_they_were_booked() -> None:
    """Plans of before 0.8.0 do not state `features`."""
    for name in ("datalens", "gpate", "pategan"):
        before, none = (method_named(name, given).teacher(MNIST) for given in ({"teachers": 9}, {"features": 0}))  # type: ignore[attr-defined]
        assert before == none and isinstance(none, Discriminator)
        found = method_named(name, {"features": 12, "hidden": 0}).teacher(MNIST)  # type: ignore[attr-defined]
        assert isinstance(found, FeatureTeacher) and found.features == 12
        with pytest.raises(BadSettings, match="features=12 go with hidden=0 only, got hidden=8"):
            method_named(name, {"features": 12, "hidden": 8})


@pytest.mark.parametrize(
    ("epsilon", "given", "expected"),
    [
        (1.0, {}, {"T": 20, "k": 300, "beta": 0.15, "gamma": 0.3}),
        (10.0, {}, {"T": 60, "k": 784, "beta": 0.05, "gamma": 0.1}),
        (10.0, {"T": 5, "k": 9, "beta": 0.0, "gamma": 2.0}, {"T": 5, "k": 9, "beta": 0.0, "gamma": 2.0}),
        (10.0, {"aggregate": "fetchsgd"}, {"T": 20, "k": 300}),
        (None, {"sigma": 5000.0}, {"T": 20, "k": 300}),
    ],
)
def test_what_is_left_out_suits_the_budget(
    epsilon: float | None, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    plan = make_plan(MNIST, method_named("datalens", given), epsilon, 1e-5)
    assert {name: plan.settings[name] for name in expected} == expected
    assert [query.count for query in plan.queries] == [expected["T"]]


@pytest.mark.parametrize(
    ("epsilon", "given", "expected"),
    [
        (1.0, {}, {"T": 20, "kept": 300, "teachers": 5000, "hidden": 0, "smooth": 0.8}),
        (10.0, {}, {"T": 60, "kept": 100, "teachers": 1000, "hidden": 32, "smooth": 0.8}),
        (10.0, {"T": 5, "teachers": 300, "smooth": 0.0}, {"T": 5, "kept": 100, "teachers": 300, "smooth": 0.0}),
    ],
)
def test_projections_suit_the_budget(epsilon: float, given: dict[str, Any], expected: dict[str, Any]) -> None:
    plan = make_plan(MNIST, method_named("gpate", given), epsilon, 1e-5)
    assert {name: plan.settings[name] for name in expected} == expected
    assert [query.count for query in plan.queries] == [expected["T"]]


class Votes:
    """Answers of noise alone."""

    def __init__(self, width: int) -> None:
        self.width = width

    def __call__(self, label: str, index: int, mapping: Asked) -> Answer:
        return Answer(np.random.default_rng(index).normal(0, 9, self.width).astype(np.float32))


class Steps:
    def steps(
        self, total: int, state: dict[str, torch.Tensor], answers: str, ends: Callable[[int], int] | None = None
    ) -> Iterator[int]:
        return iter(range(total))


def made_of_noise(name: str, settings: dict[str, Any], width: int) -> np.ndarray:
    """Without `resolved`, as a run that is read back from its plan."""
    made = method_named(name, settings).run(MNIST, Votes(width), Steps(), torch.device("cpu"))
    assert isinstance(made, SyntheticSet)
    return made.x


BOOKED: dict[str, Any] = {
    "T": 2, "batch": 20, "eta": 0.001, "first": 0, "first_steps": 20, "fit": 2, "hidden": 0, "latent": 3, "per_class": 1,
    "second": 42, "seed": 0, "sigma": None, "snapshots": 0, "teacher_batch": 10, "teacher_decay": 10.0, "teacher_eta": 0.003,
    "teacher_steps": 2, "teachers": 200, "width": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "plan", "width", "off", "on"),
    [
        (
            "gpate",
            {**BOOKED, "kept": 10, "bins": 10, "c": 0.001, "confident": 0.0, "gamma": 0.5},
            2000,
            {"smooth": 0.0},
            {"smooth": 0.8},
        ),
        (
            "pategan",
            {**BOOKED, "student_steps": 2, "student_eta": 0.003},
            20,
            {"stray": 0.0, "coarse": 0.0, "gamma": 0.0, "learners": 20},
            {"stray": 0.5},
        ),
    ],
)
def test_a_run_that_was_booked_without_a_setting_goes_on_without_it(
    name: str, plan: dict[str, Any], width: int, off: dict[str, Any], on: dict[str, Any]
) -> None:
    """Plans of before 0.7.0 state every setting but those that were not there yet."""
    old = made_of_noise(name, plan, width)
    assert np.array_equal(old, made_of_noise(name, {**plan, **off}, width))
    assert not np.array_equal(old, made_of_noise(name, {**plan, **on}, width))


def test_a_table_with_few_columns_needs_no_other_k() -> None:
    table = Schema(name="t", shape=(7,), classes=("a", "b"), records=10_000, low=0, high=255)
    assert method_named("datalens", {}).resolved(table).queries(table, 1.0)[0].clip == pytest.approx(
        2 * (7 * 20) ** 0.5
    )


def test_a_projection_larger_than_a_record_is_refused() -> None:
    with pytest.raises(BadInput, match="kept=785"):
        make_plan(MNIST, method_named("gpate", {"kept": 785}), 1.0, 1e-5)


def test_a_threshold_keeps_what_many_agree_on() -> None:
    method = method_named("datalens", {"teachers": 10, "beta": 0.5})
    noisy = torch.tensor([[6.0, -7.0, 4.9, 0.0]])
    assert method._direction(noisy, method.chosen(MNIST)).tolist() == [[1.0, -1.0, 0.0, 0.0]]
    free = method_named("datalens", {"teachers": 10, "threshold": False})
    assert torch.allclose(free._direction(noisy, free.chosen(MNIST)), noisy / 10)


def test_smoothing_keeps_what_is_flat_and_averages_noise() -> None:
    flat = smoothed(torch.full((2, 3, 12, 12), 5.0), 0.8)
    assert torch.allclose(flat[:, :, 3:-3, 3:-3], torch.tensor(5.0)) and (flat[:, :, 0, 0] < 5).all()
    noise = smoothed(torch.randn(4, 1, 40, 40, generator=torch.Generator().manual_seed(0)), 0.8)
    assert noise.std() == pytest.approx(1 / math.sqrt(4 * math.pi) / 0.8, rel=0.1)


def test_templates_with_decay_vote_towards_the_mean_of_their_class() -> None:
    """Where a pixel of the image lies below that of the class the vote is up, and it turns once the image has gone too far."""
    from limbeck.data.records import Records
    from limbeck.vault.api import EnsembleSpec, SignVote
    from limbeck.vault.ensemble.desk import vote_sum
    from limbeck.vault.ensemble.partition import partition
    from limbeck.vault.noise import Randomness

    schema = Schema(name="flat", shape=(6,), classes=("a", "b"), records=400, low=0, high=1, augmentation=())
    y = (np.arange(400) % 2).astype(np.int64)
    means = np.array([[0.8, 0.8, 0.8, 0.2, 0.2, 0.2], [0.2, 0.2, 0.2, 0.8, 0.8, 0.8]])
    x = (means[y] + np.random.default_rng(0).uniform(-0.1, 0.1, (400, 6))).astype(np.float32)
    records = Records(x, y)
    teacher = Discriminator(shape=(6,), classes=2, first=0, hidden=0, eta=0.03, decay=0.3)
    spec = EnsembleSpec(teachers=40, batch=10, steps=20)
    ensemble = Ensemble(teacher, spec, schema, torch.device("cpu"))
    ensemble.assign_records(records, partition(records, 40, b"k" * 32))
    query = TeacherVote(label="v", map="sign_vote", clip=2 * math.sqrt(12), noise_multiplier=1.0, teachers=40, count=3)
    for tick, (reached, sign) in enumerate([(0.0, 1), (1.0, -1), (0.3, 1)]):
        image = reached * torch.tensor([[1.0, 1, 1, -1, -1, -1], [-1, -1, -1, 1, 1, 1]])
        labels = torch.arange(20) % 2
        question = SignVote(
            teacher=teacher, ensemble=spec, fakes=image[labels], fake_labels=labels, x=image, y=torch.arange(2), k=6
        )
        ensemble.learn(question)
        votes = vote_sum(ensemble, question, query, Randomness(1).stream("votes", tick)).reshape(2, 6) / 40
        towards = sign * np.where(means > 0.5, 1, -1)
        assert (votes * towards > 0.5).all()


def test_a_label_that_a_teacher_lacks_teaches_it_nothing() -> None:
    from limbeck.vault.ensemble.teachers import Batch

    teacher = Discriminator(shape=(3,), classes=2, first=0, hidden=0)
    weights = {name: value.requires_grad_(True) for name, value in teacher.start([1, 2]).items()}
    real = Batch(torch.ones(2, 4, 3), torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1]]), torch.ones(2, 4))
    fake = Batch(-torch.ones(1, 4, 3), torch.tensor([[0, 1, 0, 1]]), torch.ones(1, 4))
    loss = teacher.loss(weights, real, fake, torch.Generator()).sum()
    (gradient,) = torch.autograd.grad(loss, [weights["template.weight"]])
    moved = gradient.abs().amax(1) > 0  # (teachers, classes)
    assert moved.tolist() == [[True, False], [True, True]]
