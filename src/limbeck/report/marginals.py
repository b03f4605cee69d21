"""The marginals of a table on the owner's page: a chart of each column, a map of all pairs, and what is rare or missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from limbeck.evaluate.table_marginals import ColumnMarginal, Shares, TableMarginals
from limbeck.report.marginal_charts import Bar, heat_map, small_chart

# More would be too small to see, and too heavy to open on a phone.
MOST_BARS, MOST_COLUMNS, MOST_IN_MAP, MOST_RARE, MOST_PAIRS = 24, 60, 40, 40, 8
LONGEST_NAME = 18
Pairs = Sequence[Sequence[float | None]]


@dataclass(frozen=True, kw_only=True)
class Chart:
    name: str
    distance: str
    drawing: Markup


@dataclass(frozen=True, kw_only=True)
class MarginalsView:
    """means: (what, of the set, of the real test rows). missing: (column, real, synthetic); rare: the same by category.

    `left` and `rare_left` count what is not shown; `in_map` how many columns the map has.
    """

    means: tuple[tuple[str, str, str], ...]
    charts: tuple[Chart, ...]
    left: int
    map: Markup | None
    in_map: int
    columns: int
    missing: tuple[tuple[str, str, str], ...]
    rare: tuple[tuple[str, str, str, str], ...]
    rare_left: int
    broken: tuple[int, int | None] | None = None
    correlated: str = ""
    farthest: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ColumnsView:
    """The columns of the synthetic table by themselves. modelled: whether the release's own model stands beside them."""

    charts: tuple[Chart, ...]
    left: int
    modelled: bool


def columns_view(found: Sequence[ColumnMarginal]) -> ColumnsView:
    """Guarantee: shows synthetic rows, and what a model of noised answers says; both are in the release."""
    charts = [_chart(column, "by the model") for column in found[:MOST_COLUMNS]]
    modelled = any(each.total_variation is not None for each in found)
    return ColumnsView(charts=tuple(charts), left=len(found) - len(charts), modelled=modelled)


def marginals_view(found: TableMarginals) -> MarginalsView:
    charts = [_chart(column) for column in found.columns[:MOST_COLUMNS]]
    shown = _farthest(found)
    return MarginalsView(
        means=(
            ("One column", _percent(found.one_way), _percent(found.real_one_way)),
            ("Two columns", _percent(found.two_way), _percent(found.real_two_way)),
        ),
        charts=tuple(charts),
        left=len(found.columns) - len(charts),
        map=_map(found, shown),
        in_map=len(shown),
        columns=len(found.columns),
        missing=tuple((each.name, *_both(each.missing)) for each in found.columns if _any(each.missing)),
        rare=tuple((each.column, each.category, *_both(each.shares)) for each in found.rare[:MOST_RARE]),
        rare_left=max(len(found.rare) - MOST_RARE, 0),
        broken=None if found.broken is None else (found.broken, found.real_broken),
        **_correlated(found),
    )


def _correlated(found: TableMarginals) -> dict[str, Any]:
    if found.correlations is None or found.correlations.mean_error is None:
        return {}
    worst = found.correlations.pairs[:MOST_PAIRS]
    rows = tuple((one, two, f"{real:.2f}", f"{own:.2f}") for one, two, real, own in worst)
    return {"correlated": f"{found.correlations.mean_error:.3f}", "farthest": rows}


def _chart(column: ColumnMarginal, beside: str = "of the real rows") -> Chart:
    bars = _bars(column.bins, column.numeric)
    if beside != "of the real rows" and (column.missing.synthetic or 0) > 0:
        bars.append(Bar(name="no value", real=column.missing.real, synthetic=column.missing.synthetic or 0.0))
    words = f"Shares of {len(bars)} values of {column.name} among synthetic rows, and {beside}"
    distance = "" if column.total_variation is None else _percent(column.total_variation)
    return Chart(name=column.name, distance=distance, drawing=small_chart(bars, words, beside))


def _bars(bins: Mapping[str, Shares], numeric: bool) -> list[Bar]:
    """Bins as they stand; of many categories those that most real rows have, and the others together."""
    bars = [Bar(name=name, real=each.real, synthetic=each.synthetic or 0.0) for name, each in bins.items()]
    if numeric or len(bars) <= MOST_BARS:
        return bars
    bars.sort(key=lambda bar: -(bar.synthetic if bar.real is None else bar.real))
    kept, rest = bars[: MOST_BARS - 1], bars[MOST_BARS - 1 :]
    real = None if bars[0].real is None else sum(bar.real or 0.0 for bar in rest)
    synthetic = sum(bar.synthetic for bar in rest)
    return [*kept, Bar(name=f"{len(rest)} others", real=real, synthetic=synthetic)]


def _farthest(found: TableMarginals) -> list[int]:
    """The places of the columns that the map shows: all, or those whose pairs are farthest off, in their order."""
    count = min(len(found.columns), len(found.pairs))
    if count <= MOST_IN_MAP:
        return list(range(count))
    sums = [0.0] * count
    for i, row in enumerate(found.pairs):
        for j, value in enumerate(row):
            sums[i] += value or 0.0
            sums[j] += value or 0.0
    return sorted(sorted(range(count), key=lambda place: -sums[place])[:MOST_IN_MAP])


def _map(found: TableMarginals, shown: list[int]) -> Markup | None:
    if len(shown) < 2:
        return None
    names = [_brief(found.columns[place].name) for place in shown]
    pairs: Pairs = [[_at(found.pairs, i, j) for j in shown if j < i] for i in shown]
    return heat_map(names, pairs, f"How far all pairs of {len(shown)} columns are off, in per cent")


def _at(pairs: Pairs, i: int, j: int) -> float | None:
    return pairs[i][j] if j < len(pairs[i]) else None


def _brief(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _both(shares: Shares) -> tuple[str, str]:
    return _percent(shares.real), _percent(shares.synthetic)


def _any(shares: Shares) -> bool:
    return bool(shares.real or shares.synthetic)


def _percent(value: float | None) -> str:
    """
    >>> _percent(0.01234), _percent(None), _percent(0.00003)
    ('1.23 %', '-', '0.003 %')
    """
    if value is None:
        return "-"
    return f"{100 * value:.2f} %" if value == 0 or value >= 0.0001 else f"{100 * value:.1g} %"
