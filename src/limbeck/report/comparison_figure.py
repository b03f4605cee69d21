"""The picture of a comparison: a bar for each method, one beside the other for each model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limbeck.report.comparison_table import models_of
from limbeck.report.figure import Bars, bar_picture


def draw_bars(result: Mapping[str, Any]) -> bytes:
    """PNG bytes. A method that a model has not scored has no bar there."""
    rows = result["methods"]
    bars = {
        model: Bars(
            mean=[_number(row, model, "mean") for row in rows], std=[_number(row, model, "std") for row in rows]
        )
        for model in models_of(result)
    }
    budget = result["specification"]["epsilon"]
    title = f"{result['dataset']}{'' if budget is None else f', epsilon {budget} a set'}"
    return bar_picture(bars, [row["method"] for row in rows], title=title, y_title="accuracy on real test records (%)")


def _number(row: Mapping[str, Any], model: str, name: str) -> float | None:
    score = row["accuracy"].get(model)
    return None if score is None else score[name]
