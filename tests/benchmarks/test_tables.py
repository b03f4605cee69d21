"""The papers' tables as specifications: complete, and runnable for every method that is there."""

from __future__ import annotations

import pytest
from benchmarks.papers.scales import checked_scale, scoring_at, settings_at
from benchmarks.papers.spec import AVERAGE, REAL, SCALES, Figure, Run, Table, figure_from, make_table
from benchmarks.papers.tables import TABLES, tables_named

from limbeck.data.named import named_set
from limbeck.errors import BadInput
from limbeck.evaluate.models import MODELS
from limbeck.methods import METHODS, method_named

RUNS = [(table, run) for table in TABLES.values() for run in table.runs]
IDS = [f"{table.name} {run.name}" for table, run in RUNS]


def test_all_tables_are_there() -> None:
    wanted = [f"dpdc-{number}" for number in (1, 2, 3, 6, 7, 8, 9)] + ["psg-1a", "psg-1b", "datalens-1", "gswgan-a1"]
    ours = ["elixir-1a", "elixir-1b", "elixir-1c"]
    assert {*wanted, *ours} <= set(TABLES)
    assert [name for name, table in TABLES.items() if table.is_ours] == ours


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_every_place_has_a_printed_figure_if_it_is_a_papers_and_a_way_to_ours(table: Table) -> None:
    for row in table.rows:
        for column in table.columns:
            cell, printed = table.cells[row, column], table.paper[row, column]
            if cell.run is None:
                assert cell.reason
                assert (printed is None) == (cell.reason == "-")
            else:
                assert printed is not None or table.is_ours
                assert cell.model in (*cell.run.models, AVERAGE)
    names = [run.name for run in table.runs]
    assert len(set(names)) == len(names) and all(name == name.lower() for name in names)
    # Cells that share a name share the run: whatever is measured under it fits all of them.
    assert all(cell.run in table.runs for cell in table.cells.values() if cell.run is not None)


@pytest.mark.parametrize(
    ("name", "row", "column", "expected"),
    [
        ("dpdc-1", "NDPDC", "CIFAR-10", Figure(mean="52.68", std="0.40", epsilon="6.72")),
        ("dpdc-2", "LDPDC", "MNIST", Figure(mean="85.80", std="0.39", epsilon="1")),
        ("dpdc-3", "NDPDC, Fashion-MNIST", "VGG11", Figure(mean="82.63", std="0.54")),
        ("dpdc-6", "sigma = 2.0", "CIFAR-10", Figure(mean="47.93")),
        ("dpdc-7", "L = 100", "MNIST", Figure(mean="97.90")),
        ("dpdc-8", "I = 8000", "Fashion-MNIST", Figure(mean="82.50")),
        ("dpdc-9", "M = 10", "CIFAR-10", Figure(mean="45.88")),
        ("psg-1a", "PSG (20 per class)", "Fashion-MNIST, epsilon 1", Figure(mean="70.2")),
        ("psg-1b", "DP-SGD", "MNIST, full", Figure(mean="96.5")),
        ("psg-1a", "GS-WGAN", "MNIST, epsilon 1", None),
        ("datalens-1", "Places365, epsilon 10", "DataLens", Figure(mean="0.4875")),
        ("gswgan-a1", "Average", "GS-WGAN", Figure(mean="0.60")),
    ],
)
def test_figures_of_the_papers(name: str, row: str, column: str, expected: Figure | None) -> None:
    assert TABLES[name].paper[row, column] == expected


@pytest.mark.parametrize(("table", "run"), RUNS, ids=IDS)
def test_every_run_can_be_planned_at_every_scale(table: Table, run: Run) -> None:
    schema = named_set(run.data).schema
    for scale in SCALES:
        settings, scoring = settings_at(run, scale), scoring_at(run, scale)
        assert scoring.sets >= 1 and scoring.networks >= 1
        if run.method == REAL:
            assert settings["per_class"] >= 1
        elif run.method in METHODS:
            method = method_named(run.method, settings).resolved(schema)
            method.check(schema)
            assert run.epsilon is not None or method.fixed_noise is not None
            assert (METHODS[run.method].makes == "model") == (run.models == ("model",))
    assert all(model in (*MODELS, "model") for model in run.models)


