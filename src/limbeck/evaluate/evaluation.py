"""The result of `limbeck evaluate`: a frozen value with one writer and one reader.

There are three kinds of it: models trained on a released set (`release`), models trained on real records (`trained_on`),
and a released model that is scored itself (`content` is "model"). What does not belong to a kind is None, and is not
written. The reader takes files of older versions as well and reads what it finds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.evaluate.accuracy import Accuracy, accuracies_in
from limbeck.evaluate.baselines import Ceiling, ClassifiersMean, Control
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.reading import number, objects, stated, text, whole
from limbeck.evaluate.row import Row
from limbeck.evaluate.target_score import TargetScore

PUBLIC_TEST = "public test records"


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Accuracies in percent on real test records, and what is needed to read them.

    accuracy: by model, of those that were trained; None in a file that holds none. rows: every model that was asked for.
    release, trained_on: what the models were trained on. records: how many these are.
    preset, protocol: how networks were trained, and whose protocol that is. labels: hard or soft.
    form: "decoded" where a table was trained on as it is opened, "exact" where it has no columns to decode; None, as in older
    files and of pictures, is the exact numbers of the set, too. size: pixels of the longer side that pictures were averaged down
    to before a model saw them, those of the set and the test records alike; None, as in older files: they were not.
    epsilon, adjacency, unit, method: as the certificate of the release states them; a result without a unit is about one record.
    majority_rate: accuracy of always answering the largest class of the test records.
    network: the spec of a released model. targets: of a table, how well each of its targets is predicted.

    >>> from limbeck.api import evaluate
    >>> found = evaluate("digits-set", "digits", models=["linear"], repeats=2)
    >>> len(found.accuracy["linear"].runs), found.test
    (2, 'digits:test')
    >>> Evaluation.from_dict(found.to_dict()) == found
    True
    """

    provenance: Provenance
    accuracy: Mapping[str, Accuracy] | None
    test: str | None = None
    test_records: int | None = None
    majority_rate: float | None = None
    release: str | None = None
    trained_on: str | None = None
    content: str | None = None
    preset: str | None = None
    protocol: str | None = None
    labels: str | None = None
    form: str | None = None
    size: int | None = None
    repeats: int | None = None
    records: int | str | None = None
    epsilon: float | str | None = None
    adjacency: str | None = None
    unit: str | None = None
    method: str | None = None
    network: Mapping[str, Any] | None = None
    rows: tuple[Row, ...] | None = None
    classifiers_mean: ClassifiersMean | None = None
    control: Control | None = None
    ceiling: Ceiling | None = None
    targets: tuple[TargetScore, ...] | None = None
    note: str | None = None

    @property
    def means(self) -> dict[str, float]:
        """The mean accuracy of each model that has one."""
        found = {model: accuracy.mean for model, accuracy in (self.accuracy or {}).items()}
        return {model: mean for model, mean in found.items() if mean is not None}

    def public(self) -> Evaluation:
        """What may be in a release: no path of the owner's machine, no score of real training records.

        Guarantee: what real training records reach stays only where these are proved to be a public benchmark.
        """
        test = self.provenance.benchmark("test")
        part = dataclasses.replace(self, test=PUBLIC_TEST if test is None else test.text)
        if self.provenance.benchmark("real") is not None:
            return part
        rows = tuple(self._public_row(row) for row in self.rows or ())
        return dataclasses.replace(part, ceiling=None, rows=rows, targets=self._public_targets())

    def _public_targets(self) -> tuple[TargetScore, ...] | None:
        """Without a release all of them come from the real training records."""
        return None if self.release is None or self.targets is None else tuple(each.public() for each in self.targets)

    def _public_row(self, row: Row) -> Row:
        """What else stands in a row may come from the real training records; without a release all of it does."""
        if self.release is None:
            return Row(model=row.model, skipped=row.skipped)
        return Row(
            model=row.model,
            skipped=row.skipped,
            area_under_curve=row.area_under_curve,
            f1=row.f1,
            confusion=row.confusion,
            library=row.library,
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `limbeck evaluate --json`."""
        values = {name: value for name in PLAIN if (value := getattr(self, name)) is not None}
        if self.network is not None:
            values["network"] = dict(self.network)
        if self.accuracy is not None:
            values["accuracy"] = {model: each.to_dict() for model, each in self.accuracy.items()}
        if self.rows is not None:
            values["rows"] = [row.to_dict() for row in self.rows]
        if self.targets is not None:
            values["targets"] = [each.to_dict() for each in self.targets]
        for name in ("classifiers_mean", "control", "ceiling"):
            if (part := getattr(self, name)) is not None:
                values[name] = part.to_dict()
        if self.trained_on is not None:
            values.setdefault("classifiers_mean", None)
        return values | self.provenance.to_dict()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Evaluation:
        """Reads what it finds; a score that is no number is none, and an entry of another form is left out."""
        rows, network, targets = values.get("rows"), values.get("network"), values.get("targets")
        return cls(
            provenance=Provenance.from_dict(values),
            accuracy=accuracies_in(values.get("accuracy")),
            test_records=whole(values.get("test_records")),
            majority_rate=number(values.get("majority_rate")),
            release=str(values["release"]) if "release" in values else None,
            repeats=whole(values.get("repeats")),
            size=whole(values.get("size")),
            network=network if isinstance(network, Mapping) else None,
            rows=tuple(Row.from_dict(row) for row in objects(rows)) if isinstance(rows, list) else None,
            classifiers_mean=ClassifiersMean.from_dict(values.get("classifiers_mean")),
            control=Control.from_dict(values.get("control")),
            ceiling=Ceiling.from_dict(values.get("ceiling")),
            targets=tuple(TargetScore.from_dict(each) for each in objects(targets))
            if isinstance(targets, list)
            else None,
            test=text(values.get("test")),
            trained_on=text(values.get("trained_on")),
            content=text(values.get("content")),
            preset=text(values.get("preset")),
            protocol=text(values.get("protocol")),
            labels=text(values.get("labels")),
            form=text(values.get("form")),
            adjacency=text(values.get("adjacency")),
            unit=text(values.get("unit")),
            note=text(values.get("note")),
            records=stated(values, "records"),
            epsilon=stated(values, "epsilon"),
            method=stated(values, "method"),
        )


PLAIN = (
    "release", "content", "trained_on", "test", "preset", "protocol", "labels", "form", "size", "repeats", "records",
    "test_records", "epsilon", "adjacency", "unit", "method", "majority_rate", "note",
)  # fmt: skip
