"""One model of an evaluation, with everything that was measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.evaluate.accuracy import Accuracy, accuracies_in
from limbeck.evaluate.reading import number, text, whole


@dataclass(frozen=True, kw_only=True)
class Row:
    """`accuracy` is None where `skipped` says why the model was not trained.

    family: architecture or classifier. records: how many it was trained on. width: filters, where they follow the preset.
    best_on_test: of the best epoch on the test set, which `selection` calls optimistic. control, ceiling: the accuracy
    on noise with the same labels, and on real records. calibrated: the accuracy in percent of the ceiling.
    f1: of a table, by the name of the class. library: what fitted the model, where that depends on the machine.
    confusion: over all fits, test records by true class and by answer, in the order of the schema's classes.
    """

    model: str
    family: str | None = None
    records: int | None = None
    width: int | None = None
    accuracy: Accuracy | None = None
    labels: str | None = None
    seconds: float | None = None
    best_on_test: Accuracy | None = None
    selection: str | None = None
    area_under_curve: Accuracy | None = None
    f1: Mapping[str, Accuracy] | None = None
    library: str | None = None
    control: float | None = None
    ceiling: float | None = None
    calibrated: float | None = None
    skipped: str | None = None
    confusion: tuple[tuple[int, ...], ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """
        >>> Row(model="mlp", records=20, accuracy=Accuracy(90.0, None, (90.0,))).to_dict()
        {'model': 'mlp', 'records': 20, 'mean': 90.0, 'std': None, 'runs': [90.0]}
        """
        values = self._plain("model", "family", "records", "width", "skipped")
        if self.accuracy is not None:
            values |= self.accuracy.to_dict()
        values |= self._plain("labels", "seconds", "library")
        if self.best_on_test is not None:
            values["best_on_test"] = {**self.best_on_test.to_dict(), **self._plain("selection")}
        if self.area_under_curve is not None:
            values["area_under_curve"] = self.area_under_curve.to_dict()
        if self.f1 is not None:
            values["f1"] = {name: each.to_dict() for name, each in self.f1.items()}
        if self.confusion is not None:
            values["confusion"] = [list(row) for row in self.confusion]
        return values | self._plain("control", "ceiling", "calibrated")

    def _plain(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Row:
        best, area = values.get("best_on_test"), values.get("area_under_curve")
        return cls(
            model=str(values.get("model", "-")),
            family=text(values.get("family")),
            records=whole(values.get("records")),
            width=whole(values.get("width")),
            accuracy=Accuracy.from_dict(values) if "mean" in values else None,
            labels=text(values.get("labels")),
            seconds=number(values.get("seconds")),
            best_on_test=Accuracy.from_dict(best) if isinstance(best, Mapping) else None,
            selection=text(best.get("selection")) if isinstance(best, Mapping) else None,
            area_under_curve=Accuracy.from_dict(area) if isinstance(area, Mapping) else None,
            f1=accuracies_in(values.get("f1")),
            library=text(values.get("library")),
            control=number(values.get("control")),
            ceiling=number(values.get("ceiling")),
            calibrated=number(values.get("calibrated")),
            skipped=str(values["skipped"]) if values.get("skipped") else None,
            confusion=_matrix(values.get("confusion")),
        )


def _matrix(value: object) -> tuple[tuple[int, ...], ...] | None:
    """A square of counts; None for anything else."""
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(row, list) and len(row) == len(value) for row in value)
    ):
        return None
    if not all(type(cell) is int and cell >= 0 for row in value for cell in row):
        return None
    return tuple(tuple(row) for row in value)
