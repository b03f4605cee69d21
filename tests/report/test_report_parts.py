"""The parts of a report: scores, curves, bars, code to load a release, closeness."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

from limbeck.data.benchmark import Benchmark
from limbeck.errors import BadInput, NotReleasable
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.fidelity_result import Fidelity
from limbeck.evaluate.privacy_curve import PrivacyCurve
from limbeck.evaluate.reading import read_json
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.formats import write_npz, write_parquet
from limbeck.report import views
from limbeck.report.budget import budget_view
from limbeck.report.charts import Point, Segment, _ticks, bar, curve, score_bar
from limbeck.report.closeness import closeness_view
from limbeck.report.convergence import curve_view, read_training_curves, training_curve_drawings
from limbeck.report.loading import model_snippets, parquet_sentence, scaling_sentence, set_snippets
from limbeck.report.page import Report, render
from limbeck.report.scores import require_fit, require_public, score_table
from limbeck.report.strips import MOST_CLASSES, class_strips, snapshot_strips, strip
from limbeck.report.wording import guess_share, in_one_sentence, questions
from limbeck.vault.ledger import Account, Booking

PROOF = {"test": Benchmark("mnist", "test").to_dict(), "real": Benchmark("mnist", "train").to_dict()}
EVALUATION: dict[str, Any] = {
    "benchmarks": PROOF,
    "release": "/somewhere/tiny", "test": "mnist:test", "preset": "cpu", "labels": "hard", "repeats": 2, "method": "ldpdc",
    "epsilon": 0.987654, "records": 10, "majority_rate": 21.0,
    "accuracy": {"convnet": {"mean": 93.7, "std": 0.4, "runs": [93.3, 94.1]}, "odd": {"mean": math.nan, "runs": "x"}},
    "control": {"accuracy": {"convnet": {"mean": 10.0}}}, "ceiling": {"accuracy": {"convnet": {"mean": 99.0}}},
    "rows": [{"model": "boost", "skipped": "its package is missing"}, {"model": "convnet", "mean": 93.7}],
    "classifiers_mean": {"classifiers": 13, "mean": 77.5},
}  # fmt: skip


def test_scores_with_ceiling_control_and_what_was_skipped() -> None:
    table = score_table(Evaluation.from_dict(EVALUATION))
    assert [(row.model, row.mean, row.ceiling, row.control) for row in table.rows] == [
        ("convnet", 93.7, 99.0, 10.0), ("odd", None, None, None), ("boost", None, None, None),
    ]  # fmt: skip
    assert table.rows[2].skipped == "its package is missing" and table.rows[1].runs == ()
    assert table.has_ceiling and table.has_control and table.classifiers == (13, 77.5)


def test_a_table_shows_the_area_and_f1_of_each_class_and_what_fitted_it() -> None:
    one = {"mean": 61.5, "std": None, "runs": [61.5]}
    row = {
        "model": "boosted-trees",
        **one,
        "area_under_curve": {"mean": 90.25},
        "f1": {"<b>no": one},
        "library": "trees 3",
    }
    values = {**EVALUATION, "accuracy": {"boosted-trees": one}, "rows": [row], "form": "decoded"}
    for evaluation in (Evaluation.from_dict(values), Evaluation.from_dict(values).public()):
        table = score_table(evaluation)
        assert table.decoded and table.has_area and table.has_f1
        shown = views.scores(table)
        assert (shown.rows[0].area, shown.rows[0].f1) == ("90.25", "<b>no 61.50")
        assert shown.libraries == ["boosted-trees by trees 3"]
    plain = score_table(Evaluation.from_dict(EVALUATION))
    assert not plain.decoded and not plain.has_area and not plain.has_f1


def test_networks_come_before_classifiers_and_what_is_unknown_last() -> None:
    names = ("adaboost", "convnet", "lda", "mlp", "something", "vgg11")
    table = score_table(
        Evaluation.from_dict({"accuracy": {name: {"mean": 50.0, "std": None, "runs": [50.0]} for name in names}})
    )
    assert [row.model for row in table.rows] == ["convnet", "vgg11", "mlp", "adaboost", "lda", "something"]
    assert {row.std for row in table.rows} == {None}


@pytest.mark.parametrize("values", [{}, {"accuracy": 3}, {"accuracy": {"a": 4.0}, "rows": 7, "repeats": "two"}])
def test_scores_of_another_form_are_shown_as_far_as_they_go(values: dict[str, Any]) -> None:
    table = score_table(Evaluation.from_dict(values))
    assert [row.mean for row in table.rows] == ([4.0] if values.get("accuracy") == {"a": 4.0} else [])


def test_only_scores_of_public_records_may_be_released() -> None:
    require_public(Evaluation.from_dict(EVALUATION), "it")
    require_public(Evaluation.from_dict({**EVALUATION, "test": "/home/me/test.csv", "edition": "release"}), "it")
    for private in (
        {**EVALUATION, "edition": "owner"},
        {**EVALUATION, "edition": "something new"},
        {**EVALUATION, "benchmarks": {}},  # as older versions wrote it, with the name alone
        {**EVALUATION, "benchmarks": {"real": PROOF["real"]}},
        {**EVALUATION, "benchmarks": {"test": {**PROOF["test"], "sha256": "0" * 64}}},
        {**EVALUATION, "benchmarks": {"test": {**PROOF["test"], "set": "mnist:train"}}},
        {**EVALUATION, "benchmarks": {"test": {**PROOF["test"], "set": "private:test"}}},
        {"accuracy": {}},
    ):
        with pytest.raises(NotReleasable, match="owner"):
            require_public(Evaluation.from_dict(private), "it")


def test_what_real_training_records_reach_is_released_only_for_public_benchmarks() -> None:
    whole = Evaluation.from_dict(EVALUATION).public()
    assert whole.ceiling and whole.test == "mnist:test"
    part = Evaluation.from_dict({**EVALUATION, "test": "/home/me/test.csv", "benchmarks": {}}).public().to_dict()
    assert "ceiling" not in part and part["rows"] == [
        {"model": "boost", "skipped": "its package is missing"},
        {"model": "convnet"},
    ]
    assert "/home" not in str({key: part[key] for key in part if key != "release"})
    assert "control" in part  # it comes from no record


def test_scores_of_another_release_are_refused(certificate: Certificate) -> None:
    require_fit(Evaluation.from_dict(EVALUATION), certificate, Path("e.json"))
    for name, value in (("epsilon", 3.0), ("method", "dm"), ("records", 11)):
        with pytest.raises(BadInput, match=rf"e\.json is the evaluation of another release: it says {name}={value}"):
            require_fit(Evaluation.from_dict({**EVALUATION, name: value}), certificate, Path("e.json"))
    with pytest.raises(BadInput, match="holds no accuracy"):
        require_fit(Evaluation.from_dict({"release": "x"}), certificate, Path("e.json"))
    with pytest.raises(BadInput, match="which release"):
        require_fit(Evaluation.from_dict({"accuracy": {}}), certificate, Path("e.json"))


def test_files_that_are_no_json_object_are_refused(tmp_path: Path) -> None:
    for content in ("", "[1]", "{", '"text"'):
        (tmp_path / "e.json").write_text(content)
        with pytest.raises(BadInput):
            read_json(tmp_path / "e.json", "evaluation")


def test_a_curve_needs_two_points_and_prefers_epsilon() -> None:
    points = [
        {"step": 10, "epsilon": 0.5, "accuracy": 80.0, "std": 1.0},
        {"step": 20, "epsilon": 1.0, "accuracy": 91.0},
    ]
    view = curve_view(PrivacyCurve.from_dict({"points": points, "title": "<b>", "x": "eps<"}))
    assert view.title == "<b>" and "eps&lt;" in view.drawing and "polygon" in view.drawing
    assert view.rows[0] == ("10", "0.5", "80", "1")
    steps = [{"step": 1, "accuracy": 1.0}, {"step": 2, "accuracy": 2.0}, {"accuracy": "x"}, 7]
    by_step = curve_view(PrivacyCurve.from_dict({"points": steps}))
    assert ">step<" in by_step.drawing and "polygon" not in by_step.drawing
    for bad in ({}, {"points": 3}, {"points": points[:1]}, {"points": [{"accuracy": 1.0}] * 3}):
        with pytest.raises(BadInput, match="fewer than two points"):
            curve_view(PrivacyCurve.from_dict(bad))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (81.2, 96.0), (5.0, 5.0), (0.0, 0.0), (1e-6, 3e-6), (12.0, 1e6)])
def test_ticks_are_few_and_take_in_both_ends(low: float, high: float) -> None:
    ticks = _ticks(low, high)
    assert 2 <= len(ticks) <= 8 and ticks[0] <= low and ticks[-1] >= high and sorted(set(ticks)) == ticks


def test_drawings_escape_texts_and_have_no_style_attribute() -> None:
    drawings = [
        bar([Segment(kind="own", share=0.5)], '"><script>'),
        bar([Segment(kind="own", share=0.7), Segment(kind="other", share=0.9)], "more than there is"),
        score_bar(120.0, 99.9, None),
        curve([Point(x=1, y=50, spread=60), Point(x=2, y=50)], "<x>", "<y>", "<words>"),
    ]
    for drawing in drawings:
        assert (
            isinstance(drawing, Markup)
            and "<script>" not in drawing
            and "style=" not in drawing
            and "nan" not in drawing
        )
        assert drawing.count("<rect") == drawing.count("</rect>")
    widths = [float(part.split('"')[0]) for part in drawings[1].split('width="')[2:]]
    assert sum(widths) <= 100


def test_the_budget_bar_marks_the_own_booking() -> None:
    bookings = (
        Booking("a", "tiny", 0.5, 1e-5, "ldpdc", "2025-01-02T03:04:05+00:00", "finished"),
        Booking("b", "tiny", 0.3, 1e-5, "ndpdc", "2025-01-03T03:04:05+00:00", "void"),
        Booking("c", "tiny", 0.25, 1e-5, "dm", "2025-01-04T03:04:05+00:00", "open"),
    )
    view = budget_view(Account("tiny", 2.0, 1e-4, 0.75, 2e-5, bookings, remaining_epsilon=1.25), "a")
    assert (view.budget, view.spent, view.left) == ("2", "0.75", "1.25") and view.has_own
    assert [(row.state, row.own) for row in view.rows] == [("spent", True), ("given back", False), ("open", False)]
    assert view.bar is not None and view.bar.count('class="own"') == 1 and view.bar.count('class="other"') == 1
    endless = budget_view(Account("tiny", math.inf, 1e-4, math.inf, 2e-5, bookings, remaining_epsilon=math.inf))
    assert endless.bar is None and endless.budget == "∞" and not endless.has_own


@pytest.mark.parametrize("kind", ["gray", "people"])
@pytest.mark.parametrize("library", ["torch", "sklearn", "datasets", "pandas"])
def test_every_way_to_load_a_set_works(
    kind: str, library: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    schema: Schema = request.getfixturevalue(kind)
    x = np.random.default_rng(0).uniform(-1, 1, (8, *schema.shape)).astype(np.float32)
    y = np.arange(8) % 2
    (tmp_path / "data").mkdir()
    write_npz(tmp_path / "set.npz", x, y)
    write_parquet(tmp_path / "data" / "train.parquet", x, y, schema)
    (snippet,) = (each for each in set_snippets(schema) if each.library == library)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(snippet.code, snippet.title, "exec"), names)
    if library == "torch":
        batch, labels = next(iter(names["loader"]))
        assert batch.shape == (8, *schema.shape) and sorted(labels.tolist()) == sorted(y.tolist())
    elif library == "sklearn":
        assert names["model"].score(x.reshape(8, -1), y) == 1.0
    else:
        assert len(names["train" if library == "datasets" else "table"]) == 8


def test_the_sentences_about_scale_and_form(gray: Schema, people: Schema) -> None:
    assert scaling_sentence(gray).replace("\xa0", " ").endswith("x = raw / 255 * 2 - 1.")
    assert "config.json" in scaling_sentence(people)
    assert "8-bit" in parquet_sentence(gray) and "decoded columns" in parquet_sentence(people)
    assert "limbeck.load_model" in model_snippets(gray)[0].code


def test_strips_of_classes_with_and_without_records(gray: Schema) -> None:
    x = np.zeros((12, 1, 8, 8), dtype=np.float32)
    first, second = class_strips(x, np.zeros(12, int), gray)
    assert first is not None and first.count == 10 and first.source.startswith("data:image/png;base64,")
    assert second is None
    names = tuple(f"c{place}" for place in range(300))
    many = Schema(name="many", shape=(3, 400, 200), classes=names, records=10_000, low=0, high=255)
    strips = class_strips(np.zeros((6, 3, 400, 200), np.float32), np.zeros(6, int), many)
    assert len(strips) == MOST_CLASSES and strips[0] is not None and strips[0].count == 5 and strips[0].height <= 40


def test_closeness_shows_what_is_there() -> None:
    values = {
        "edition": "owner",
        "set": {"inception_score": {"mean": 7.5}, "frechet_classifier_distance": 12.5},
        "real_train": {"inception_score": {"mean": 9.0}},
        "fid": {"set": 30.0, "real_train": 2.0},
        "nearest": {
            "from_train": 60,
            "neighbours": 80,
            "expected": 68.6,
            "p_value": 0.9,
            "copies": 0,
            "suspicious": True,
        },
    }
    view = closeness_view(Fidelity.from_dict(values))
    assert [row[:3] for row in view.rows] == [
        ("Inception score", "7.5", "9"), ("Fréchet classifier distance", "12.5", "-"), ("FID", "30", "2"),
    ]  # fmt: skip
    assert view.suspicious and "60 of 80" in view.facts[0][1] and len(view.facts) == 2
    assert closeness_view(Fidelity.from_dict({})).rows == ()
    assert closeness_view(Fidelity.from_dict({"nearest": 3})).facts == ()


def test_the_one_sentence_never_says_less_than_the_bound(
    certificate: Certificate, not_private: Certificate, insecure: Certificate, unclear: Certificate
) -> None:
    one = dataclasses.replace(certificate, epsilon=1.0, delta=0.0)
    assert guess_share(one) == pytest.approx(math.e / (1 + math.e))
    assert in_one_sentence(one)[1] == "at most 73.2 %"
    for nothing in (not_private, insecure, unclear):
        assert guess_share(nothing) == 1.0 and "Nothing is promised" in in_one_sentence(nothing)[1]
        assert questions(nothing) == []
    assert len(questions(certificate)) == 6


def test_the_course_is_drawn_and_read_back(certificate: Certificate, gray: Schema, tmp_path: Path) -> None:
    course = {"size of the noised answer": [300.0 - step for step in range(120)], "movement": [0.5, 0.25], "one": [1.0]}
    path = tmp_path / "course.json"
    path.write_text(json.dumps(course))
    assert read_training_curves(path) == course
    drawings = dict(training_curve_drawings(course))
    assert set(drawings) == {"size of the noised answer", "movement"}  # a single number is no curve
    assert (
        drawings["size of the noised answer"].count("<circle") == 40
        and "299 at the start" in drawings["size of the noised answer"]
    )
    page = render(Report(certificate=certificate, schema=gray, grid=b"x", training_curves=course))
    assert "How it came about" in page and "Movement, step by step." in page
    for wrong in ({"a": 1}, {"a": ["1"]}, {"a": [None]}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(BadInput, match="something else than numbers"):
            read_training_curves(path)


def test_the_way_shows_the_first_picture_of_each_class(certificate: Certificate, gray: Schema) -> None:
    classes = len(gray.classes)
    sets = np.random.default_rng(0).uniform(-1, 1, (20, 2 * classes, *gray.shape)).astype(np.float32)
    labels = np.arange(classes).repeat(2)
    way = snapshot_strips(sets, np.arange(1, 21) * 5, labels, gray)
    assert len(way) == 8 and [answers for answers, _ in way][::7] == [5, 100]
    assert way[-1][1].png == strip(sets[-1][::2], gray).png and way[0][1].count == classes
    page = render(
        Report(certificate=certificate, schema=gray, strips=class_strips(sets[-1], labels, gray), snapshots=way)
    )
    assert page.count(f"The first picture of {classes} classes after") == 8
    assert snapshot_strips(sets[:0], np.arange(0), labels, gray) == ()
