"""Tables as people have them, from the draft of a schema to the rows of a release: nothing is lost or moved on the way."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Cli = Callable[..., Any]
Rows = dict[str, list[Any]]
ROWS = 2000
MANY = 5_000  # synthetic rows where shares are compared: drawing them moves a share by 0.006, usually


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(11)


@pytest.fixture
def made(cli: Cli, tmp_path: Path) -> Callable[..., tuple[pa.Table, str]]:
    """The rows that mosaic makes of a table at a large epsilon, by a draft whose every entry is confirmed; and the draft."""

    def run(content: Rows, suffix: str = "csv", **settings: int) -> tuple[pa.Table, str]:
        path, schema, out = tmp_path / f"own.{suffix}", tmp_path / "own.toml", tmp_path / "out"
        if suffix == "csv":
            with path.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(content)
                writer.writerows(zip(*content.values(), strict=True))
        else:
            pq.write_table(pa.table(content), path)
        ended = cli("schema", "draft", path, "--label", "ill", "--out", schema)
        assert ended.code == 0, ended.err
        text = schema.read_text()
        schema.write_text(re.sub(r"unconfirmed = \[.*?\]", "unconfirmed = []", text, count=1, flags=re.DOTALL))
        chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        arguments = ("--method", "mosaic", "--epsilon", 50, "--delta", 1e-5, "--schema", schema, "--out", out, *chosen)
        ended = cli("condense", path, *arguments)
        assert ended.code == 0, ended.err
        assert cli("verify", out).code == 0
        return pq.read_table(out / "data" / "train.parquet"), text

    return run


def labels(count: int = ROWS) -> list[str]:
    return ["no", "yes"] * (count // 2) + ["no"] * (count % 2)


def share(column: Any, wanted: Any) -> float:
    return float(np.mean([value == wanted for value in column.to_pylist()]))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_constant_column_stays_constant(made: Callable[..., Any], random: np.random.Generator, suffix: str) -> None:
    age = random.integers(20, 60, 300).tolist()
    rows, text = made({"age": age, "clinic": ["Bonn"] * 300, "version": [3] * 300, "ill": labels(300)}, suffix, T=5)
    assert set(rows["clinic"].to_pylist()) == {"Bonn"} and set(rows["version"].to_pylist()) == {"3"}
    assert text.count("# Only one value occurs.") == 2


def test_three_rows(made: Callable[..., Any]) -> None:
    rows, _ = made({"age": [31, 62, 44], "town": ["Bonn", "Köln", "Bonn"], "ill": ["no", "yes", "no"]}, T=5)
    assert rows.num_rows == 3 and set(rows["town"].to_pylist()) <= {"Bonn", "Köln"}
    assert all(30 <= age <= 70 for age in rows["age"].to_pylist())


def test_a_category_of_four_hundred_values(made: Callable[..., Any], random: np.random.Generator) -> None:
    codes = [f"C{number:03}" for number in random.permutation(np.repeat(np.arange(400), 5))]
    codes[:400] = ["C007"] * 400
    rows, text = made(
        {"code": codes, "age": random.integers(20, 60, ROWS).tolist(), "ill": labels()}, T=60, components=20, rows=MANY
    )
    assert "# So many categories (400)" in text
    assert set(rows["code"].to_pylist()) <= set(codes) and len(set(rows["code"].to_pylist())) > 300
    assert share(rows["code"], "C007") == pytest.approx(share(pa.array(codes), "C007"), abs=0.03)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_fifth_is_missing(made: Callable[..., Any], random: np.random.Generator, suffix: str) -> None:
    gaps = random.random((4, ROWS)) < 0.2
    values: Rows = {
        "age": random.integers(20, 60, ROWS).tolist(),
        "price": np.round(random.exponential(40, ROWS), 2).tolist(),
        "town": random.choice(["Bonn", "Ulm"], ROWS).tolist(),
        "seen": [date(2020, 1, 1) + timedelta(days=int(day)) for day in random.integers(0, 900, ROWS)],
    }
    values = {
        name: [None if gap else cell for gap, cell in zip(gap, cells, strict=True)]
        for gap, (name, cells) in zip(gaps, values.items(), strict=True)
    }
    rows, text = made({**values, "ill": labels()}, suffix, T=150, components=40, rows=MANY)
    assert text.count("missing = true") == 4
    for name, cells in values.items():
        assert share(rows[name], None) == pytest.approx(share(pa.array(cells), None), abs=0.03), name
    there = [value for value in values["price"] if value is not None]
    prices = [value for value in rows["price"].to_pylist() if value is not None]
    assert np.mean(prices) == pytest.approx(np.mean(there), rel=0.1)
    assert all(value == round(value, 2) for value in prices)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_dates_and_time_stamps(made: Callable[..., Any], random: np.random.Generator, suffix: str) -> None:
    days = [date(1950, 1, 1) + timedelta(days=int(day)) for day in random.beta(2, 5, ROWS) * 25_000]
    stamps = [datetime(2023, 3, 1) + timedelta(seconds=int(second)) for second in random.random(ROWS) * 3e7]
    late = ["yes" if day > date(1970, 1, 1) else "no" for day in days]
    rows, text = made({"born": days, "seen": stamps, "ill": late}, suffix, T=150, components=40, rows=MANY)
    assert 'kind = "date"' in text and 'kind = "time"' in text and 'low = "1950-01-01"' in text
    assert rows.schema.field("born").type == pa.date32() and rows.schema.field("seen").type == pa.timestamp("ms")
    born = rows["born"].to_pylist()
    mean = np.mean([(day - date(1970, 1, 1)).days for day in born])
    assert mean == pytest.approx(np.mean([(day - date(1970, 1, 1)).days for day in days]), abs=250)  # spread: 4000
    seconds = np.mean([(stamp - datetime(2023, 3, 1)).total_seconds() for stamp in rows["seen"].to_pylist()])
    assert seconds == pytest.approx(1.5e7, rel=0.04)
    told = [(day > date(1970, 1, 1)) == (ill == "yes") for day, ill in zip(born, rows["ill"].to_pylist(), strict=True)]
    assert np.mean(told) > 0.85


def test_a_value_that_many_have_comes_back_exactly(made: Callable[..., Any], random: np.random.Generator) -> None:
    debt = np.where(random.random(ROWS) < 0.3, 0, random.uniform(500, 9000, ROWS))
    rows, text = made(
        {"debt": debt.tolist(), "age": random.integers(20, 60, ROWS).tolist(), "ill": labels()},
        T=60,
        components=40,
        rows=MANY,
    )
    assert "special = [0]" in text
    assert share(rows["debt"], 0.0) == pytest.approx(np.mean(debt == 0), abs=0.03)
    assert np.mean(rows["debt"].to_pylist()) == pytest.approx(debt.mean(), rel=0.1)
