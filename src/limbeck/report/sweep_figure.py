"""A curve of a sweep: mean and standard deviation against a setting, which may be numbers or words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from limbeck.errors import BadInput
from limbeck.report import figure as drawn

WIDE = 10.0  # from this ratio of largest to smallest on, numbers are spread by their logarithm


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: (position on the x axis as it was typed, mean, standard deviation) of each point."""

    title: str
    points: tuple[tuple[str, float, float], ...]


def draw_curve(lines: Sequence[Line], x_title: str, y_title: str) -> bytes:
    """PNG bytes: numbers where they lie, words one after the other."""
    if not lines or not all(line.points for line in lines):
        raise BadInput("There is nothing to draw a curve of.")
    positions = list(dict.fromkeys(point[0] for line in lines for point in line.points))
    across = _numbers(positions)
    positive = [value for value in across.values() if value > 0]
    spread = len(positive) == len(across) and max(positive) >= WIDE * min(positive)
    shown = {}
    for line in lines:
        points = sorted(line.points, key=lambda point: across[point[0]])
        shown[line.title] = drawn.Line(
            x=[across[name] for name, _, _ in points], mean=[p[1] for p in points], std=[p[2] for p in points]
        )
    return drawn.line_picture(
        shown, title="", x_title=x_title, y_title=y_title, ticks=across, log_x=_are_numbers(positions) and spread
    )


def _are_numbers(positions: Sequence[str]) -> bool:
    try:
        return all(float(position) < float("inf") for position in positions)
    except ValueError:
        return False


def _numbers(positions: Sequence[str]) -> dict[str, float]:
    if _are_numbers(positions):
        return {position: float(position) for position in positions}
    return {position: float(number) for number, position in enumerate(positions)}
