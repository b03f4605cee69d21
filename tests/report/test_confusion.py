"""Class by class: what a model takes for what, in an evaluation and on the page; and an epsilon that is never printed too low."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.downstream import Task, score_model
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.presets import preset_named
from limbeck.evaluate.row import Row
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.report.brief import brief_epsilon, why_noisy
from limbeck.report.confusion import confusion_view
from limbeck.report.page import Report, render
from limbeck.report.scores import score_table
from releases import digits_release

SCHEMA = Schema(name="s", shape=(1, 8, 8), classes=("ill", "well", "<b>"), records=100, low=0, high=255)
COUNTS = ((8, 2, 0), (0, 9, 1), (5, 5, 0))


def evaluation(counts: Any = COUNTS) -> Evaluation:
    values = {
        "release": "r", "test": "digits:test", "accuracy": {"mlp": {"mean": 57.0, "runs": [57.0]}, "linear": {"mean": 50.0}},
        "rows": [{"model": "mlp", "mean": 57.0, "runs": [57.0], "confusion": counts}, {"model": "linear", "mean": 50.0}],
        "edition": "release",
    }  # fmt: skip
    return Evaluation.from_dict(values)


def test_a_score_counts_what_was_taken_for_what() -> None:
    x = torch.cat([torch.full((20, 1, 8, 8), value) for value in (-0.9, 0.0, 0.9)])
    y = torch.arange(3).repeat_interleave(20)
    test = Labelled(x=x[::2], y=y[::2])
    for model in ("linear", "mlp"):
        score = score_model(model, Task(x, y, (test,), 3), preset_named("cpu"), 2)
        counts = np.array(score.confusion)
        assert counts.shape == (3, 3) and counts.sum(1).tolist() == [20, 20, 20]  # ten of each, by two networks
        assert 100 * np.trace(counts) / counts.sum() == pytest.approx(score.mean)


def test_it_is_written_read_and_public() -> None:
    row = Row(model="mlp", accuracy=Accuracy(57.0), confusion=COUNTS)
    assert Row.from_dict(row.to_dict()) == row
    (first, *_) = evaluation([list(each) for each in COUNTS]).public().rows or ()
    assert first.confusion == COUNTS


@pytest.mark.parametrize("odd", [None, 3, [], [[1]] * 2, [[1, "x"], [0, 1]], [[1, -1], [0, 1]], [[True, 1], [0, 1]]])
def test_an_old_or_odd_file_has_none(odd: Any) -> None:
    found = evaluation(odd)
    assert (found.rows or ())[0].confusion is None and confusion_view(score_table(found), SCHEMA) is None


def test_the_best_model_class_by_class() -> None:
    found = confusion_view(score_table(evaluation([list(each) for each in COUNTS])), SCHEMA)
    assert found is not None and found.model == "mlp"
    assert [(line.right, line.mistaken) for line in found.lines] == [
        ("80.0 %", "well (20.0 %)"), ("90.0 %", "<b> (10.0 %)"), ("0.0 %", "well (50.0 %)"),
    ]  # fmt: skip
    assert found.matrix[0] == [("80", 6), ("20", 1), ("", 0)]
    assert confusion_view(score_table(evaluation([[1, 0], [0, 1]])), SCHEMA) is None  # of other classes


def test_the_page_says_whether_it_is_useful_before_what_was_set(tmp_path: Path) -> None:
    found = read_release(digits_release(tmp_path))
    schema = dataclasses.replace(SCHEMA, shape=(1, 8, 8))
    given_ = evaluation([list(each) for each in COUNTS])
    page = render(Report(certificate=found.certificate, schema=schema, evaluations=[given_]))
    titles = ("How well it trains", "Class by class: mlp", "What is promised", "What was spent", "<h2>What was asked")
    places = [page.index(text) for text in titles]
    assert places == sorted(places) and "&lt;b&gt;" in page and "<b>\n" not in page
    old = render(Report(certificate=found.certificate, schema=schema, evaluations=[evaluation(None)]))
    assert "Class by class" not in old and "How well it trains" in old


def test_why_pictures_look_as_they_do(tmp_path: Path) -> None:
    certificate = read_release(digits_release(tmp_path)).certificate
    assert "may look like noise" in why_noisy(certificate, SCHEMA)
    assert why_noisy(certificate, Schema(name="t", shape=(3,), classes=("a", "b"), records=9, low=0, high=1)) == ""


@given(st.floats(min_value=1e-4, max_value=1e4))
def test_a_short_epsilon_is_never_below_the_exact_one(epsilon: float) -> None:
    short, full = brief_epsilon(_Stated(epsilon))  # type: ignore[arg-type]
    if full:
        bound = float(short.removeprefix("≤ "))
        assert bound >= epsilon and bound <= max(epsilon * 1.11, epsilon + 1) and float(full) == epsilon
    else:
        assert float(short) == epsilon


@dataclasses.dataclass(frozen=True)
class _Stated:
    epsilon: float
    private: bool = True


@pytest.mark.parametrize(
    ("epsilon", "short"), [(0.999969, "≤ 1"), (1.0, "1"), (1.0000001, "≤ 1.1"), (2.36791, "≤ 2.4"), (0.19998, "≤ 0.2")]
)
def test_as_it_is_spoken_of(epsilon: float, short: str) -> None:
    assert brief_epsilon(_Stated(epsilon))[0] == short  # type: ignore[arg-type]
