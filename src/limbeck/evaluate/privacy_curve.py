"""Accuracy against the epsilon spent so far, from the sets that one run kept on the way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.data import DataSource
from limbeck.data.arrays import stored
from limbeck.errors import BadInput, DataUnreadable
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.compatible import require_compatible, require_label
from limbeck.evaluate.decoded import decoded, form_of_rows
from limbeck.evaluate.labelled import load_labelled
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.reading import finite, number, objects, stated, text, whole
from limbeck.evaluate.scoring import TrainingSet, score_models
from limbeck.evaluate.seen import seen, seen_records, seen_schema, seen_size
from limbeck.privacy.accounting import price
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.unit import stated_unit
from limbeck.progress import Reporter, Silent
from limbeck.release.formats import SNAPSHOTS
from limbeck.release.reader import Release, read_release
from limbeck.release.working_size import working_size


@dataclass(frozen=True)
class CurvePoint:
    """The set after `step` answers: the epsilon spent by then (a number, or "infinity"), and its accuracy.

    In a file epsilon or step may be missing.
    """

    step: float | None
    epsilon: float | str | None
    accuracy: Accuracy

    @property
    def has_epsilon(self) -> bool:
        """Whether epsilon is a finite number."""
        return finite(self.epsilon) is not None

    def to_dict(self) -> dict[str, Any]:
        measured = self.accuracy.to_dict()
        return {"step": self.step, "epsilon": self.epsilon, "accuracy": measured.pop("mean"), **measured}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CurvePoint:
        accuracy = Accuracy.from_dict({**values, "mean": values.get("accuracy")})
        return cls(number(values.get("step")), stated(values, "epsilon"), accuracy)


@dataclass(frozen=True, kw_only=True)
class PrivacyCurve:
    """The result of `limbeck curve`. The reader takes any JSON object with points; x is the title of the axis.

    form: "decoded" or "exact" rows of a table; None, as in older files, are the exact numbers. size: as of an `Evaluation`.
    """

    points: tuple[CurvePoint, ...]
    provenance: Provenance
    title: str | None = None
    x: str | None = None
    release: str | None = None
    method: str | None = None
    model: str | None = None
    preset: str | None = None
    repeats: int | None = None
    delta: float | None = None
    adjacency: str | None = None
    unit: str | None = None
    test: str | None = None
    form: str | None = None
    size: int | None = None

    @property
    def by_epsilon(self) -> bool:
        """Whether every point has an epsilon that can be drawn; else the answers count."""
        return bool(self.points) and all(point.has_epsilon for point in self.points)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `limbeck curve --json`."""
        values = {name: value for name in PLAIN if (value := getattr(self, name)) is not None}
        return {**values, "points": [point.to_dict() for point in self.points], **self.provenance.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyCurve:
        """Reads what it finds; points without an accuracy are left out."""
        points = (CurvePoint.from_dict(point) for point in objects(values.get("points")))
        return cls(
            points=tuple(point for point in points if point.accuracy.mean is not None),
            provenance=Provenance.from_dict(values),
            title=text(values.get("title")),
            x=text(values.get("x")),
            release=text(values.get("release")),
            method=text(values.get("method")),
            model=text(values.get("model")),
            preset=text(values.get("preset")),
            repeats=whole(values.get("repeats")),
            delta=number(values.get("delta")),
            adjacency=text(values.get("adjacency")),
            unit=text(values.get("unit")),
            test=text(values.get("test")),
            form=text(values.get("form")),
            size=whole(values.get("size")),
        )


PLAIN = (
    "title", "x", "release", "method", "model", "preset", "repeats", "delta", "adjacency", "unit", "test", "form", "size",
)  # fmt: skip


def privacy_curve(folder: Path, test: DataSource, protocol: EvaluationProtocol, reporter: Reporter) -> PrivacyCurve:
    """Train the protocol's one model on every kept set and score each on the test records; whose figures they are is stated."""
    found = read_release(folder)
    require_label(found.schema)
    require_compatible(found.schema, test.schema)
    sets, after = read_snapshots(folder, found)
    as_seen = seen_schema(found.schema, protocol.size, working_size(found.certificate))
    scoring = protocol.resolve(as_seen)
    if len(scoring.choices) != 1:
        raise BadInput(f"A curve is of one model, not of {len(scoring.choices)}; name one by --model.")
    records = seen_records(load_labelled(test, found.schema), as_seen)
    labels, classes = torch.from_numpy(found.y), len(found.schema.classes)
    points = []
    reporter.start(f"curve of {folder.name}", len(sets), 0)
    for done, (x, answers) in enumerate(zip(sets, after, strict=True), 1):
        training = TrainingSet(x=seen(decoded(x, found.schema), as_seen), y=labels, classes=classes)
        (outcome,) = score_models(training, [records], scoring, Silent())
        if outcome.score is None:
            raise BadInput(outcome.skipped or f"{outcome.model} was not trained.")
        spent = spent_after(found, int(answers))
        points.append(CurvePoint(int(answers), spent, Accuracy.of(outcome.score.runs)))
        reporter.advance(done)
    return PrivacyCurve(
        title=f"{found.certificate.method} on {found.schema.name}: accuracy against the epsilon spent so far",
        x="epsilon spent",
        release=folder.name,
        method=found.certificate.method,
        model=scoring.choices[0].model,
        preset=scoring.preset.name,
        repeats=scoring.repeats,
        delta=found.certificate.delta,
        adjacency=found.certificate.adjacency,
        unit=stated_unit(found.certificate.unit),
        test=test.where,
        form=form_of_rows(found.schema),
        size=seen_size(found.schema, as_seen),
        points=tuple(points),
        provenance=Provenance.of(test=test),
    )


def read_snapshots(folder: Path, found: Release) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    path = folder / SNAPSHOTS
    if not path.exists():
        raise BadInput(
            f"The release in {folder} keeps no sets of the way there, so there is no curve; the methods psg, psg-prior, dc and "
            "dsa keep them with --set snapshots=10."
        )
    try:
        content = stored(path, ("x", "after"))
        x, after = content["x"], content["after"]
    except (OSError, DataUnreadable):
        raise BadInput(f"{path} is damaged.", f"limbeck verify {folder}") from None
    if len(x) != len(after) or x.shape[1:] != found.x.shape:
        raise BadInput(f"{path} does not fit the set beside it.", f"limbeck verify {folder}")
    return x, after


def spent_after(found: Release, answers: int) -> float | str:
    """What the release's queries cost when the repeated one had given so many answers.

    Guarantee: an upper bound like the certificate's own epsilon; queries asked once count in full from the start.
    """
    queries = found.certificate.queries
    repeated = max(queries, key=lambda query: query.count)
    others = [query for query in queries if query is not repeated]
    asked = dataclasses.replace(repeated, count=min(answers, repeated.count))
    return finite_or_word(price([*others, asked], found.certificate.delta).epsilon)
