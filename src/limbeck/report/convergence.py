"""A privacy-utility curve: how good the result was after how much epsilon, or after how many steps.

It is a JSON object with `points` (each with `accuracy`, `epsilon` or `step`, and perhaps `std`), and perhaps a `title`, the name
`x` of the axis, and an `edition`; docs/report.md has an example.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from limbeck.errors import BadInput
from limbeck.evaluate.privacy_curve import PrivacyCurve
from limbeck.evaluate.reading import finite, read_json
from limbeck.methods.parts.generator_training import MEANS
from limbeck.report.charts import Point
from limbeck.report.charts import curve as line_chart
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


def curve_view(curve: PrivacyCurve, what: str = FILE) -> CurveView:
    """Fewer than two points that can be drawn are no curve."""
    points = [
        Point(x=float(x), y=float(y), spread=point.accuracy.std or 0.0)
        for point in curve.points
        if (y := point.accuracy.mean) is not None
        and (x := finite(point.epsilon if curve.by_epsilon else point.step)) is not None
    ]
    if len(points) < 2:
        raise BadInput(
            f"{what} holds fewer than two points with an accuracy and an epsilon or a step, so it is no curve."
        )
    x_title = curve.x or ("epsilon spent" if curve.by_epsilon else "step")
    best = max(points, key=lambda point: point.y)
    return CurveView(
        title=curve.title or "Accuracy against what was spent",
        drawing=line_chart(
            points, x_title, "accuracy, %", f"A curve of {len(points)} points; its highest is {best.y:.2f} %."
        ),
        columns=("Step", "Epsilon", "Accuracy, %", "Std"),
        rows=tuple(
            (number(point.step), number(point.epsilon), number(point.accuracy.mean), number(point.accuracy.std))
            for point in curve.points
        ),
    )


def read_training_curves(path: Path) -> dict[str, list[float]]:
    """Numbers by step that a method wrote beside its set, by name."""
    values = read_json(path, "course of a run")
    if not all(
        isinstance(steps, list) and all(finite(each) is not None for each in steps) for steps in values.values()
    ):
        raise BadInput(f"{path} holds something else than numbers by step.")
    return values


def training_curve_drawings(curves: Mapping[str, Sequence[float]]) -> tuple[tuple[str, Markup], ...]:
    """(name, drawing) of every training curve; of long ones the means of equal stretches are drawn. Means have a sign and are
    for `site_rows`: no curve of a size."""
    return tuple(
        (name, _training_curve(name, values)) for name, values in curves.items() if len(values) > 1 and name != MEANS
    )


def _training_curve(name: str, values: Sequence[float]) -> Markup:
    stretch = math.ceil(len(values) / MOST_POINTS)
    parts = [values[start : start + stretch] for start in range(0, len(values), stretch)]
    points = [Point(x=index * stretch + len(part), y=sum(part) / len(part)) for index, part in enumerate(parts)]
    words = f"{name}: {points[0].y:.3g} at the start, {points[-1].y:.3g} at the end."
    return line_chart(points, "answers", "root mean square", words, highest=math.inf)
