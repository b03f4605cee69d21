"""`limbeck evaluate`: nineteen rows, ceilings, controls, presets, and whose figures they are."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck.data import open_source
from limbeck.evaluate.classical import RECIPES
from limbeck.evaluate.models import ARCHITECTURES, CLASSIFIERS
from limbeck.evaluate.presets import PRESETS

Cli = Callable[..., Any]
FAST = "gaussian-nb,bernoulli-nb"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One epoch of thin networks, and no ensembles: here the rows count, not the scores."""
    for name in ("adaboost", "gbm", "mlp-100", "random-forest", "xgboost"):
        monkeypatch.setitem(RECIPES, name, RECIPES["bernoulli-nb"])
    for name, preset in list(PRESETS.items()):
        epochs = 3 if preset.every_epoch else 1
        monkeypatch.setitem(PRESETS, name, dataclasses.replace(preset, epochs=epochs, width=8))


def test_all_gives_nineteen_rows(cli: Cli, release: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    ended = cli("evaluate", release, "--test", "digits", "--models", "all", "--repeats", 1, "--out", out, "--json")
    assert ended.code == 0
    rows = ended.json["rows"]
    assert [row["model"] for row in rows] == [*ARCHITECTURES, *CLASSIFIERS] and len(rows) == 19
    scored = [row for row in rows if "skipped" not in row]
    assert {row["model"] for row in rows} - {row["model"] for row in scored} <= {"xgboost"}
    assert all(0 <= row["mean"] <= 100 and row["records"] == 20 for row in scored)
    assert list(ended.json["accuracy"]) == [row["model"] for row in scored]
    assert ended.json["classifiers_mean"]["classifiers"] == len(scored) - 6
    assert json.loads(out.read_text()) == ended.json and "edition" not in ended.json


def test_without_xgboost_the_command_succeeds(cli: Cli, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "xgboost" else real(name, *a))
    arguments = ("evaluate", release, "--test", "digits", "--models", "lda,xgboost")
    ended = cli(*arguments, "--json")
    assert ended.code == 0 and list(ended.json["accuracy"]) == ["lda"]
    assert "pip install 'limbeck[xgboost]'" in ended.json["rows"][1]["skipped"]
    shown = cli(*arguments)
    assert shown.code == 0 and "pip install 'limbeck[xgboost]'" in shown.out


def test_calibrated_and_control(cli: Cli, release: Path) -> None:
    arguments = ("evaluate", release, "--test", "digits", "--models", FAST, "--calibrated", "--control")
    values = cli(*arguments, "--json").json
    ceiling = values["ceiling"]
    assert ceiling["data"] == "digits:train" and ceiling["records"]["gaussian-nb"] == 1437
    for name in FAST.split(","):
        share = 100 * values["accuracy"][name]["mean"] / ceiling["accuracy"][name]["mean"]
        assert ceiling["calibrated"][name] == pytest.approx(share, abs=1e-3)
        assert ceiling["accuracy"][name]["mean"] > 70 > values["control"]["accuracy"][name]["mean"]
    row = values["rows"][0]
    assert row["calibrated"] == ceiling["calibrated"]["gaussian-nb"] and "control" in row
    shown = cli(*arguments).out
    assert "calibrated" in shown and "never part of a release" in shown


def test_a_subsample_is_said(cli: Cli, release: Path) -> None:
    arguments = ("evaluate", release, "--test", "digits", "--models", FAST, "--calibrated", "--subsample", 100)
    assert set(cli(*arguments, "--json").json["ceiling"]["records"].values()) == {100}
    assert "some of the 1437 real records: gaussian-nb (100)" in cli(*arguments).out


def test_real_records_alone(cli: Cli) -> None:
    values = cli("evaluate", "--real", "digits", "--models", FAST + ",mlp", "--subsample", 500, "--json").json
    assert (values["trained_on"], values["test"], values["records"]) == ("digits:train", "digits:test", 1437)
    assert [row["records"] for row in values["rows"]] == [500] * 3
    assert "release" not in values and "epsilon" not in values and "edition" not in values


def test_real_records_of_an_owner_are_marked(cli: Cli, archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "test.npz"
    np.savez(other, x=np.random.default_rng(1).uniform(0, 1, (40, 4)).astype(np.float32), y=np.arange(40) % 2)
    schema = ("--schema", f"{archive}.limbeck.toml")
    values = cli("evaluate", "--real", archive, "--test", other, *schema, "--models", "all", "--json").json
    assert values["edition"] == "owner" and len(values["rows"]) == 19
    skipped = {row["model"]: row["skipped"] for row in values["rows"] if "skipped" in row}
    assert set(skipped) - {"xgboost"} == {"convnet", "lenet", "alexnet", "vgg11", "resnet18", "cnn"}
    assert "images" in skipped["resnet18"]


@pytest.mark.parametrize("preset", ["psg", "psg-full", "dpdc", "datalens", "gs-wgan"])
def test_a_papers_preset_brings_its_own_models(cli: Cli, release: Path, preset: str) -> None:
    ended = cli("evaluate", release, "--test", "digits", "--preset", preset, "--json")
    expected = {"datalens": ["cnn"], "gs-wgan": list(CLASSIFIERS)}.get(preset, ["convnet"])
    assert [row["model"] for row in ended.json["rows"]] == expected
    assert ended.json["repeats"] == PRESETS[preset].networks and ended.json["protocol"] == PRESETS[preset].source


def test_the_best_epoch_is_marked_as_optimistic(cli: Cli, release: Path) -> None:
    (row,) = cli("evaluate", release, "--test", "digits", "--preset", "datalens", "--json").json["rows"]
    assert row["best_on_test"]["selection"] == "optimistic: chosen on the test set"
    assert row["best_on_test"]["mean"] >= row["mean"]
    assert (
        "optimistic: chosen on the test set" in cli("evaluate", release, "--test", "digits", "--preset", "datalens").out
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "release folder"),
        (("--test", "digits"), "--real"),
        (("RELEASE",), "--test"),
        (("RELEASE", "--test", "digits", "--real", "digits"), "--calibrated"),
        (("--real", "digits", "--calibrated"), "stand beside a release"),
        (("--real", "digits", "--control"), "stand beside a release"),
        (("RELEASE", "--test", "digits", "--subsample", "5"), "--subsample"),
        (("RELEASE", "--test", "digits", "--calibrated", "--subsample", "0"), "at least 1"),
        (("--real", "digits", "--repeats", "0"), "repeats"),
        (("--real", "digits", "--test", "digits:train"), "trained on and tested on"),
        (("--real", "ARCHIVE"), "trained on and tested on"),
        (("--real", "digits", "--test", "ARCHIVE"), "shape"),
        (("RELEASE", "--test", "digits", "--models", "all,svm"), "svm"),
        (("RELEASE", "--test", "digits", "--models", ","), "at least one model"),
    ],
)
def test_odd_pairs_of_options(cli: Cli, release: Path, archive: Path, arguments: tuple[str, ...], words: str) -> None:
    given = {"RELEASE": str(release), "ARCHIVE": str(archive)}
    refused = cli("evaluate", *(given.get(word, word) for word in arguments))
    assert refused.code == 2 and words in refused.err and refused.err.startswith("limbeck: ") and not refused.out


