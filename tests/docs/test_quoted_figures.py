"""Figures that the README and the page on Elixir quote are figures that somebody measured: each stands in a kept result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
QUOTED = re.compile(r"(\d+\.\d\d) ± (\d+\.\d\d)")


def kept_figures() -> set[tuple[str, str]]:
    results = (REPOSITORY / "benchmarks" / "results").rglob("*.json")
    return {figure for path in results for figure in figures_in(json.loads(path.read_text()))}


def figures_in(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        if isinstance(value.get("mean"), float) and isinstance(value.get("std"), float):
            yield f"{value['mean']:.2f}", f"{value['std']:.2f}"
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from figures_in(part)


# Papers' figures and those of an earlier day stand in methods.md and flagship-search.md, too, which say whose they are.
QUOTING = [
    "README.md",
    *(f"docs/{name}.md" for name in ("flagship", "data", "tables", "choose", "theory", "at-a-glance", "federated")),
]
PAGES_OF_METHODS = sorted(f"docs/methods/{path.name}" for path in (REPOSITORY / "docs" / "methods").glob("*.md"))


@pytest.mark.parametrize("page", [*QUOTING, *PAGES_OF_METHODS])
def test_every_quoted_figure_is_kept(page: str) -> None:
    quoted = set(QUOTED.findall((REPOSITORY / page).read_text()))
    if page in PAGES_OF_METHODS and not quoted:
        return  # a method whose figures stand in a table elsewhere
    assert quoted, "the page quotes no figure"
    assert not quoted - kept_figures()


def test_the_tables_of_the_page_on_elixir_are_what_the_kept_results_say() -> None:
    from benchmarks.papers.render import filled
    from benchmarks.papers.tables import TABLES

    page = (REPOSITORY / "docs" / "flagship.md").read_text()
    results = REPOSITORY / "benchmarks" / "results" / "papers"
    assert page == filled(page, TABLES.values(), results), (
        "run: python -m benchmarks.papers render --page docs/flagship.md"
    )
