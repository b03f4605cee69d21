"""A privacy-utility curve: how good the result was after how much epsilon, or after how many steps.

It is a JSON object with `points` (each with `accuracy`, `epsilon` or `step`, and perhaps `std`), and perhaps a `title`, the name
`x` of the axis, and an `edition`; docs/report.md has an example.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from limbeck.errors import BadInput
from limbeck.report.charts import Point, curve
from limbeck.report.scores import finite, read_json
from limbeck.report.wording import number

FILE = "curve.json"
MOST_POINTS = 50  # of a training curve that is drawn


@dataclass(frozen=True, kw_only=True)
class CurveView:
    """The drawing, and the same numbers as rows for those who cannot see it."""

    title: str
    drawing: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def curve_view(values: Mapping[str, Any], what: str = FILE) -> CurveView:
    """Points without an accuracy are left out; fewer than two are no curve."""
    found = [point for point in _points(values) if finite(point.get("accuracy")) is not None]
    by_epsilon = bool(found) and all(finite(point.get("epsilon")) is not None for point in found)
    key = "epsilon" if by_epsilon else "step"
    points = [
        Point(x=float(point[key]), y=float(point["accuracy"]), spread=finite(point.get("std")) or 0.0)
        for point in found
        if finite(point.get(key)) is not None
    ]
    if len(points) < 2:
        raise BadInput(
            f"{what} holds fewer than two points with an accuracy and an epsilon or a step, so it is no curve."
        )
    x_title = str(values.get("x") or ("epsilon spent" if by_epsilon else "step"))
    best = max(points, key=lambda point: point.y)
    return CurveView(
        title=str(values.get("title") or "Accuracy against what was spent"),
        drawing=curve(
            points, x_title, "accuracy, %", f"A curve of {len(points)} points; its highest is {best.y:.2f} %."
        ),
        columns=("Step", "Epsilon", "Accuracy, %", "Std"),
        rows=tuple(
            tuple(number(point.get(name)) for name in ("step", "epsilon", "accuracy", "std")) for point in found
        ),
    )


def read_training_curves(path: Path) -> dict[str, list[float]]:
    """Numbers by step that a method wrote beside its set, by name."""
    values = read_json(path, "course of a run")
    if not all(
        isinstance(curve, list) and all(finite(each) is not None for each in curve) for curve in values.values()
    ):
        raise BadInput(f"{path} holds something else than numbers by step.")
    return values


def training_curve_drawings(curves: Mapping[str, Sequence[float]]) -> tuple[tuple[str, Markup], ...]:
    """(name, drawing) of every training curve; of long ones the means of equal stretches are drawn."""
    return tuple((name, _training_curve(name, values)) for name, values in curves.items() if len(values) > 1)


def _training_curve(name: str, values: Sequence[float]) -> Markup:
    stretch = math.ceil(len(values) / MOST_POINTS)
    parts = [values[start : start + stretch] for start in range(0, len(values), stretch)]
    points = [Point(x=index * stretch + len(part), y=sum(part) / len(part)) for index, part in enumerate(parts)]
    words = f"{name}: {points[0].y:.3g} at the start, {points[-1].y:.3g} at the end."
    return curve(points, "answers", "root mean square", words, highest=math.inf)


def _points(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    points = values.get("points")
    return [point for point in points if isinstance(point, Mapping)] if isinstance(points, list) else []