def test_a_rows_own_settings_count_for_more_than_the_scales() -> None:
    (run,) = [run for run in TABLES["dpdc-8"].runs if run.name == "ndpdc-i4000/mnist"]
    assert settings_at(run, "cpu")["I"] == 4000 and settings_at(run, "cpu")["width"] == 64
    assert settings_at(run, "small")["I"] == 10
    assert settings_at(run, "full") == {"per_class": 50, "sigma": 1.0, "I": 4000}
    (first,) = [run for run in TABLES["dpdc-8"].runs if run.name == "ndpdc-i2000/mnist"]
    assert settings_at(first, "cpu") == {"per_class": 50, "sigma": 1.0, "I": 2000, "width": 0}


def test_the_full_scale_is_the_papers_own() -> None:
    by_name = {(table.name, run.name): run for table, run in RUNS}
    assert settings_at(by_name["dpdc-1", "ndpdc/mnist"], "full") == {"per_class": 50, "sigma": 1.0}
    ldpdc = {"per_class": 50, "L": 50, "pixels": "signed", "clip": 1.0}
    assert settings_at(by_name["dpdc-2", "ldpdc/mnist"], "full") == ldpdc
    assert settings_at(by_name["dpdc-1", "ldpdc/mnist"], "cpu") == {**ldpdc, "sigma": 1.0}
    scoring = scoring_at(by_name["dpdc-1", "ndpdc/mnist"], "full")
    assert (scoring.preset.name, scoring.sets, scoring.networks) == ("dpdc", 5, 1)
    bulk = by_name["psg-1b", "dpmerf-full-eps10/mnist"]
    assert settings_at(bulk, "full") == {"per_class": 6000} and settings_at(bulk, "cpu") == {"per_class": 1000}
    assert scoring_at(bulk, "full").preset.name == "psg-full"
    critics = settings_at(by_name["datalens-1", "gswgan-eps10/mnist"], "full")
    assert (critics["K"], critics["T"], critics["B"], critics["critic_width"]) == (1000, 20_000, 32, 64)
    teachers = settings_at(by_name["datalens-1", "datalens-eps1/mnist"], "full")
    assert (teachers["teachers"], teachers["T"], teachers["k"], teachers["first"]) == (4000, 149, 200, 11)


def test_tables_of_one_paper_share_their_sets() -> None:
    first = {run.name: run for run in TABLES["dpdc-1"].runs}["ldpdc/mnist"]
    third = {run.name: run for run in TABLES["dpdc-3"].runs}["ldpdc/mnist"]
    assert first.models != third.models
    assert (first.settings, first.at, first.epsilon) == (third.settings, third.at, third.epsilon)


def test_figures_are_read_as_they_are_printed() -> None:
    assert figure_from(" 85.79 ± 0.81 at 1.10 ") == Figure(mean="85.79", std="0.81", epsilon="1.10")
    assert figure_from("0.4036") == Figure(mean="0.4036")
    assert figure_from("-") is None
    with pytest.raises(ValueError, match="float"):
        figure_from("85,79")


def test_a_row_with_a_missing_figure_is_refused(tiny: Table) -> None:
    with pytest.raises(ValueError, match="1 figures for 2 columns"):
        make_table(
            name="x", title="", source="", columns=("a", "b"), rows={"r": "1"}, cell_of=lambda r, c: tiny.cells[r, c]
        )


def test_tables_by_name() -> None:
    assert [table.name for table in tables_named("psg-1")] == ["psg-1a", "psg-1b"]
    assert [table.name for table in tables_named("dpdc-1, DPDC-2")] == ["dpdc-1", "dpdc-2"]
    assert len(tables_named("all")) == len(TABLES)
    with pytest.raises(BadInput, match="no table 'nonsense'"):
        tables_named("nonsense")
    with pytest.raises(BadInput, match="scales are"):
        checked_scale("huge")
