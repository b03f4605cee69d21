"""The marginals of a table in the owner's report, and nowhere else."""

from __future__ import annotations

import dataclasses
import re

import pytest
from test_report_editions import keeps_the_rules

import shop as tables
from limbeck.errors import NotReleasable
from limbeck.evaluate.fidelity_result import Fidelity
from limbeck.evaluate.marginals import Rows, table_marginals
from limbeck.evaluate.table_marginals import ColumnMarginal, RareCategory, Shares, TableMarginals
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.report.marginal_charts import Bar, heat_map, small_chart
from limbeck.report.marginals import MOST_BARS, MOST_IN_MAP, marginals_view
from limbeck.report.page import Report, render

HALF = Shares(real=0.5, synthetic=0.25)


@pytest.fixture(scope="module")
def found() -> TableMarginals:
    sides = [Rows(*tables.rows_of(tables.columns(300, seed))) for seed in range(3)]
    return table_marginals(sides[0], sides[1], sides[2], tables.SCHEMA)


def page_with(found: TableMarginals, certificate: Certificate, schema: Schema) -> str:
    fidelity = dataclasses.replace(Fidelity.from_dict({}), marginals=found)
    return render(Report(certificate=certificate, schema=schema, edition="owner", fidelity=fidelity))


def test_the_owners_page_draws_every_column_and_every_pair(
    found: TableMarginals, certificate: Certificate, people: Schema
) -> None:
    page = keeps_the_rules(page_with(found, certificate, people))
    assert page.count('<svg class="multiple"') == 4 and page.count('<svg class="heat"') == 1
    assert len(re.findall(r'<rect class="level-\d"', page)) == 6
    for words in ("Column by column", "Pair by pair", "Cells without a value", "Rare categories", "isle"):
        assert words in page


def test_the_release_edition_shows_nothing_of_it(
    found: TableMarginals, certificate: Certificate, people: Schema
) -> None:
    fidelity = dataclasses.replace(Fidelity.from_dict({}), marginals=found)
    with pytest.raises(NotReleasable):
        Report(certificate=certificate, schema=people, fidelity=fidelity)
    page = render(Report(certificate=certificate, schema=people))
    assert "Column by column" not in page and "multiple" not in page and "heat" not in page


def test_names_are_escaped(certificate: Certificate, people: Schema) -> None:
    odd = "<u>&\"'"
    column = ColumnMarginal(name=odd, numeric=False, total_variation=0.1, missing=HALF, bins={odd: HALF})
    rare = RareCategory(column=odd, category=odd, shares=HALF)
    both = TableMarginals(
        columns=(column, column), pairs=((), (0.5,)), real_one_way=None, real_two_way=None, rare=(rare,)
    )
    page = keeps_the_rules(page_with(both, certificate, people))
    assert "<u>" not in page and "&lt;u&gt;&amp;" in page


def test_many_categories_are_drawn_together() -> None:
    bins = {f"c{index}": Shares(real=0.01 * (index == 7), synthetic=0.01) for index in range(100)}
    column = ColumnMarginal(name="many", numeric=False, total_variation=0.5, missing=HALF, bins=bins)
    one = TableMarginals(columns=(column,), pairs=((),), real_one_way=None, real_two_way=None, rare=())
    view = marginals_view(one)
    assert view.map is None and view.charts[0].drawing.count("<g>") == MOST_BARS
    assert "c7: 1.00 %" in view.charts[0].drawing and f"{100 - MOST_BARS + 1} others" in view.charts[0].drawing


def test_of_many_columns_the_map_shows_the_farthest() -> None:
    columns = tuple(
        ColumnMarginal(name=f"c{index}", numeric=True, total_variation=0.1, missing=HALF, bins={"all": HALF})
        for index in range(50)
    )
    pairs = tuple(tuple(0.9 if i == 49 else 0.1 for _ in range(i)) for i in range(50))
    view = marginals_view(TableMarginals(columns=columns, pairs=pairs, real_one_way=0.1, real_two_way=0.2, rare=()))
    assert (view.in_map, view.columns, view.left) == (MOST_IN_MAP, 50, 0)
    assert (
        view.map is not None and ">c49<" in view.map and view.map.count("<rect") == MOST_IN_MAP * (MOST_IN_MAP - 1) // 2
    )


def test_drawings_of_nothing_are_drawn() -> None:
    assert "<svg" in small_chart([], "empty") and "<svg" in small_chart([Bar(name="a", real=0, synthetic=0)], "zero")
    assert 'class="level-0"' in heat_map(["a", "b"], [[], [0.0]], "same") and "<rect" not in heat_map(
        ["a"], [[]], "one"
    )
    assert "<rect" not in heat_map(["a", "b"], [[], [None]], "unknown")
