"""Curves and bars with their errors as a PNG: the one look of all pictures of results."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import matplotlib

from limbeck.report.pictures import one_line

INK, LINE = "#343a44", "#d9d6d0"
COLOURS = ("#1f6f78", "#c2571a", "#5b4b9a", "#8a8f3c", "#a3211b", "#3b6fb6")
MARKS = "osD^vP"


@dataclass(frozen=True, kw_only=True)
class Line:
    x: Sequence[float]
    mean: Sequence[float]
    std: Sequence[float | None]  # none after a single run: no bar


def line_picture(
    lines: Mapping[str, Line],
    *,
    title: str,
    x_title: str,
    y_title: str,
    y_range: tuple[float, float] | None = None,
    ticks: Mapping[str, float] | None = None,
    log_x: bool = False,
) -> bytes:
    """PNG bytes; the same lines give the same bytes. `ticks` are the only marks on the x axis, with these names."""
    with _clean_style():
        figure, axes = _blank()
        for index, (name, line) in enumerate(lines.items()):
            colour, mark = COLOURS[index % len(COLOURS)], MARKS[index % len(MARKS)]
            bars = [std or 0.0 for std in line.std]
            axes.errorbar(line.x, line.mean, bars, color=colour, marker=mark, capsize=3, label=one_line(name))
        if log_x:
            axes.set_xscale("log")
        if ticks is not None:
            axes.set_xticks(list(ticks.values()), [one_line(name) for name in ticks])
            axes.minorticks_off()
        if y_range is not None:
            axes.set_ylim(*y_range)
        axes.set_xlabel(one_line(x_title), color=INK)
        return _finished(figure, axes, title, y_title, len(lines))


@dataclass(frozen=True, kw_only=True)
class Bars:
    """One bar for each name of the picture; none where there is no mean."""

    mean: Sequence[float | None]
    std: Sequence[float | None]


def bar_picture(groups: Mapping[str, Bars], names: Sequence[str], *, title: str, y_title: str) -> bytes:
    """PNG bytes: for each name the bars of all groups side by side."""
    with _clean_style():
        figure, axes = _blank()
        wide = 0.8 / max(len(groups), 1)
        for index, (group, bars) in enumerate(groups.items()):
            shown = [place for place, mean in enumerate(bars.mean) if mean is not None]
            across = [place + (index - (len(groups) - 1) / 2) * wide for place in shown]
            axes.bar(
                across,
                [bars.mean[place] for place in shown],
                wide * 0.9,
                yerr=[bars.std[place] or 0.0 for place in shown],
                color=COLOURS[index % len(COLOURS)],
                ecolor=INK,
                capsize=3,
                label=one_line(group),
            )
        axes.set_xticks(range(len(names)), [one_line(name) for name in names], rotation=30 if len(names) > 5 else 0)
        axes.set_ylim(0, 100)
        axes.set_axisbelow(True)
        # Bars fill the picture, so their names stand beside it.
        return _finished(figure, axes, title, y_title, len(groups), {"loc": "upper left", "bbox_to_anchor": (1, 1)})


@contextlib.contextmanager
def _clean_style() -> Iterator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the reader's own style must not change the bytes
        yield


def _blank() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), dpi=150, facecolor="white", layout="constrained")
    return figure, figure.add_subplot()


def _finished(
    figure: Any, axes: Any, title: str, y_title: str, drawn: int, place: Mapping[str, Any] = MappingProxyType({})
) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    axes.set_ylabel(one_line(y_title), color=INK)
    if title:
        axes.set_title(one_line(title), color=INK, fontsize=10, parse_math=False)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    if drawn > 1:
        axes.legend(frameon=False, **place)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()