def test_scores_stay_out_of_the_release(cli: Cli, release: Path) -> None:
    refused = cli("evaluate", release, "--test", "digits", "--models", FAST, "--out", release / "scores.json")
    assert refused.code == 2 and "no part of a release" in refused.err and not (release / "scores.json").exists()
    assert cli("verify", release).code == 0


# Public is what was opened as a named set and compared with its hash


@pytest.fixture
def lookalike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder that is called like a public set, with that set's own schema, in the working directory."""
    folder = tmp_path / "work" / "digits"
    folder.mkdir(parents=True)
    schema = open_source("digits").schema
    for split, seed in (("train", 1), ("test", 2)):
        x = np.random.default_rng(seed).integers(0, 17, (40, 1, 8, 8)).astype(np.uint8)
        np.savez(folder / f"{split}.npz", x=x, y=np.arange(40) % 10)
    lists = {"shape": schema.shape, "classes": schema.classes, "class_sizes": schema.class_sizes}
    lines = [f"{name} = {json.dumps(list(value or ()))}" for name, value in lists.items()]
    lines += [f'name = "digits"\nrecords = {schema.records}\nhigh = {schema.high}']
    lines += [f"augmentation = {json.dumps(list(schema.augmentation))}"]
    (folder / "limbeck.toml").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(folder.parent)
    assert open_source("./digits").schema == schema  # as like as can be
    return folder


