"""Fidelity scores: what they must say about sets whose answer is known."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import working as work
from limbeck.errors import BadInput
from limbeck.evaluate import judge as judges
from limbeck.evaluate.fidelity import Options, fidelity_of_release
from limbeck.evaluate.frechet import frechet_distance
from limbeck.evaluate.inception_score import inception_score
from limbeck.evaluate.judge import Judge, epochs_for, judge_of
from limbeck.evaluate.neighbours import memorisation, nearest, precision_recall
from limbeck.progress import Silent
from limbeck.vault.encoding import encode
from working import DataReference

Cli = Callable[..., Any]
EPOCHS = 4


def rows(count: int, seed: int, width: int = 6) -> Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed)) * torch.arange(1.0, width + 1)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Judge, Tensor, Tensor]:
    """A judge of the digits, and their encoded training and test records."""
    train, test = (DataReference(data="digits").source(split) for split in ("train", "test"))
    records = train.load()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMBECK_CACHE", str(tmp_path_factory.mktemp("cache")))
        judge = judge_of(records, train.schema, Silent(), EPOCHS)
    return judge, encode(records.x, train.schema), encode(test.load().x, train.schema)


# Frechet distance


def test_the_frechet_distance_of_a_set_to_itself_is_zero() -> None:
    real = rows(200, 0)
    assert frechet_distance(real, real) == pytest.approx(0, abs=1e-8)


def test_a_set_with_fewer_records_than_features_is_measured_like_any_other() -> None:
    """Both ways to factor a covariance give the textbook formula."""
    first, second = rows(30, 20), rows(5, 21)
    covariances = [np.cov(part.double().numpy().T) for part in (first, second)]
    roots = np.linalg.eigvals(covariances[0] @ covariances[1]).real.clip(0) ** 0.5
    means = (first.double().mean(0) - second.double().mean(0)).square().sum()
    expected = float(means) + np.trace(covariances[0]) + np.trace(covariances[1]) - 2 * roots.sum()
    assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-6)


def test_the_frechet_distance_of_two_gaussians() -> None:
    """Means 3 apart and standard deviations 1 and 2 in one feature: 9 + (2 - 1)^2."""
    line = torch.linspace(-1, 1, 101)[:, None]
    line = line / line.std()
    assert frechet_distance(line, 2 * line + 3) == pytest.approx(10, rel=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 12), st.integers(13, 60))
def test_the_frechet_distance_rises_with_added_noise(seed: int, width: int, count: int) -> None:
    real = rows(count, seed, width)
    noise = rows(count, seed + 1, width)
    # Noise that the records do not already hold; in a small sample the two overlap by chance.
    noise = noise - noise.mean(0)
    basis = torch.linalg.qr(real - real.mean(0))[0]
    noise = noise - basis @ (basis.T @ noise)
    distances = [frechet_distance(real, real + level * noise) for level in (0, 0.25, 0.5, 1, 2)]
    assert distances[0] == pytest.approx(0, abs=1e-6 * float(real.square().sum()))
    assert all(low < high for low, high in itertools.pairwise(distances))
    assert frechet_distance(real, real + noise) == pytest.approx(frechet_distance(real + noise, real), rel=1e-6)


def test_on_real_records_the_distance_is_near_zero_and_rises_with_noise(digits: tuple[Judge, Tensor, Tensor]) -> None:
    judge, train, test = digits
    reference = judge.look(test)[0]
    noise = torch.randn(train.shape, generator=torch.Generator().manual_seed(0))
    levels = [frechet_distance(judge.look(train + level * noise)[0], reference) for level in (0, 0.2, 0.4, 0.8, 1.6)]
    assert frechet_distance(reference, reference) == pytest.approx(0, abs=1e-3)
    assert all(low < high for low, high in itertools.pairwise(levels))
    assert levels[0] < 0.2 * levels[-1]


@pytest.mark.parametrize("other", [torch.zeros(5, 3), torch.zeros(1, 2), torch.zeros(5)])
def test_frechet_refuses_what_cannot_be_compared(other: Tensor) -> None:
    with pytest.raises(BadInput):
        frechet_distance(torch.zeros(5, 2), other)


# Inception Score


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 12), st.floats(0.1, 50))
def test_the_inception_score_lies_between_one_and_the_number_of_classes(seed: int, classes: int, sharp: float) -> None:
    logits = torch.randn(60, classes, generator=torch.Generator().manual_seed(seed))
    score = inception_score((sharp * logits).softmax(1))
    assert 1 - 1e-9 <= score.mean <= classes + 1e-9 and score.std is None


def test_the_inception_score_at_its_ends() -> None:
    assert inception_score(torch.eye(10).repeat(50, 1)).mean == pytest.approx(10)
    assert inception_score(torch.full((50, 10), 0.1)).mean == pytest.approx(1)
    assert inception_score(torch.eye(10)[torch.zeros(50, dtype=torch.long)]).mean == pytest.approx(1)


def test_splits_follow_the_number_of_records_and_see_all_classes() -> None:
    sorted_by_class = torch.eye(10).repeat_interleave(300, 0)
    score = inception_score(sorted_by_class)
    assert (score.splits, score.records) == (3, 3000) and score.mean > 9.9 and score.std is not None
    assert inception_score(torch.eye(10).repeat(2000, 1)).splits == 10
    with pytest.raises(BadInput):
        inception_score(torch.eye(10), splits=11)


# Neighbours


def test_nearest_neighbours_agree_with_a_plain_loop() -> None:
    points, others = rows(300, 1), rows(40, 2)
    distances, places = nearest(points, others, 2)
    plain = (points[:, None] - others[None]).norm(dim=2)
    torch.testing.assert_close(distances, plain.sort(1).values[:, :2], atol=1e-3, rtol=1e-3)
    assert (places[:, 0] == plain.argmin(1)).double().mean() > 0.99


def test_precision_and_recall_of_identical_sets_are_one() -> None:
    real = rows(120, 3)
    found = precision_recall(real, real)
    assert (found.precision, found.recall, found.records, found.k) == (1.0, 1.0, 120, 3)


def test_precision_and_recall_tell_quality_from_variety() -> None:
    real, far = rows(200, 4), rows(200, 5) + 1000
    assert precision_recall(real, far).precision == precision_recall(real, far).recall == 0
    narrow = real[:1] + 1e-3 * rows(200, 6)
    found = precision_recall(real, narrow)
    assert found.precision > 0.9 and found.recall < 0.1
    other = precision_recall(real, rows(200, 7))
    assert other.precision > 0.5 and other.recall > 0.5
    with pytest.raises(BadInput):
        precision_recall(real, far[:3])


def test_memorisation_catches_copies_and_acquits_fresh_records() -> None:
    train, heldout = rows(400, 8, 20), rows(200, 9, 20)
    copied = memorisation(train[:60] + 1e-3, train, heldout)
    assert copied.suspicious and copied.copies == 60 and copied.p_value < 1e-6 and copied.from_train == 60
    fresh = memorisation(rows(60, 10, 20), train, heldout)
    assert not fresh.suspicious and fresh.copies == 0
    assert fresh.expected == pytest.approx(fresh.neighbours * 400 / 600)
    mirrored = memorisation(heldout[:60], train, heldout)
    assert not mirrored.suspicious and mirrored.copies == 0 and mirrored.heldout_copies == 60


def test_memorisation_counts_a_shared_neighbour_once() -> None:
    """Noise has the same few nearest records again and again; that alone proves nothing."""
    train = torch.cat([torch.zeros(1, 5), rows(99, 11, 5) + 50])
    found = memorisation(0.1 * rows(300, 12, 5), train, rows(50, 13, 5) + 50)
    assert (found.neighbours, found.from_train) == (1, 1) and not found.suspicious


def test_memorisation_is_seldom_wrong_about_blind_sets() -> None:
    wrong = sum(
        memorisation(rows(30, seed, 4), rows(90, seed + 100, 4), rows(30, seed + 200, 4)).p_value < 0.1
        for seed in range(60)
    )
    assert wrong <= 14  # 6 expected; more than 14 happens once in a thousand


# The judge


def test_the_judge_is_kept_and_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    source = DataReference(data="digits").source("train")
    records = source.load()
    first = judge_of(records, source.schema, Silent(), 1)
    again = judge_of(records, source.schema, Silent(), 1)
    assert (first.kept, again.kept) == (False, True)
    x = encode(records.x[:20], source.schema)
    assert all(torch.equal(a, b) for a, b in zip(first.look(x), again.look(x), strict=True))
    (kept,) = (judges.cache_folder() / "judges").iterdir()
    assert kept.stat().st_mode & 0o077 == 0 and kept.parent.stat().st_mode & 0o077 == 0
    kept.write_bytes(b"damaged")
    assert judge_of(records, source.schema, Silent(), 1).kept is False
    other = judges.Records(records.x[:-1], records.y[:-1])
    assert judge_of(other, source.schema, Silent(), 1).kept is False


def test_the_judge_does_without_a_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIMBECK_CACHE", str(tmp_path / "file"))
    source = DataReference(data="digits").source("train")
    assert judge_of(source.load(), source.schema, Silent(), 1).kept is False


def test_a_small_set_gets_more_epochs() -> None:
    assert epochs_for(60_000) == 5
    assert epochs_for(1437) == math.ceil(2000 / 12)
    assert epochs_for(10) == 500


# The whole


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fidelity")
    request = work.asked(ledger=str(root / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, "ldpdc", {"per_class": 3, "L": 20, "sigma": 2.0}, None, 1e-5)
    return work.condense(request, plan, source, root / "set", Silent()).release


def test_fidelity_command(cli: Cli, release: Path, tmp_path: Path) -> None:
    out = tmp_path / "fidelity.json"
    arguments = ("fidelity", release, "--data", "digits", "--judge-epochs", EPOCHS, "--out", out)
    ended = cli(*arguments, "--json")
    assert ended.code == 0, ended.err
    result = ended.json
    assert json.loads(out.read_text()) == result
    assert result["edition"] == "owner" and result["public_benchmark"] is True
    assert (result["train"], result["test"], result["fid"]) == ("digits:train", "digits:test", None)
    assert result["judge"]["test_accuracy"] > 80
    ours, real = result["set"], result["real_train"]
    assert 1 <= ours["inception_score"]["mean"] < real["inception_score"]["mean"] <= 10
    assert ours["frechet_classifier_distance"] > real["frechet_classifier_distance"]
    assert result["real_test"]["inception_score"]["mean"] > 5
    shown = cli(*arguments[:-2])
    assert shown.code == 0 and "OWNER'S EDITION" in shown.out and "no FID" in shown.out
    assert cli("verify", release).code == 0


def test_a_table_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for seed, split in enumerate(("train", "test")):
        y = np.arange(80) % 2
        x = np.random.default_rng(seed).uniform(0, 0.5, (80, 4)).astype(np.float32) + 0.5 * y[:, None].astype(
            np.float32
        )
        np.savez(folder / f"{split}.npz", x=x, y=y)
    (tmp_path / "own.limbeck.toml").write_text(
        'name = "own"\nshape = [4]\nclasses = ["a", "b"]\nrecords = 80\nlow = 0\nhigh = 1\naugmentation = []\n'
    )
    made = cli("condense", folder, "--method", "ldpdc", "--per-class", 4, "--set", "sigma=1", "--out", tmp_path / "set")
    assert made.code == 0, made.err
    ended = cli("fidelity", tmp_path / "set", "--data", folder, "--judge-epochs", 20, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["judge"]["kind"] == "mlp" and ended.json["public_benchmark"] is False
    assert ended.json["real_test"]["inception_score"]["mean"] > 1.5
    refused = cli("fidelity", tmp_path / "set", "--data", folder, "--inception", "weights.safetensors")
    assert refused.code == 2 and "leave --inception out" in refused.err
    alone = cli("fidelity", tmp_path / "set", "--data", folder / "train.npz", "--schema", tmp_path / "own.limbeck.toml")
    assert alone.code == 2 and "--test" in alone.err


def test_the_owners_result_cannot_be_put_into_the_release(cli: Cli, release: Path) -> None:
    inside = cli("fidelity", release, "--data", "digits", "--out", release / "data" / "fidelity.json")
    assert inside.code == 2 and "private records" in inside.err
    assert cli("verify", release).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--data", "digits:test", "--test", "digits:test"), 2, "has no test split"),
        (("--data", "digits", "--judge-epochs", 0), 2, "epochs"),
        (("--data", "digits", "--most", 1), 2, "At least 2"),
        (("--data", "digits", "--inception", "nowhere.safetensors"), 4, "no file"),
        (("--data", "nonsense"), 4, "neither a named set"),
        (("--data", "digits", "--out", "no/such/folder.json"), 9, "does not exist"),
    ],
)
def test_bad_input(cli: Cli, release: Path, arguments: tuple[object, ...], code: int, words: str) -> None:
    ended = cli("fidelity", release, *arguments)
    assert ended.code == code and words in ended.err and "Traceback" not in ended.err


def test_a_copied_set_is_reported(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same check on a release whose set was replaced by training records."""
    from limbeck.evaluate import fidelity

    train, test = (DataReference(data="digits").source(split) for split in ("train", "test"))
    found = fidelity.read_release(release)
    x = encode(train.load().x[:60], found.schema).numpy().astype(np.float32)
    copied = fidelity.Release(x, np.arange(60) % 10, found.certificate, found.schema)
    monkeypatch.setattr(fidelity, "read_release", lambda folder: copied)
    result = fidelity_of_release(release, train, test, Options(epochs=2), Silent())
    assert result["nearest"]["suspicious"] and result["nearest"]["copies"] > 50
