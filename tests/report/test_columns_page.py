"""The columns of a synthetic table on the page that is released: synthetic rows and the release's own model, and no real row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import people
import shop as tables
from limbeck.evaluate.correlations import Correlations, correlations
from limbeck.evaluate.synthetic_columns import synthetic_columns
from limbeck.evaluate.table_marginals import ColumnMarginal, Shares, TableMarginals
from limbeck.release.generator import load_generator
from limbeck.release.reader import read_release
from limbeck.release.table_generator import TableGenerator
from limbeck.report.gather import Sources, gather
from limbeck.report.marginals import columns_view, marginals_view
from limbeck.report.page import render


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people.released(tmp_path_factory.mktemp("columns"))


def test_shares_of_the_rows_and_of_the_model(release: Path) -> None:
    found, model = read_release(release), load_generator(release)
    assert isinstance(model, TableGenerator)
    columns = synthetic_columns(found.x, found.y, found.schema, model.model)
    assert [column.name for column in columns] == ["age", "gain", "price", "city", "grade", "paid"]
    for column in columns[:-1]:
        for side in ("real", "synthetic"):
            total = sum(getattr(each, side) for each in (*column.bins.values(), column.missing))
            assert total == pytest.approx(1, abs=1e-4), (column.name, side)
        assert (
            column.total_variation is not None and column.total_variation < 0.15
        )  # 600 rows were drawn from the model
    assert columns[-1].total_variation is None  # labels have a model of their own
    city = found.to_arrow().column("city").to_pylist()
    assert columns[3].bins["Rome"].synthetic == pytest.approx(city.count("Rome") / len(city), abs=1e-6)
    assert columns[3].missing.synthetic == pytest.approx(city.count(None) / len(city), abs=1e-6)


def test_many_rows_of_the_model_are_what_it_says(release: Path) -> None:
    """Its shares, spread over the bins of a chart, are those of rows that are drawn from it."""
    model = load_generator(release)
    assert isinstance(model, TableGenerator)
    x, y = model.sample(40_000, seed=1)
    for column in synthetic_columns(x, y, model.schema, model.model)[:-1]:
        assert column.total_variation is not None and column.total_variation < 0.02, column.name


def test_rows_without_a_model_and_records_without_columns() -> None:
    x, y = tables.rows_of(tables.columns(100, 0))
    columns = synthetic_columns(x, y, tables.SCHEMA)
    assert all(column.total_variation is None and column.missing.real is None for column in columns)
    assert not columns_view(columns).modelled and "<svg" in columns_view(columns).charts[0].drawing
    assert synthetic_columns(x[:0], y[:0], tables.SCHEMA) == ()


def test_the_released_page_shows_the_columns(release: Path) -> None:
    page = (release / "report.html").read_text()
    assert "Column by column" in page and "by the model" in page and "real rows" not in page
    assert len(re.findall(r'<svg class="multiple"', page)) == 6
    again = render(gather(Sources(run=release)))
    assert len(re.findall(r'<svg class="multiple"', again)) == 6


def test_the_page_of_another_table_reads_no_real_row(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the data were: the page is a function of the release alone."""
    monkeypatch.setattr("limbeck.data.source.DataSource.load", lambda self: pytest.fail("a record was read"))
    assert "Column by column" in render(gather(Sources(run=release)))


# --- the owner's page ---


def shares(real: float, own: float) -> Shares:
    return Shares(real=real, synthetic=own)


def test_correlations_leave_gaps_out() -> None:
    x, _ = tables.rows_of(tables.columns(300, 0))
    other = x.copy()
    other[:, 4] = np.where(other[:, 5] > 0.5, 0, -other[:, 4])
    found = correlations(x, other, tables.SCHEMA)
    assert found is not None and found.columns == ("age", "income")
    ((one, two, real, own),) = found.pairs
    assert (one, two) == ("income", "age") and real == pytest.approx(1, abs=1e-3) and own == pytest.approx(-1, abs=1e-3)
    assert found.mean_error == pytest.approx(2, abs=1e-3) and Correlations.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("value", [None, {}, {"columns": ["a"]}, {"columns": 3}, {"columns": ["a", "b"], "real": "x"}])
def test_correlations_of_a_broken_file(value: Any) -> None:
    found = Correlations.from_dict(value)
    assert found is None or found.pairs == []


def test_constant_columns_have_no_correlation() -> None:
    x, _ = tables.rows_of(tables.columns(50, 0))
    same = x.copy()
    same[:, 0] = 0.5
    found = correlations(x, same, tables.SCHEMA)
    assert found is not None and found.synthetic == ((), (None,)) and found.mean_error is None


def test_the_owners_page_shows_correlations_and_broken_constraints() -> None:
    column = ColumnMarginal(
        name="age", numeric=True, total_variation=0.1, missing=shares(0, 0), bins={"up to 5": shares(0.4, 0.5)}
    )
    correlated = Correlations(columns=("age", "pay"), real=((), (0.9,)), synthetic=((), (0.25,)))
    found = TableMarginals(
        columns=(column,), pairs=((),), real_one_way=0, real_two_way=None, rare=(), broken=3, real_broken=1,
        correlations=correlated,
    )  # fmt: skip
    view = marginals_view(found)
    assert view.correlated == "0.650" and view.farthest == (("pay", "age", "0.90", "0.25"),) and view.broken == (3, 1)
    assert TableMarginals.from_dict(found.to_dict()) == found


def test_of_very_many_rows_every_so_many_th_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they stand in the order of their classes."""
    x, y = tables.rows_of(tables.columns(95, 0))
    every_tenth = synthetic_columns(x[::10], y[::10], tables.SCHEMA)
    monkeypatch.setattr("limbeck.evaluate.synthetic_columns.MOST_ROWS", 10)
    assert synthetic_columns(x, y, tables.SCHEMA) == every_tenth
