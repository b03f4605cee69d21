"""Persons on the command line: drafting, planning, and every error without anybody's id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]
SECRET = "Zq7Secret"
SMALL = ("--method", "ldpdc", "--per-class", 2, "--set", "L=10", "--set", "sigma=2")
COLUMNS = 'shape = [1]\nlow = -1\nhigh = 1\nlabel = "ill"\naugmentation = []\n[[columns]]\nname = "age"\nlow = 0\nhigh = 100\n'
SCHEMA = f'name = "visits"\nclasses = ["no", "yes"]\nrecords = 60\nunit = "patient_id"\nunits = 20\n{COLUMNS}'


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """60 visits of 20 people, with their schema beside them."""
    path = tmp_path / "visits.csv"
    rows = [f'"{SECRET}, {row % 20}",{row % 90},{("no", "yes")[row % 2]}' for row in range(60)]
    path.write_text("\n".join(["patient_id,age,ill", *rows]) + "\n")
    (tmp_path / "visits.csv.limbeck.toml").write_text(SCHEMA)
    return path


def test_a_draft_by_person(cli: Cli, visits: Path, tmp_path: Path) -> None:
    ended = cli("schema", "draft", visits, "--label", "ill", "--unit", "patient_id", "--json")
    assert ended.code == 0 and 'unit = "patient_id"\nunits = 20\n' in ended.json["schema"]
    assert SECRET not in ended.out + ended.err
    ended = cli("schema", "draft", visits, "--label", "ill", "--unit", "who")
    assert ended.code == 2 and "no column 'who'" in ended.err and SECRET not in ended.err


def test_every_epsilon_says_whom_it_is_about(cli: Cli, visits: Path) -> None:
    ended = cli("plan", visits, *SMALL, "--delta", 1e-3)
    assert ended.code == 0 and "add_remove of one person (patient_id)" in ended.out
    ended = cli("plan", visits, *SMALL, "--delta", 1e-3, "--json")
    assert ended.json["unit"] == "patient_id" and ended.json["adjacency"] == "add_remove"
    ended = cli("plan", "digits", *SMALL, "--json")
    assert ended.json["unit"] == "record"


def test_delta_is_for_the_persons(cli: Cli, visits: Path) -> None:
    ended = cli("plan", visits, *SMALL, "--delta", 0.05)
    assert ended.code == 2 and "for N = 20 persons" in ended.err and "--delta 0.01" in ended.err


def test_a_set_is_made_for_persons_and_says_so(cli: Cli, visits: Path, tmp_path: Path) -> None:
    ended = cli("condense", visits, *SMALL, "--delta", 1e-3, "--out", tmp_path / "out")
    assert ended.code == 0 and "one person (patient_id)" in ended.err
    assert cli("verify", tmp_path / "out").code == 0
    for file in (tmp_path / "out").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()
    assert SECRET not in ended.out + ended.err
    assert "one person" in (tmp_path / "out" / "report.html").read_text()


def test_stages_are_no_parts_for_persons(cli: Cli, visits: Path, tmp_path: Path) -> None:
    ended = cli("continual", visits, "--epsilon", 1, "--delta", 1e-3, "--out", tmp_path / "out", "--stages", 1)
    assert ended.code == 2 and "may have records in several stages" in ended.err


@pytest.mark.parametrize(
    ("header", "schema", "said"),
    [
        (f"{SECRET},age,ill", SCHEMA, "no column 'patient_id'"),
        ("patient_id,age,ill", SCHEMA.replace("units = 20\n", ""), "needs units"),
        ("patient_id,age,ill", SCHEMA.replace("units = 20", "units = 61"), "from 1 to the 60 of records, got 61"),
        ("patient_id,age,ill", SCHEMA.replace('label = "ill"', 'label = "patient_id"'), "also the label"),
    ],
)
def test_what_cannot_be_is_a_sentence_without_an_id(
    cli: Cli, visits: Path, tmp_path: Path, header: str, schema: str, said: str
) -> None:
    visits.write_text(visits.read_text().replace("patient_id,age,ill", header))
    (tmp_path / "visits.csv.limbeck.toml").write_text(schema)
    (tmp_path / "test.csv").write_text(visits.read_text())
    for form in ((), ("--json",)):
        named = ("--schema", tmp_path / "visits.csv.limbeck.toml")
        ended = cli("evaluate", "--real", visits, "--test", tmp_path / "test.csv", *named, *form)
        assert ended.code != 0 and "unforeseen" not in ended.err and SECRET not in ended.out + ended.err
        assert said in ended.err, ended.err
