"""The picture of a run of continual learning: mean accuracy after every stage, one curve per method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limbeck.report.figure import Line, line_picture


def stage_curves(result: Mapping[str, Any]) -> bytes:
    """PNG bytes; the same result gives the same bytes."""
    lines = {
        name: Line(x=range(1, len(curve["mean"]) + 1), mean=curve["mean"], std=curve["std"])
        for name, curve in result["curves"].items()
    }
    promise = f"epsilon {result['epsilon']:g}, delta {result['delta']:g}, {result['adjacency']}"
    return line_picture(
        lines,
        title=f"{result['data']}: {promise}",
        x_title="stage",
        y_title="mean accuracy on the stages so far, %",
        y_range=(0, 102),
        ticks={str(stage): stage for stage in range(1, len(result["parties"]) + 1)},
    )
