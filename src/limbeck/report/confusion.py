"""Which classes a model tells apart, and which it takes for each other: the best model of a table of scores, class by class."""

from __future__ import annotations

from dataclasses import dataclass

from limbeck.privacy.schema import Schema
from limbeck.report.scores import ScoreTable

MOST_SHOWN = 20  # classes of a matrix on a page; of more there is the list alone
LEVELS = 8


@dataclass(frozen=True, kw_only=True)
class ClassLine:
    """A class: the share of its test records that were told right, and what the others were taken for most often."""

    name: str
    records: int
    right: str
    mistaken: str


@dataclass(frozen=True, kw_only=True)
class ConfusionView:
    """matrix: by true class and answer (share of the class in per cent, level of its shade); empty where it would be too wide."""

    model: str
    names: tuple[str, ...]
    lines: list[ClassLine]
    matrix: list[list[tuple[str, int]]]


def confusion_view(table: ScoreTable, schema: Schema) -> ConfusionView | None:
    """None where the evaluation has none, as older ones, or one of other classes."""
    rows = [row for row in table.rows if row.confusion is not None and row.mean is not None]
    fitting = [row for row in rows if row.confusion is not None and len(row.confusion) == len(schema.classes)]
    if not fitting:
        return None
    best = max(fitting, key=lambda row: row.mean or 0.0)
    counts = best.confusion or ()
    lines = [_line(index, row, schema) for index, row in enumerate(counts)]
    fits = max(1, len(best.runs))
    matrix = [[_cell(cell, sum(row)) for cell in row] for row in counts] if len(counts) <= MOST_SHOWN else []
    scaled = [
        ClassLine(name=each.name, records=each.records // fits, right=each.right, mistaken=each.mistaken)
        for each in lines
    ]
    return ConfusionView(model=best.model, names=schema.classes, lines=scaled, matrix=matrix)


def _line(index: int, row: tuple[int, ...], schema: Schema) -> ClassLine:
    total = sum(row)
    others = [(count, other) for other, count in enumerate(row) if other != index and count]
    worst = max(others, default=None)
    return ClassLine(
        name=schema.classes[index],
        records=total,
        right=f"{100 * row[index] / total:.1f} %" if total else "-",
        mistaken="-" if worst is None else f"{schema.classes[worst[1]]} ({100 * worst[0] / total:.1f} %)",
    )


def _cell(count: int, total: int) -> tuple[str, int]:
    share = count / total if total else 0.0
    return ("" if not count else f"{100 * share:.0f}" if share >= 0.005 else "<1", min(LEVELS - 1, int(share * LEVELS)))