@pytest.mark.parametrize("written", ["./digits", "digits/", "./digits:test", "../work/digits"])
def test_a_folder_that_is_called_like_a_public_set_is_private(
    cli: Cli, release: Path, lookalike: Path, tmp_path: Path, written: str
) -> None:
    scores, page = tmp_path / "scores.json", tmp_path / "report.html"
    ended = cli("evaluate", release, "--test", written, "--models", FAST, "--out", scores, "--json")
    assert ended.code == 0 and ended.json["test_records"] == 40
    assert ended.json["edition"] == "owner" and "benchmarks" not in ended.json
    refused = cli("report", release, "--evaluation", scores, "--out", page, "--json")
    assert refused.code == 7 and not page.exists()
    scores.write_text(json.dumps({**ended.json, "edition": None}))  # as an older version wrote it
    assert cli("report", release, "--evaluation", scores, "--out", page).code == 7
    assert cli("report", release, "--evaluation", scores, "--edition", "owner", "--out", page).code == 0
    assert not open_source(written, split="test").where.startswith("digits")


def test_a_bare_name_is_the_named_set_wherever_one_stands(cli: Cli, release: Path, lookalike: Path) -> None:
    values = cli("evaluate", release, "--test", "digits", "--models", FAST, "--json").json
    assert values["test_records"] == 360 and values["benchmarks"]["test"]["set"] == "digits:test"


def test_training_records_of_a_lookalike_are_private_too(
    cli: Cli, release: Path, lookalike: Path, tmp_path: Path
) -> None:
    models = ("--models", FAST, "--json")
    ceiling = cli("evaluate", release, "--test", "digits", "--calibrated", "--real", "./digits", *models).json
    assert ceiling["edition"] == "owner"
    assert cli("evaluate", "--real", "./digits", "--test", "digits", *models).json["edition"] == "owner"
    assert cli("evaluate", "--real", "digits", "--test", "./digits", *models).json["edition"] == "owner"
    measured = cli("fidelity", release, "--data", "./digits", "--judge-epochs", 1, "--json").json
    assert measured["public_benchmark"] is False


def test_public_scores_prove_it_and_are_released(cli: Cli, release: Path, tmp_path: Path) -> None:
    scores, page = tmp_path / "scores.json", tmp_path / "report.html"
    models = ("--models", FAST, "--calibrated")
    values = cli("evaluate", release, "--test", "digits", *models, "--out", scores, "--json").json
    assert set(values["benchmarks"]) == {"test", "real"}
    assert cli("report", release, "--evaluation", scores, "--out", page).code == 0
    ceiling = f"{values['ceiling']['accuracy']['gaussian-nb']['mean']:.2f}"
    assert ceiling in page.read_text() and "digits:test" in page.read_text()
    for proof in ({}, {"test": {"set": "digits:test"}}, {"test": {"set": "digits:test", "sha256": "0" * 64}}, [], 3):
        scores.write_text(json.dumps({**values, "benchmarks": proof}))
        assert cli("report", release, "--evaluation", scores, "--out", page).code == 7, proof
    # The owner's word counts for the test records; what real training records reach needs the proof.
    scores.write_text(json.dumps({**values, "edition": "release", "benchmarks": {}}))
    assert cli("report", release, "--evaluation", scores, "--out", page).code == 0
    assert ceiling not in page.read_text() and "digits:test" not in page.read_text()


def test_altered_records_of_a_package_are_not_the_public_set(
    cli: Cli, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sklearn.datasets

    x, y = sklearn.datasets.load_digits(return_X_y=True)
    x[0, 20] += 1  # a record of the test split
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda **_: (x, y))
    refused = cli("evaluate", release, "--test", "digits", "--models", FAST, "--json")
    assert refused.code == 4 and "are not those that Limbeck knows" in refused.json["error"]["message"]
    open_source("digits").load()
