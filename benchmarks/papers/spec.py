"""What a table is: the paper's printed figures if it is a paper's, and for each place the run and the model that measure ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Settings = Mapping[str, Any]
Place = tuple[str, str]  # (row, column)

SCALES = ("small", "cpu", "full")
REAL = "real"  # not a method: records of the real training set, as a reference
AVERAGE = "average"  # not a model: the mean over all models of a run
PERCENT, SHARE = "percent", "share"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure as the paper prints it, with the epsilon that it states beside it."""

    mean: str
    std: str | None = None
    epsilon: str | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """One way to make a set, and the models that are scored on it.

    name       within its table, such as ldpdc/mnist
    epsilon    the budget; None where the row fixes the noise
    settings   what the paper's row fixes
    at         what a scale changes in this row, beyond what it changes for the method
    bulk       a set of thousands per class, whose size the scale decides
    protocol   whose way of training and averaging the full scale follows
    """

    name: str
    data: str
    method: str
    models: tuple[str, ...]
    protocol: str
    epsilon: float | None = None
    settings: Settings = field(default_factory=dict)
    at: Mapping[str, Settings] = field(default_factory=dict)
    bulk: bool = False


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Where our figure of a place comes from: a run and one of its models, or why there is none."""

    run: Run | None = None
    model: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """unit: percent or share, as the paper prints; decimals: of our figures."""

    name: str
    title: str
    source: str
    note: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    paper: Mapping[Place, Figure | None]
    cells: Mapping[Place, Cell]
    unit: str = PERCENT
    decimals: int = 2

    @property
    def runs(self) -> tuple[Run, ...]:
        """Each run once, in the order of the table, with every model that some cell asks of it."""
        found: dict[str, Run] = {}
        for row in self.rows:
            for column in self.columns:
                run = self.cells[row, column].run
                if run is not None:
                    found.setdefault(run.name, run)
        return tuple(found.values())

    @property
    def is_ours(self) -> bool:
        """Whether no paper prints a figure of it."""
        return not any(self.paper.values())


NO_DATA = Cell(reason="no data set")
NOT_PRINTED = Cell(reason="-")


def make_table(
    *,
    name: str,
    title: str,
    source: str,
    columns: tuple[str, ...],
    rows: Mapping[str, str],
    cell_of: Callable[[str, str], Cell],
    note: str = "",
    unit: str = PERCENT,
    decimals: int = 2,
) -> Table:
    """rows: the printed figures of each row, '85.79 ± 0.81 at 1.10 | 63.95 | -'."""
    paper: dict[Place, Figure | None] = {}
    for row, text in rows.items():
        printed = text.split("|")
        if len(printed) != len(columns):
            raise ValueError(f"{name}: row {row!r} has {len(printed)} figures for {len(columns)} columns.")
        for column, figure in zip(columns, printed, strict=True):
            paper[row, column] = figure_from(figure)
    cells = {place: cell_of(*place) for place in paper}
    return Table(
        name=name,
        title=title,
        source=source,
        note=note,
        rows=tuple(rows),
        columns=columns,
        paper=paper,
        cells=cells,
        unit=unit,
        decimals=decimals,
    )


def figure_from(text: str) -> Figure | None:
    """
    >>> figure_from("85.79 ± 0.81 at 1.10")
    Figure(mean='85.79', std='0.81', epsilon='1.10')
    """
    text = text.strip()
    if text == "-":
        return None
    value, _, epsilon = (part.strip() for part in text.partition(" at "))
    mean, _, std = (part.strip() for part in value.partition("±"))
    for number in (mean, std, epsilon):
        if number:
            float(number)  # a slip of the pen is found when the table is loaded
    return Figure(mean=mean, std=std or None, epsilon=epsilon or None)
