"""How well one model predicts one target of a table: a frozen value with one writer and one reader."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.reading import number, text, whole

MEASURES = ("r2", "mae", "accuracy", "area_under_curve")
REGRESSION, CLASSES = "regression", "classes"


@dataclass(frozen=True, kw_only=True)
class TargetScore:
    """Of a number `r2`, 1 at best and 0 for always saying the mean, and `mae`, in the target's own unit (days of a date,
    seconds of a time stamp); of a category accuracy and area under the ROC curve in per cent.

    ceiling: r2 or accuracy of the same model trained on real rows. records, test_records: rows that have a value for the target.
    """

    target: str
    model: str
    kind: str = REGRESSION
    records: int | None = None
    test_records: int | None = None
    r2: Accuracy | None = None
    mae: Accuracy | None = None
    accuracy: Accuracy | None = None
    area_under_curve: Accuracy | None = None
    ceiling: float | None = None
    library: str | None = None
    skipped: str | None = None

    @property
    def main(self) -> float | None:
        """What is compared with the ceiling: r2 of a number, accuracy of a category."""
        found = self.r2 if self.kind == REGRESSION else self.accuracy
        return None if found is None else found.mean

    def public(self) -> TargetScore:
        """Without what real training rows reach."""
        return dataclasses.replace(self, ceiling=None)

    def to_dict(self) -> dict[str, Any]:
        """
        >>> TargetScore(target="pay", model="ridge", r2=Accuracy(0.5, None, (0.5,))).to_dict()
        {'target': 'pay', 'model': 'ridge', 'kind': 'regression', 'r2': {'mean': 0.5, 'std': None, 'runs': [0.5]}}
        """
        plain = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in MEASURES
        }
        found = {name: value for name, value in plain.items() if value is not None}
        measured = {name: each.to_dict() for name in MEASURES if (each := getattr(self, name)) is not None}
        return found | measured

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TargetScore:
        measured = {name: Accuracy.from_dict(values[name]) for name in MEASURES if name in values}
        return cls(
            target=str(values.get("target", "-")),
            model=str(values.get("model", "-")),
            kind=CLASSES if values.get("kind") == CLASSES else REGRESSION,
            records=whole(values.get("records")),
            test_records=whole(values.get("test_records")),
            ceiling=number(values.get("ceiling")),
            library=text(values.get("library")),
            skipped=text(values.get("skipped")),
            **measured,
        )


def figures(runs: Sequence[float]) -> Accuracy:
    """In six digits, however small they are: a target may be counted in millionths.

    >>> figures([0.000012345678])
    Accuracy(mean=1.23457e-05, std=None, runs=(1.23457e-05,))
    """
    found = [float(f"{run:.6g}") for run in runs]
    mean = sum(found) / len(found)
    spread = (sum((run - mean) ** 2 for run in found) / (len(found) - 1)) ** 0.5 if len(found) > 1 else None
    return Accuracy(float(f"{mean:.6g}"), None if spread is None else float(f"{spread:.6g}"), tuple(found))
