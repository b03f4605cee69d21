"""The pages of the site, as text. A page gets plain values and knows no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from limbeck.privacy.numbers import finite_or_word
from limbeck.report import views, wording
from limbeck.report.page import Report, page_style
from limbeck.report.protected import protected
from limbeck.report.scores import ScoreTable
from limbeck.report.strips import Strip
from limbeck.serve.budgets import Found
from limbeck.serve.runs import RunInfo


@dataclass(frozen=True, kw_only=True)
class Side:
    """One half of a comparison."""

    info: RunInfo
    report: Report
    tables: Sequence[ScoreTable]


@cache
def _environment() -> Environment:
    made = Environment(
        loader=ChoiceLoader([PackageLoader("limbeck.serve"), PackageLoader("limbeck.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "address": lambda name: quote(str(name), safe="/"),  # a run may lie in a folder of runs
        "number": wording.exact,
        "clock": clock,
        "day": _day,
        "percent": views.percent,
    }
    return made


def _render(template: str, nonce: str, values: Mapping[str, Any]) -> str:
    style = page_style("look.css")
    return _environment().get_template(template).render({"nonce": nonce, "look": style, **values})


def overview(nonce: str, *, runs: Sequence[RunInfo], scores: Mapping[str, Sequence[ScoreTable]], version: str) -> str:
    best = {name: found for name, tables in scores.items() if (found := _best(tables)) is not None}
    return _render("overview.html", nonce, {"runs": runs, "best": best, "version": version})


def run(nonce: str, *, info: RunInfo, version: str, grows: bool = False) -> str:
    warnings = wording.warnings(info.certificate) if info.certificate is not None else []
    return _render("run.html", nonce, {"info": info, "warnings": warnings, "version": version, "grows": grows})


def budget(nonce: str, *, found: Found) -> str:
    return _render("budget.html", nonce, {"found": found})


def failure(nonce: str, *, message: str, next_command: str | None) -> str:
    return _render("failure.html", nonce, {"message": message, "next_command": next_command})


def compare(nonce: str, *, releases: Sequence[RunInfo], sides: Sequence[Side], chosen: tuple[str, str]) -> str:
    both = len(sides) == 2
    values = {
        "releases": releases,
        "chosen": chosen,
        "sides": sides,
        "facts": _pairs(*(_facts(side) for side in sides)) if both else [],
        "settings": _pairs(*(dict(wording.setting_rows(side.report.certificate)) for side in sides)) if both else [],
        "scores": _pairs(*(_means(side) for side in sides)) if both else [],
        "pictures": _pictures(*sides) if both else [],
        "grids": [views.source(side.report.grid) for side in sides],
    }
    return _render("compare.html", nonce, values)


def progress_values(info: RunInfo) -> dict[str, Any]:
    """What an open page is told about a run at work."""
    if info.progress is None:
        return {"step": 0, "total": 0, "words": "starting"}
    return {"step": info.progress.step, "total": info.progress.total, "words": progress_words(info)}


def progress_words(info: RunInfo) -> str:
    if info.progress is None:
        return "starting"
    words = f"{info.progress.step} of {info.progress.total}"
    return words if info.progress.seconds_left is None else f"{words}, {clock(info.progress.seconds_left)} left"


def clock(seconds: float) -> str:
    """
    >>> clock(59.6), clock(3_725), clock(90_000)
    ('0:59', '1:02:05', '25:00:00')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _day(created: str) -> str:
    return created[:16].replace("T", " ")


def _best(tables: Sequence[ScoreTable]) -> tuple[str, float] | None:
    """(model, mean) of the best score of a release."""
    found = [(row.mean, row.model) for table in tables for row in table.rows if row.mean is not None]
    return (max(found)[1], max(found)[0]) if found else None


def _pairs(first: Mapping[str, str], second: Mapping[str, str]) -> list[tuple[str, str, str, bool]]:
    """(name, first, second, whether they differ) of everything that one of them has."""
    names = list(dict.fromkeys([*first, *second]))
    rows = [(name, first.get(name, "-"), second.get(name, "-")) for name in names]
    return [(*row, row[1] != row[2]) for row in rows]


def _facts(side: Side) -> dict[str, str]:
    certificate, schema = side.report.certificate, side.report.schema
    return {
        "Data set": schema.name,
        "Method": certificate.method,
        "Epsilon": wording.exact(finite_or_word(certificate.epsilon)),
        "Delta": wording.exact(certificate.delta),
        f"Right guesses about a {protected(certificate).noun}": f"at most {wording.percent_up(wording.guess_share(certificate))}",
        "Synthetic records": wording.number(certificate.records),
        "Classes": str(len(schema.classes)) if schema.has_label else "-",
        "Made": _day(certificate.created),
    }


def _means(side: Side) -> dict[str, str]:
    return {
        f"{row.model}, {table.test}, {table.preset}, {table.labels} labels{_size(table)}": views.percent(row.mean)
        + ("" if row.std is None else f" ± {row.std:.2f}")
        for table in side.tables
        for row in table.rows
    }


def _size(table: ScoreTable) -> str:
    return "" if table.size is None else f", averaged down to {table.size} pixels a side"


def _pictures(first: Side, second: Side) -> list[tuple[str, Strip | None, Strip | None]]:
    """(class, strip, strip), beside each other where both sets have the same classes."""
    if first.report.schema.classes != second.report.schema.classes:
        return []
    strips = [dict(enumerate(side.report.strips)) for side in (first, second)]
    return [
        (name, strips[0].get(index), strips[1].get(index))
        for index, name in enumerate(first.report.schema.classes)
        if index in strips[0] or index in strips[1]
    ]
