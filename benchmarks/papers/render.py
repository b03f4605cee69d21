"""The page of results: the papers' figures beside ours, made of the kept JSON files alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.papers.kept import Result, path_of, read_result
from benchmarks.papers.run import exists
from benchmarks.papers.spec import REAL, SHARE, Cell, Figure, Place, Run, Table
from limbeck.errors import BadInput

SHOWN = ("full", "cpu")  # the better one first; `small` shows nothing about a method
NOT_RUN, NO_METHOD = "not run", "no method yet"

HEAD = """# Results beside the papers'

This page is generated: `python -m benchmarks.papers render` writes it from the JSON files in `benchmarks/results/papers/`, and
from nothing else. `python -m benchmarks.papers measure --table NAME --scale cpu` measures a table and keeps its figures there.

In each cell the first line is the paper's figure, with the epsilon that it states beside it. The second line is **ours**, with
the epsilon that was really spent (the smaller of PLD and RDP, one record added or removed, delta = 1e-5) and the scale: `full`
is the paper's own setting, `cpu` what two cores carry in minutes. The tables elixir-1a, elixir-1b and elixir-1c are our own
comparison: they have our figure only, at the epsilon of their title.

*not run*: nobody has measured it here yet. *no method yet*: Limbeck does not have this method. *no data set*: the data cannot
be had here. A dash: the paper has no figure. Nothing is filled in by guessing.

Our standard deviations are over the sets and networks that the list below each table names; a figure without one is a
single fit.
"""


def render(tables: Iterable[Table], results: Path, page: Path) -> str:
    """The whole page; `page` is where it will stand, for the links to the files."""
    parts = [HEAD]
    for table in tables:
        parts.append(_section(table, results, page))
    return "\n".join(parts)


def filled(text: str, tables: Iterable[Table], results: Path) -> str:
    """A page with text of its own, whose tables stand between two comments: <!-- dpdc-1 --> and <!-- end of dpdc-1 -->."""
    for table in tables:
        begin, end = f"<!-- {table.name} -->", f"<!-- end of {table.name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if found and not closed:
            raise BadInput(f"The page has '{begin}' but no '{end}' after it.")
        if found:
            grid = "\n".join(_grid(table, best_results(table, results)))
            text = f"{before}{begin}\n{grid}\n{end}{after}"
    return text


def is_marked(text: str, tables: Iterable[Table]) -> bool:
    """Whether a page has places for tables."""
    return any(f"<!-- {table.name} -->" in text for table in tables)


def best_results(table: Table, results: Path) -> dict[str, tuple[str, Result]]:
    """For every run the kept result of the best scale."""
    found: dict[str, tuple[str, Result]] = {}
    for run in table.runs:
        for scale in SHOWN:
            result = read_result(results, table, run, scale)
            if result is not None:
                found[run.name] = (scale, result)
                break
    return found


def _section(table: Table, results: Path, page: Path) -> str:
    found = best_results(table, results)
    lines = [f"## {table.name}: {table.title}", "", f"{table.source}. Accuracy in {_unit(table)}.", ""]
    lines += [*_grid(table, found), "", *([table.note, ""] if table.note else [])]
    runs = {run.name: run for run in table.runs}
    for name, (scale, result) in found.items():
        lines.append(_footnote(runs[name], scale, result, path_of(results, table, runs[name], scale), page))
    return "\n".join([*lines, ""]) if found else "\n".join(lines)


def _grid(table: Table, found: dict[str, tuple[str, Result]]) -> list[str]:
    lines = [f"| | {' | '.join(table.columns)} |", f"| --- |{' --- |' * len(table.columns)}"]
    for row in table.rows:
        cells = [_cell(table, (row, column), found) for column in table.columns]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


def _unit(table: Table) -> str:
    return "shares of 1" if table.unit == SHARE else "per cent"


def _cell(table: Table, place: Place, found: dict[str, tuple[str, Result]]) -> str:
    cell, printed = table.cells[place], table.paper[place]
    if printed is None and cell.run is None:
        return "-"
    ours = _ours(table, cell, found)
    return ours if table.is_ours else f"{_printed(printed)}<br>{ours}"


def _printed(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    spread = f" ± {figure.std}" if figure.std else ""
    budget = f" at {figure.epsilon}" if figure.epsilon else ""
    return f"{figure.mean}{spread}{budget}"


def _ours(table: Table, cell: Cell, found: dict[str, tuple[str, Result]]) -> str:
    if cell.run is None:
        return f"*{cell.reason}*"
    if cell.run.name not in found:
        return f"*{NOT_RUN if exists(cell.run) else NO_METHOD}*"
    scale, result = found[cell.run.name]
    score = result["accuracy"].get(cell.model)
    if score is None:
        return f"*{NOT_RUN}*"
    budget = "" if cell.run.method == REAL or table.is_ours else f" at {_epsilon(result['epsilon'])}"
    return f"**{shown(score, table)}**{budget} ({scale})"


def shown(score: dict[str, Any], table: Table) -> str:
    """A figure of ours in the table's unit."""
    factor = 0.01 if table.unit == SHARE else 1.0
    spread = "" if score["std"] is None else f" ± {factor * score['std']:.{table.decimals}f}"
    return f"{factor * score['mean']:.{table.decimals}f}{spread}"


def _epsilon(value: float | str) -> str:
    return "infinity" if isinstance(value, str) else f"{value:.4g}"


def _footnote(run: Run, scale: str, result: Result, path: Path, page: Path) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in sorted(result["settings"].items()) if name != "seed")
    made = f"{result['sets']} set{'s' * (result['sets'] > 1)}, {result['networks']} network{'s' * (result['networks'] > 1)} each"
    taken = f"; taken from `{result['imported_from']}`" if "imported_from" in result else ""
    link = Path(os.path.relpath(path, page.parent)).as_posix()
    return f"- `{run.name}` ({scale}): {made}, preset `{result['preset']}`; {settings}{taken}; [{path.name}]({link})"
