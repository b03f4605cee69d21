"""A table is judged by the rows that a user opens, and by more than its accuracy."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import limbeck.evaluate.release as scored
import shop as tables
from limbeck.data import open_source
from limbeck.evaluate.by_class import area_under_curves, f1_of_classes
from limbeck.evaluate.classical import RECIPES, answers_of
from limbeck.evaluate.decoded import decoded
from limbeck.evaluate.duration import expected_seconds
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.labelled import load_labelled
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.row import Row
from limbeck.progress import Silent
from limbeck.release.reader import read_release

Cli = Callable[..., Any]
CLASSICAL = tuple(RECIPES)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return tables.write_csv(tmp_path / "shop.csv", 300, 0)


@pytest.fixture
def test_rows(tmp_path: Path) -> Path:
    return tables.write_csv(tmp_path / "later.csv", 400, 1)


@pytest.fixture
def release(cli: Cli, shop: Path, tmp_path: Path) -> Path:
    small = ("--method", "ldpdc", "--per-class", 20, "--set", "L=10", "--set", "sigma=2")
    made = cli("condense", shop, *small, "--out", tmp_path / "set")
    assert made.code == 0, made.err
    return tmp_path / "set"


def test_decoded_rows_have_hard_categories_and_whole_numbers() -> None:
    soft = np.array([[0.013, 0.2, 0.6, 0.5, 0.1, 0.3]], dtype=np.float32)
    hard = decoded(soft, tables.SCHEMA).numpy()[0]
    assert hard[1:4].tolist() == [0, 1, 0] and hard[5] == 0
    assert 50 * (hard[0] + 1) == pytest.approx(round(50 * 1.013), abs=1e-4)
    assert np.array_equal(decoded(hard[None], tables.SCHEMA).numpy()[0], hard)


def test_a_whole_number_is_the_same_bits_in_decoded_and_in_real_rows(shop: Path) -> None:
    """Trees, and the bins of marginals, cut at values of the rows: one bit more would be another side."""
    source = open_source(str(shop))
    real = load_labelled(source, source.schema).x
    again = decoded(real.numpy(), source.schema)
    assert torch.equal(again[:, :4], real[:, :4])
    assert len(real[:, 0].unique()) > 50


def test_records_without_columns_stay_what_they_are() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (4, 1, 8, 8)).astype(np.float32)
    assert np.array_equal(decoded(x, open_source("digits").schema).numpy(), x)


def test_a_table_is_trained_on_as_it_is_opened(release: Path, test_rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands between two categories in set.npz is in no Parquet file, so it must not help a model."""
    x, y = tables.rows_of(tables.columns(300, 2))
    whispered = np.concatenate([np.zeros_like(x[:, :1]), np.tile([1.0, 0, 0], (300, 1)), 0 * x[:, 4:]], axis=1)
    whispered[:, 2] = np.where(y == 1, 0.9, 0.0)  # the class, below the category that is decoded
    monkeypatch.setattr(scored, "read_release", tables.released(read_release(release), whispered, y))
    seen: list[torch.Tensor] = []
    real = scored.score_models
    monkeypatch.setattr(scored, "score_models", lambda own, *rest: seen.append(own.x) or real(own, *rest))
    protocol = EvaluationProtocol(models=("logistic-reg",))
    result = scored.evaluate_release(release, open_source(str(test_rows)), protocol, Silent())
    assert len(seen[0].unique(dim=0)) == 1 and result.form == "decoded"
    assert result.rows is not None and result.rows[0].area_under_curve is not None
    assert (result.rows[0].area_under_curve.mean or 0) < 60


