"""Marginals of a table: what they must say about tables whose answer is known."""

from __future__ import annotations

import collections
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import limbeck.evaluate.fidelity as measured
import shop as tables
from limbeck.data import open_source
from limbeck.evaluate.bins import NO_VALUE, QUANTILES, axes
from limbeck.evaluate.decoded import decoded
from limbeck.evaluate.fidelity import Options, fidelity_of_release
from limbeck.evaluate.fidelity_result import Fidelity
from limbeck.evaluate.marginals import MOST_COUNTERS, Rows, table_marginals, total_variation
from limbeck.evaluate.table_marginals import TableMarginals
from limbeck.progress import Silent
from limbeck.release.reader import read_release

Cli = Callable[..., Any]
NAMES = ["age", "town", "income", "buys"]


def rows(count: int, seed: int) -> Rows:
    return Rows(*tables.rows_of(tables.columns(count, seed)))


def compared(synthetic: Rows, seed: int = 0) -> TableMarginals:
    return table_marginals(synthetic, rows(300, seed), rows(200, seed + 1), tables.SCHEMA)


def test_a_table_is_at_no_distance_from_itself() -> None:
    found = compared(rows(300, 0))
    assert found.one_way == found.two_way == 0
    assert found.real_one_way is not None and found.real_two_way is not None
    assert 0 < found.real_one_way < found.real_two_way < 0.6


def test_the_distance_is_the_share_of_rows_that_would_have_to_change() -> None:
    real = tables.columns(300, 0)
    found = compared(Rows(*tables.rows_of({**real, "town": ["isle"] * 300})))
    town = found.columns[1]
    assert town.total_variation == pytest.approx(1 - real["town"].count("isle") / 300, abs=1e-6)
    assert (town.bins["isle"].synthetic, town.bins["north"].synthetic) == (1, 0)


def test_total_variations_agree_with_plain_counting() -> None:
    """Both ways to count, against a loop over the cells."""
    first, second = np.random.default_rng(0).integers(0, 9, 200), np.random.default_rng(1).integers(3, 12, 70)
    shares = [collections.Counter(part.tolist()) for part in (first, second)]
    plain = sum(abs(shares[0][code] / 200 - shares[1][code] / 70) for code in range(12)) / 2
    assert total_variation(first, second, 12) == pytest.approx(plain)
    assert total_variation(first * 10**6, second * 10**6, MOST_COUNTERS + 1) == pytest.approx(plain)


def test_pairs_agree_with_plain_counting() -> None:
    real, own = rows(300, 0), rows(150, 5)
    found = compared(own)
    codes = [[axis.codes(part.x, part.y).tolist() for axis in axes(tables.SCHEMA, real.x)] for part in (real, own)]
    for i, j in itertools.combinations(range(4), 2):
        cells = [collections.Counter(zip(side[i], side[j], strict=True)) for side in codes]
        plain = sum(abs(cells[0][c] / 300 - cells[1][c] / 150) for c in cells[0] | cells[1]) / 2
        assert found.pairs[j][i] == pytest.approx(plain, abs=1e-6)
    assert [len(row) for row in found.pairs] == [0, 1, 2, 3]
    assert [column.name for column in found.columns] == NAMES


def test_numbers_are_cut_at_the_quantiles_of_the_real_rows() -> None:
    real = rows(3000, 0)
    age = axes(tables.SCHEMA, real.x)[0]
    shares = np.bincount(age.codes(real.x, real.y), minlength=len(age.bins)) / 3000
    assert len(age.bins) == QUANTILES + 1 and age.bins[-1] == NO_VALUE and shares[-1] == 0
    assert shares[:-1].max() < 0.09
    assert age.bins[0].startswith("up to ") and age.bins[-2].startswith("above ")


def test_a_value_that_most_rows_have_keeps_its_own_bin() -> None:
    """A pile of one value, as 40 hours a week: whole numbers fall on the same side in the set and in the real rows."""
    real = {**tables.columns(300, 0), "age": [40] * 200 + [41] * 50 + [39] * 50}
    x, y = tables.rows_of(real)
    soft = x.copy()
    soft[:, 0] += np.random.default_rng(0).uniform(-0.004, 0.004, 300)  # decoded to the same whole numbers
    hard = decoded(soft.astype(np.float32), tables.SCHEMA).numpy()
    again = decoded(x, tables.SCHEMA).numpy()
    found = table_marginals(Rows(hard, y), Rows(again, y), Rows(again, y), tables.SCHEMA)
    assert found.columns[0].total_variation == 0


