"""Every score of a table is one of the rows that a user opens, in curves and courses, too; and test files need no schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import limbeck.evaluate.privacy_curve as curves
import limbeck.evaluate.stages as stages
import shop as tables
from limbeck.data import open_source
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.scoring import TrainingSet
from limbeck.progress import Silent
from limbeck.release.reader import Release, read_release

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 20, "--set", "L=10", "--set", "sigma=2")


@pytest.fixture
def release(cli: Cli, tmp_path: Path) -> Path:
    made = cli("condense", tables.write_csv(tmp_path / "shop.csv", 300, 0), *SMALL, "--out", tmp_path / "set")
    assert made.code == 0, made.err
    return tmp_path / "set"


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """Test records with no schema beside them."""
    path = tables.write_csv(tmp_path / "later.csv", 400, 1)
    path.with_name(f"{path.name}.limbeck.toml").unlink()
    return path


def whispering(found: Release) -> Release:
    """The class stands below the category that is decoded, where no user finds it."""
    x = np.zeros((40, 6), dtype=np.float32)
    y = np.arange(40) % 2
    x[:, 1], x[:, 2] = 1.0, np.where(y == 1, 0.9, 0.0)
    return Release(x, y, found.certificate, found.schema)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What curves and courses train on."""
    seen: list[torch.Tensor] = []
    for module in (curves, stages):
        score = module.score_models

        def watched(training: TrainingSet, *rest: Any, score: Any = score) -> Any:
            seen.append(training.x)
            return score(training, *rest)

        monkeypatch.setattr(module, "score_models", watched)
        monkeypatch.setattr(module, "read_release", lambda folder: whispering(read_release(folder)))
    return seen


def test_a_curve_is_of_decoded_rows(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: list[torch.Tensor]
) -> None:
    monkeypatch.setattr(curves, "read_snapshots", lambda _, found: (found.x[None], np.array([1])))
    test = open_source(str(tmp_path / "shop.csv"))
    protocol = EvaluationProtocol(models=("linear",), repeats=1)
    curve = curves.privacy_curve(release, test, protocol, Silent())
    assert curve.form == "decoded" and curves.PrivacyCurve.from_dict(curve.to_dict()) == curve
    assert len(trained) == 1 and len(trained[0].unique(dim=0)) == 1  # nothing of the whisper is left


def test_a_course_is_of_decoded_rows(release: Path, tmp_path: Path, trained: list[torch.Tensor]) -> None:
    tests = stages.stage_tests(open_source(str(tmp_path / "shop.csv")), ((0, 1),))
    stages.score_sets([release], tests, EvaluationProtocol(models=("linear",), repeats=1))
    assert len(trained) == 1 and len(trained[0].unique(dim=0)) == 1


def test_the_release_says_what_is_public_about_test_records(cli: Cli, release: Path, later: Path) -> None:
    ended = cli("evaluate", release, "--test", later, "--models", "logistic-reg", "--json")
    assert ended.code == 0 and ended.json["form"] == "decoded" and ended.json["edition"] == "owner", ended.err
    data = later.with_name("shop.csv")
    data.with_name("shop.csv.limbeck.toml").unlink()
    ended = cli("fidelity", release, "--data", data, "--test", later, "--judge-epochs", 1, "--json")
    assert ended.code == 0, ended.err
    ended = cli(
        "report", release, "--edition", "owner", "--data", data, "--out", later.with_name("page.html"), "--json"
    )
    assert ended.code == 0, ended.err


def test_a_schema_beside_the_test_records_comes_first(cli: Cli, release: Path, later: Path) -> None:
    other = tables.TOML.replace('["no", "yes"]', '["no", "yes", "perhaps"]')
    later.with_name("later.csv.limbeck.toml").write_text(other)
    ended = cli("evaluate", release, "--test", later, "--models", "logistic-reg")
    assert ended.code == 2 and "3 classes" in ended.err


def test_without_a_release_a_schema_is_still_needed(cli: Cli, later: Path, tmp_path: Path) -> None:
    ended = cli("evaluate", "--real", later, "--test", later, "--models", "logistic-reg")
    assert ended.code == 2 and "has no schema" in ended.err
    assert cli("evaluate", tmp_path / "none", "--test", later).code != 0


def test_what_is_not_decoded_says_so(cli: Cli, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", x=random.uniform(0, 1, (200, 4)), y=np.arange(200) % 2)
    plain = 'name = "own"\nshape = [4]\nclasses = ["a", "b"]\nrecords = 200\nlow = 0\nhigh = 1\naugmentation = []\n'
    (tmp_path / "own.npz.limbeck.toml").write_text(plain)
    assert cli("condense", tmp_path / "own.npz", *SMALL, "--out", tmp_path / "set").code == 0
    ended = cli(
        "evaluate",
        tmp_path / "set",
        "--test",
        tmp_path / "own.npz",
        "--models",
        "logistic-reg",
        "--out",
        tmp_path / "e",
    )
    assert ended.code == 0 and "exact numbers of set.npz" in ended.out
    assert json.loads((tmp_path / "e").read_text())["form"] == "exact"
