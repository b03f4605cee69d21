"""Results as values: what is written is read back, and files of older versions are read as far as they go."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from limbeck.data import open_source
from limbeck.errors import BadInput
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.fidelity_result import Fidelity
from limbeck.evaluate.labelled import Labelled, load_labelled
from limbeck.evaluate.models import choose
from limbeck.evaluate.presets import PRESETS
from limbeck.evaluate.privacy_curve import PrivacyCurve
from limbeck.evaluate.protocol import EvaluationProtocol, Scoring
from limbeck.evaluate.real import evaluate_real
from limbeck.evaluate.scoring import TrainingSet, score_models
from limbeck.progress import Silent

ACCURACY = {"mean": 61.25, "std": 0.5, "runs": [60.75, 61.75]}
OF_A_SET: dict[str, Any] = {
    "release": "out", "test": "digits:test", "preset": "cpu", "protocol": "ours", "labels": "hard", "repeats": 2,
    "records": 20, "test_records": 360, "epsilon": "infinity", "adjacency": "add/remove", "method": "dm",
    "majority_rate": 10.5, "accuracy": {"mlp": ACCURACY},
    "rows": [
        {"model": "mlp", "family": "architecture", "records": 20, **ACCURACY, "labels": "hard", "seconds": 0.1,
         "control": 9.5, "ceiling": 97.75, "calibrated": 62.7},
        {"model": "convnet", "family": "architecture", "records": 20, "width": 64, **ACCURACY,
         "best_on_test": {**ACCURACY, "selection": "optimistic"}, "area_under_curve": ACCURACY},
        {"model": "xgboost", "family": "classifier", "records": 20, "skipped": "not installed"},
    ],
    "classifiers_mean": {"classifiers": 2, "mean": 50.0},
    "control": {"records": "uniform noise with the same labels", "accuracy": {"mlp": ACCURACY}},
    "ceiling": {
        "data": "digits:train", "preset": "brief", "repeats": 1, "records": {"mlp": 100}, "of_records": 1437,
        "accuracy": {"mlp": ACCURACY}, "calibrated": {"mlp": 62.7}, "calibrated_classifiers_mean": None, "note": "real",
    },
    "benchmarks": {"test": {"set": "digits:test", "sha256": "0" * 64}},
}  # fmt: skip
OF_REAL_RECORDS = {"trained_on": "own", "classifiers_mean": None, "accuracy": {}, "rows": [], "edition": "owner"}
OF_A_MODEL = {"release": "out", "content": "model", "network": {"kind": "mlp"}, "accuracy": {"model": ACCURACY}}


@pytest.mark.parametrize("values", [OF_A_SET, OF_REAL_RECORDS, OF_A_MODEL], ids=["set", "real", "model"])
def test_an_evaluation_is_written_as_it_was_read(values: dict[str, Any]) -> None:
    found = Evaluation.from_dict(json.loads(json.dumps(values)))
    assert found.to_dict() == values and Evaluation.from_dict(found.to_dict()) == found


def test_a_curve_is_written_as_it_was_read() -> None:
    point = {"step": 4, "epsilon": 0.5, "accuracy": 61.25, "std": None, "runs": [61.25]}
    values = {
        "title": "t", "x": "epsilon spent", "release": "out", "method": "psg", "model": "mlp", "preset": "cpu",
        "repeats": 1, "delta": 1e-5, "adjacency": "add/remove", "test": "own", "points": [point], "edition": "owner",
    }  # fmt: skip
    assert PrivacyCurve.from_dict(values).to_dict() == values
    assert not PrivacyCurve.from_dict({**values, "points": [{**point, "epsilon": "infinity"}]}).by_epsilon


@pytest.mark.parametrize("odd", [None, 3, "text", [], [1, "a"], {}, {"accuracy": {"mlp": {"mean": "high"}}}, True])
def test_no_entry_of_another_form_stops_a_reader(odd: Any) -> None:
    for name in [field.name for field in dataclasses.fields(Evaluation)] + ["benchmarks", "edition"]:
        json.dumps(Evaluation.from_dict({**OF_A_SET, name: odd}).public().to_dict())
    for name in [field.name for field in dataclasses.fields(PrivacyCurve)]:
        json.dumps(PrivacyCurve.from_dict({name: odd}).to_dict())
    for name in [field.name for field in dataclasses.fields(Fidelity)] + ["judge"]:
        assert Fidelity.from_dict({name: odd}).to_dict()["edition"] == "owner"


def test_a_file_never_becomes_public_by_being_read() -> None:
    for odd in (["release"], {"release": 1}, 3, True, "Release"):
        assert Evaluation.from_dict({"edition": odd}).provenance.edition not in (None, "release")
    assert Evaluation.from_dict({"edition": "owner"}).provenance.is_owners


def test_one_loop_scores_on_several_test_sets() -> None:
    """As continual learning does: the run is the mean over the test sets, and each is kept."""
    source = open_source("digits", split="test")
    records = load_labelled(source, source.schema)
    halves = [Labelled(records.x[:180], records.y[:180]), Labelled(records.x[180:], records.y[180:])]
    training = TrainingSet(x=records.x, y=records.y, classes=10)
    scoring = Scoring(choices=tuple(choose(["gaussian-nb", "linear"], source.schema.shape)),
                      preset=dataclasses.replace(PRESETS["brief"], epochs=1), repeats=2)  # fmt: skip
    for whole, split in zip(
        score_models(training, [records], scoring, Silent()),
        score_models(training, halves, scoring, Silent()),
        strict=True,
    ):
        assert whole.score is not None and split.score is not None
        assert split.score.runs == pytest.approx(whole.score.runs)  # the halves are equally large
        assert [len(each) for each in split.score.by_test] == [2] * len(split.score.runs)


def test_a_protocol_is_refused_before_any_work() -> None:
    with pytest.raises(BadInput, match="repeats=0"):
        EvaluationProtocol(repeats=0)
    train, test = (open_source("digits", split=split) for split in ("train", "test"))
    with pytest.raises(BadInput, match="svm"):
        evaluate_real(train, test, EvaluationProtocol(models=("svm",)), Silent())
