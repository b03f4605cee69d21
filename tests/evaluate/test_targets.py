"""Targets of a table: numbers by regression, categories by classification, several of them, with a label and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import limbeck.evaluate.release as scored
import shop as tables
from limbeck.data.table import encode_rows
from limbeck.errors import BadInput
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.target_score import CLASSES, TargetScore
from limbeck.evaluate.targets import problem, score_targets, with_ceiling
from limbeck.privacy.schema import NO_CLASSES, Schema
from limbeck.progress import Silent
from limbeck.release.reader import Release, read_release

Cli = Callable[..., Any]
SCHEMA = replace(tables.SCHEMA, targets=("income", "town"))
PLAIN = replace(SCHEMA, classes=NO_CLASSES, label="")


def rows(count: int, seed: int, schema: Schema = SCHEMA) -> Labelled:
    found = tables.columns(count, seed)
    _, y = tables.rows_of(found)
    return Labelled(torch.from_numpy(encode_rows(found, schema)), torch.from_numpy(y if schema.has_label else 0 * y))


def scores(
    schema: Schema, models: tuple[str, ...], train: Labelled | None = None
) -> dict[tuple[str, str], TargetScore]:
    scoring = EvaluationProtocol(models=models, repeats=1).resolve(schema)
    train = rows(300, 0, schema) if train is None else train
    found = score_targets(train, rows(200, 1, schema), schema, scoring, Silent())
    return {(each.target, each.model): each for each in found}


def test_a_number_is_a_regression_and_a_category_is_told_apart() -> None:
    found = scores(SCHEMA, ("logistic-reg", "boosted-trees", "mlp"))
    assert set(found) == {
        ("income", "ridge"), ("income", "boosted-trees"), ("income", "mlp"),
        ("town", "logistic-reg"), ("town", "boosted-trees"), ("town", "mlp"),
    }  # fmt: skip
    ridge = found["income", "ridge"]
    assert ridge.r2 is not None and ridge.mae is not None and ridge.accuracy is None
    assert ridge.r2.mean > 0.999 and ridge.mae.mean < 5  # type: ignore[operator] # income is eight times the age
    assert found["income", "boosted-trees"].library and found["town", "mlp"].kind == CLASSES
    assert found["town", "logistic-reg"].accuracy is not None and found["town", "logistic-reg"].r2 is None


def test_rows_without_a_value_are_neither_learnt_from_nor_scored_on() -> None:
    column = SCHEMA.columns[2]
    train = rows(300, 0)
    found = problem(train, column, SCHEMA)
    gaps = int(train.x[:, -1].sum())
    assert gaps > 30 and len(found.y) == 300 - gaps == scores(SCHEMA, ("linear",))["income", "ridge"].records
    assert found.x.shape[1] == 4 + 2  # age, three towns; and the classes
    assert problem(rows(300, 0, PLAIN), column, PLAIN).x.shape[1] == 4
    assert found.y.max() <= 1000 and found.y.min() >= 8 * 17  # in the unit of the column


def test_a_target_that_nobody_has() -> None:
    train = rows(300, 0)
    train.x[:, -1] = 1
    found = scores(replace(SCHEMA, targets=("income",)), ("linear",), train)
    assert found["income", "-"].skipped == "fewer than 3 rows have a value to learn from, or to score on"


def test_always_saying_the_mean_is_zero() -> None:
    """R2 by the definition: rows that say nothing about the target reach none of it."""
    train = rows(300, 0)
    train.x[:, :4] = 0
    found = scores(replace(PLAIN, targets=("income",)), ("linear",), train)["income", "ridge"]
    assert found.r2 is not None and found.r2.mean == pytest.approx(0, abs=0.05)


def test_the_ceiling_stands_beside_its_model() -> None:
    own = [TargetScore(target="a", model="ridge"), TargetScore(target="b", model="ridge")]
    real = [replace(own[1], kind=CLASSES, accuracy=scores(SCHEMA, ("logistic-reg",))["town", "logistic-reg"].accuracy)]
    found = with_ceiling(own, real)
    assert found[0].ceiling is None and found[1].ceiling == real[0].main and found[1].public().ceiling is None


def test_what_real_rows_reach_stays_with_their_owner() -> None:
    scored_target = TargetScore(target="a", model="ridge", r2=Accuracy(0.5), ceiling=0.9)
    made = Evaluation(provenance=Provenance(edition="release"), accuracy={}, release="set", targets=(scored_target,))
    assert made.public().targets == (replace(scored_target, ceiling=None),)
    assert replace(made, release=None, trained_on="here").public().targets is None


def test_models_that_predict_no_number() -> None:
    assert set(scores(SCHEMA, ("gaussian-nb",))) == set()
    with pytest.raises(BadInput, match="Targets are predicted by logistic-reg"):
        scores(PLAIN, ("gaussian-nb",))


# --- commands ---


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tables.write_csv(tmp_path / "shop.csv", 300, 0)
    beside = path.with_name("shop.csv.limbeck.toml")
    beside.write_text('targets = ["income", "town"]\n' + beside.read_text())
    return path


def test_the_command_shows_targets_beside_the_label(
    cli: Cli, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ("--method", "ldpdc", "--per-class", 20, "--set", "L=10", "--set", "sigma=2")
    assert cli("condense", shop, *small, "--out", tmp_path / "set").code == 0
    made, real = read_release(tmp_path / "set"), rows(40, 2)
    other = Release(real.x.numpy(), real.y.numpy(), made.certificate, made.schema)
    monkeypatch.setattr(scored, "read_release", lambda folder: other)
    later = tables.write_csv(tmp_path / "later.csv", 200, 1)
    later.with_name("later.csv.limbeck.toml").unlink()
    out = tmp_path / "scores.json"
    shown = cli("evaluate", tmp_path / "set", "--test", later, "--models", "logistic-reg", "--out", out)
    assert shown.code == 0 and "R2" in shown.out and "income  ridge" in shown.out and "majority class" in shown.out
    values = json.loads(out.read_text())
    assert [(each["target"], each["model"]) for each in values["targets"]] == [
        ("town", "logistic-reg"),
        ("income", "ridge"),
    ]
    result = Evaluation.from_dict(values)
    assert result.to_dict() == values and result.targets is not None
    assert np.isclose(result.targets[1].r2.mean, 1, atol=0.01)  # type: ignore[union-attr, arg-type]


def test_a_table_without_a_label_is_judged_by_its_targets(cli: Cli, shop: Path, tmp_path: Path) -> None:
    beside = shop.with_name("shop.csv.limbeck.toml")
    text = beside.read_text().replace('classes = ["no", "yes"]\n', "").replace('label = "buys"\n', "")
    beside.write_text(text)
    small = (
        "--rows", 60, "--set", "T=20", "--set", "components=10", "--set", "sigma=0.5", "--set", "bins=6", "--set", "search=0",
    )  # fmt: skip
    made = cli("condense", shop, *small, "--out", tmp_path / "set")
    assert made.code == 0, made.err
    later = tables.write_csv(tmp_path / "later.csv", 200, 1)
    later.with_name("later.csv.limbeck.toml").unlink()
    ended = cli("evaluate", tmp_path / "set", "--test", later, "--models", "linear", "--json")
    assert ended.code == 0 and len(ended.json["targets"]) == 2 and "majority_rate" not in ended.json, ended.err
    plain = cli("evaluate", tmp_path / "set", "--test", later, "--models", "linear")
    assert plain.out.splitlines()[0].split()[:3] == ["target", "model", "R2"]
    real = cli("evaluate", "--real", shop, "--test", later, "--schema", beside, "--models", "linear", "--json")
    assert real.code == 0 and real.json["edition"] == "owner" and len(real.json["targets"]) == 2, real.err
