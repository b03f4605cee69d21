"""Whoever names no method gets the one for this kind of data; --rows says how large a table is to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import limbeck
from limbeck.errors import BadSettings
from limbeck.methods import METHODS, default_method
from limbeck.privacy.schema import Schema

Cli = Callable[..., Any]


@pytest.mark.parametrize(("shape", "name"), [((1, 8, 8), "elixir"), ((3, 4, 4), "elixir"), ((64,), "mosaic")])
def test_the_schema_alone_decides(shape: tuple[int, ...], name: str) -> None:
    assert default_method(Schema(name="own", shape=shape, classes=("a", "b"), records=100, low=0, high=255)) == name


def test_images_get_elixir_and_tables_mosaic(cli: Cli, table: Path, archive: Path, pictures: Path) -> None:
    for data, name in (("digits", "elixir"), (pictures, "elixir"), (table, "mosaic"), (archive, "mosaic")):
        size = ("--per-class", 2)
        assert cli("plan", data, "--epsilon", 1, *size, "--json").json["method"] == name
        assert limbeck.plan(str(data), epsilon=1.0, per_class=2).plan.method == name
    assert cli("plan", table, "--method", "ldpdc", "--epsilon", 1, "--per-class", 2, "--json").json["method"] == "ldpdc"


def test_the_help_says_which(cli: Cli) -> None:
    for command in ("plan", "condense"):
        shown = " ".join(cli(command, "--help").out.replace("│", " ").split())
        assert "elixir for images, mosaic for tables" in shown and "--rows" in shown


def test_a_table_is_condensed_without_a_word_about_methods(cli: Cli, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = cli(
        "condense", table, "--epsilon", 1, "--rows", 25, "--set", "T=2", "--set", "components=4", "--set", "search=2",
        "--out", out, "--json",
    )  # fmt: skip
    assert ended.code == 0 and ended.json["method"] == "mosaic"
    assert limbeck.load(out).x.shape == (25, 1)


def test_rows_is_a_shorthand(cli: Cli, table: Path) -> None:
    short = cli("plan", table, "--epsilon", 1, "--rows", 25, "--json").json
    assert short["settings"]["rows"] == 25
    long = cli("plan", table, "--epsilon", 1, "--set", "rows=25", "--json").json
    # Each is told to go on in its own words.
    assert "--rows 25" in short.pop("next_command") and "--set rows=25" in long.pop("next_command")
    assert short["forecast"].pop("seconds") > 0 and long["forecast"].pop("seconds") > 0  # by a trial of this machine
    assert short == long
    assert limbeck.plan(table, epsilon=1.0, rows=25).plan.settings["rows"] == 25


@pytest.mark.parametrize("name", [name for name, kind in METHODS.items() if kind.private and not kind.sized_by_rows])
def test_a_method_that_cannot_be_told_how_many_rows_says_so(name: str, table: Path) -> None:
    with pytest.raises(
        BadSettings, match=r"--per-class and not --rows 25\. A number of rows is for mosaic, aim, mst and"
    ):
        limbeck.plan(table, epsilon=1.0, method=name, rows=25)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("digits", "--rows", 5), "Method 'elixir' makes so many records of each class"),
        (("TABLE", "--rows", 0), "rows must lie in 1 ..."),
        (("TABLE", "--rows", 5, "--per-class", 5), "not both"),
        (("TABLE", "--rows", 5, "--method", "poem"), "There is no method 'poem'"),
        (("TABLE", "--set", "first=0.5"), "Method 'mosaic' has no setting 'first'"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(cli: Cli, table: Path, arguments: tuple[object, ...], words: str) -> None:
    ended = cli("plan", *(table if word == "TABLE" else word for word in arguments), "--epsilon", 1, "--json")
    assert ended.code == 2 and words in ended.json["error"]["message"]


def test_a_table_that_is_too_wide_is_refused_before_anything_is_booked(cli: Cli) -> None:
    wide = Schema(name="wide", shape=(5000,), classes=("a", "b"), records=1000, low=0, high=1)
    with pytest.raises(BadSettings, match=r"at least 49990000 cells; the limit is 16777216\. Choose --method elixir"):
        METHODS["mosaic"]().check(wide)


def test_the_limit_is_that_of_the_map() -> None:
    from limbeck.methods.mosaic.method import MOST_ASKED
    from limbeck.vault.maps.cells import MOST_CELLS

    assert MOST_ASKED == MOST_CELLS