def test_three_quick_models_are_the_default(cli: Cli, release: Path, test_rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    ended = cli("evaluate", release, "--test", test_rows, "--repeats", 1, "--out", out, "--json")
    assert ended.code == 0, ended.err
    assert [row["model"] for row in ended.json["rows"]] == ["logistic-reg", "boosted-trees", "mlp"]
    assert ended.json["form"] == "decoded" and "about 5 seconds" in ended.err
    for row in ended.json["rows"]:
        assert 0 <= row["area_under_curve"]["mean"] <= 100 and set(row["f1"]) == {"no", "yes"}
    expected = "xgboost " if importlib.util.find_spec("xgboost") else "HistGradientBoosting of scikit-learn "
    assert ended.json["rows"][1]["library"].startswith(expected)
    assert Evaluation.from_dict(json.loads(out.read_text())).to_dict() == ended.json
    shown = cli("evaluate", release, "--test", test_rows, "--repeats", 1).out
    assert "AUC" in shown and "F1 of class" in shown and "decoded rows" in shown and expected in shown


def test_scikit_learn_stands_in_for_xgboost(monkeypatch: pytest.MonkeyPatch) -> None:
    from limbeck.evaluate import boosted

    monkeypatch.setattr(boosted, "has_xgboost", lambda: False)
    assert type(boosted.boosted_trees(0, 10)).__name__ == "HistGradientBoostingClassifier"
    assert "scikit-learn" in boosted.boosting_library()


def test_real_rows_reach_what_the_table_teaches(test_rows: Path, shop: Path, cli: Cli) -> None:
    values = cli("evaluate", "--real", shop, "--test", test_rows, "--models", "tables", "--json").json
    trees = values["rows"][1]
    assert trees["mean"] > 95 and trees["area_under_curve"]["mean"] > 97 and trees["f1"]["yes"]["mean"] > 90
    assert values["edition"] == "owner"


def test_areas_and_f1_against_scikit_learn() -> None:
    from sklearn.metrics import f1_score, roc_auc_score

    random = np.random.default_rng(0)
    truth, scores = random.integers(0, 3, 200), random.dirichlet([1, 1, 1], 200)
    expected = roc_auc_score(truth, scores, multi_class="ovr", average="macro")
    assert area_under_curves(truth, scores) == pytest.approx(100 * expected)
    answers = scores.argmax(1)
    assert f1_of_classes(truth, answers, 3) == pytest.approx(100 * f1_score(truth, answers, average=None))
    binary = truth % 2
    assert area_under_curves(binary, scores[:, :2]) == pytest.approx(
        100 * roc_auc_score(binary, scores[:, 1] - scores[:, 0])
    )


def test_a_class_without_test_records_has_no_figures() -> None:
    truth, scores = np.array([0, 0, 1]), np.eye(3)
    assert area_under_curves(truth, scores) == area_under_curves(truth, scores[:, [0, 1, 2]])
    assert f1_of_classes(truth, np.array([0, 2, 1]), 3)[2] is None
    assert area_under_curves(np.zeros(3, dtype=int), scores) is None


@pytest.mark.parametrize("name", CLASSICAL)
def test_every_classifier_says_how_likely_each_class_is(name: str) -> None:
    if name == "xgboost":
        pytest.importorskip("xgboost")
    x, y = tables.rows_of(tables.columns(120, 3))
    answers, scores = answers_of(name, (x + 1) / 2, 2 * y, (x + 1) / 2, 4, seed=0)
    assert set(answers.tolist()) <= {0, 2} and scores.shape == (120, 4)
    area = area_under_curves(y, scores[:, [0, 2]])
    assert area is not None and area > 60
    alone, known = answers_of(name, x[y == 0], y[y == 0] + 1, x, 2, seed=0)
    assert (alone == 1).all() and (known[:, 1] >= known[:, 0]).all()


def test_the_time_is_known_for_quick_models_alone() -> None:
    quick = EvaluationProtocol().resolve_for_size(tables.SCHEMA, 32_561)
    seconds = expected_seconds(quick, 32_561, 108, 2)
    assert seconds is not None and 3 < seconds < 10
    other = EvaluationProtocol(models=("tables", "adaboost")).resolve(tables.SCHEMA)
    assert expected_seconds(other, 32_561, 108, 2) is None


def test_older_rows_are_read_and_new_fields_stay_out_of_them() -> None:
    old = {"model": "mlp", "mean": 90.0, "std": None, "runs": [90.0]}
    assert Row.from_dict(old).to_dict() == old
    new = {**old, "library": "xgboost 3", "f1": {"a": {"mean": 5.0, "std": None, "runs": [5.0]}}}
    assert Row.from_dict(new).to_dict() == new


def test_figures_of_each_class_may_be_in_a_release_but_none_of_real_training_records() -> None:
    one = {"mean": 5.0, "std": None, "runs": [5.0]}
    row = {"model": "mlp", **one, "f1": {"a": one}, "area_under_curve": one, "ceiling": 99.0, "calibrated": 5.0}
    shared = Evaluation.from_dict({"release": "out", "accuracy": {"mlp": one}, "rows": [row]}).public().to_dict()
    assert shared["rows"] == [{"model": "mlp", "f1": {"a": one}, "area_under_curve": one}]
    real = Evaluation.from_dict({"trained_on": "own", "accuracy": {"mlp": one}, "rows": [row]}).public().to_dict()
    assert real["rows"] == [{"model": "mlp"}]
