"""An error never holds a value of the data, whichever command meets it and however it is printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 2, "--set", "L=10", "--set", "sigma=2", "--delta", 1e-5)
FIRST = ("Ann Secret", "4711", "nowhere road", "maybe")


@pytest.fixture
def silent(cli: Cli, release: Path, tmp_path: Path) -> Callable[..., str]:
    """Every command that would read this data fails, and says nothing of it, in words and as JSON."""

    def run(data: Path, schema: Path, *label: object) -> str:
        said = ""
        for command in (
            ("condense", data, *SMALL, "--schema", schema, "--out", tmp_path / "out", *label),
            ("evaluate", release, "--test", data, "--schema", schema, *label),
            ("evaluate", "--real", data, "--test", data, "--schema", schema, *label),
            ("fidelity", release, "--data", data, "--schema", schema, *label),
            ("schema", "draft", data),
            ("schema", "draft", data, "--label", "buys"),
            ("schema", "draft", data, "--label", "buys", "--out", tmp_path / "drafted.toml"),
            ("plan", data, *SMALL),
        ):
            for form in ((), ("--json",)):
                ended = cli(*command, *form)
                assert ended.code != 0 and "unforeseen" not in ended.err, ended.err
                for secret in FIRST:
                    assert secret not in ended.out + ended.err, (command, ended.err)
                said += ended.err
        return said

    return run


def test_a_table_without_a_header_line(silent: Callable[..., str], table: Path, tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text(",".join(FIRST) + "\n" + "Bob,1,x,no\nEve,2,y,yes\n")
    said = silent(path, tmp_path / "people.csv.limbeck.toml")
    assert "has no column age, buys, which the schema of 'people' lists; it has 4 columns" in said
    assert "say which column is the label among its 4 columns" in said


def test_a_parquet_file_made_from_such_a_table(silent: Callable[..., str], table: Path, tmp_path: Path) -> None:
    path = tmp_path / "bare.parquet"
    pq.write_table(pa.table({name: ["a", "b"] for name in FIRST}), path)
    assert "it has 4 columns" in silent(path, tmp_path / "people.csv.limbeck.toml")
    schema = tmp_path / "pictures.toml"
    schema.write_text('name = "pets"\nshape = [1, 8, 8]\nclasses = ["cat", "dog"]\nrecords = 20\n')
    assert "no column 'image' among its 4 columns" in silent(path, schema)


def test_folders_named_like_people(silent: Callable[..., str], tmp_path: Path) -> None:
    root = tmp_path / "people"
    for name in FIRST:
        (root / name).mkdir(parents=True)
        Image.new("L", (8, 8)).save(root / name / "1.png")
    (root / FIRST[1] / "0.png").write_bytes(b"no image")
    schema = tmp_path / "pictures.toml"
    schema.write_text('name = "pets"\nshape = [1, 8, 8]\nclasses = ["cat", "dog"]\nrecords = 20\n')
    assert "4 not named like a class" in silent(root, schema)


def test_the_data_file_given_as_the_schema(cli: Cli, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    for text in (",".join(FIRST), f'"{FIRST[0]}"."{FIRST[1]}" {FIRST[2]}', f'x = "{FIRST[0]}\\z"'):
        path.write_text(text + "\n")
        ended = cli("plan", table, *SMALL, "--schema", path, "--json")
        assert ended.code == 2 and "not a valid TOML file" in ended.err
        assert not any(secret in ended.err + ended.out for secret in FIRST)


def test_labels_that_are_no_class(cli: Cli, table: Path, tmp_path: Path) -> None:
    table.write_text("age,buys\n1,Ann Secret\n")
    ended = cli("condense", table, *SMALL, "--out", tmp_path / "out", "--json")
    assert ended.code == 4 and "Secret" not in ended.err + ended.out