def test_cells_without_a_value_and_rare_categories_are_counted() -> None:
    real = tables.columns(1000, 0)
    own = {**tables.columns(1000, 1), "town": ["north"] * 1000, "income": [5.0] * 1000}
    found = table_marginals(
        Rows(*tables.rows_of(own)), Rows(*tables.rows_of(real)), Rows(*tables.rows_of(real)), tables.SCHEMA
    )
    missing = found.columns[2].missing
    assert (missing.real, missing.synthetic) == (pytest.approx(real["income"].count(None) / 1000), 0)
    (isle,) = [each for each in found.rare if each.column == "town"]
    assert (isle.category, isle.shares.synthetic) == ("isle", 0)
    assert isle.shares.real == pytest.approx(real["town"].count("isle") / 1000)


def test_a_cell_with_no_listed_category_counts_as_one_without_a_value() -> None:
    strange = {**tables.columns(300, 0), "town": ["elsewhere"] * 300}
    assert compared(Rows(*tables.rows_of(strange))).columns[1].missing.synthetic == 1


def test_they_are_written_as_they_were_read() -> None:
    found = compared(rows(100, 3))
    values = json.loads(json.dumps(found.to_dict()))
    assert TableMarginals.from_dict(values) == found and TableMarginals.from_dict(values).to_dict() == values
    for odd in (None, 3, "text", [], [1], {}, {"columns": [1]}, {"columns": {}}):
        assert TableMarginals.from_dict(odd) is None
    for name, odd in itertools.product(("pairs", "rare", "one_way", "columns"), (3, [3], [[None, "x"]], "a", [{}])):
        json.dumps([each and each.to_dict() for each in [TableMarginals.from_dict({**values, name: odd})]])


def test_a_file_without_marginals_is_read_as_before() -> None:
    old = Fidelity.from_dict({"records": 4}).to_dict()
    assert "marginals" not in old and Fidelity.from_dict(old).marginals is None


@pytest.fixture
def release(cli: Cli, tmp_path: Path) -> Path:
    small = ("--method", "ldpdc", "--per-class", 20, "--set", "L=10", "--set", "sigma=2")
    made = cli("condense", tables.write_csv(tmp_path / "shop.csv", 300, 0), *small, "--out", tmp_path / "set")
    assert made.code == 0, made.err
    return tmp_path / "set"


def test_the_command_measures_a_table_by_its_marginals(cli: Cli, release: Path, tmp_path: Path) -> None:
    test = tables.write_csv(tmp_path / "later.csv", 200, 1)
    arguments = ("fidelity", release, "--data", tmp_path / "shop.csv", "--test", test, "--judge-epochs", 2)
    ended = cli(*arguments, "--json")
    assert ended.code == 0, ended.err
    result = ended.json
    assert result["edition"] == "owner" and [each["name"] for each in result["marginals"]["columns"]] == NAMES
    assert 0 < result["marginals"]["one_way"]["real_test"] < result["marginals"]["one_way"]["mean"] <= 1
    assert result["set"]["inception_score"] is result["real_test"]["inception_score"] is None
    assert Fidelity.from_dict(result).to_dict() == result
    shown = cli(*arguments).out
    assert "mean of all pairs of columns" in shown and "OWNER'S EDITION" in shown and "inception" not in shown


def test_decoded_rows_are_measured(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real rows whose categories are softened are the real rows again, once they are decoded."""
    train = open_source(str(tmp_path / "shop.csv"))
    test = open_source(str(tables.write_csv(tmp_path / "later.csv", 200, 1)))
    x, y = tables.rows_of(tables.columns(300, 0))
    soft = x.copy()
    soft[:, 1:4] = 0.3 + 0.4 * soft[:, 1:4]
    monkeypatch.setattr(measured, "read_release", tables.released(read_release(release), soft, y))
    found = fidelity_of_release(release, train, test, Options(epochs=1), Silent()).marginals
    assert found is not None and found.columns[1].total_variation == found.columns[0].total_variation == 0
    assert torch.equal(decoded(soft, tables.SCHEMA)[:, 1:4], torch.from_numpy(x[:, 1:4]))
