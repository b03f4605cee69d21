"""Tables as people have them: no label, a number to predict, gaps, dates, hundreds of categories, a constant, three rows, a
million. Nothing is silently biased: the mean of each column and the share of each value are within the noise of the queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import working as work
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.table import decode_rows, encode_rows
from limbeck.methods import method_named
from limbeck.methods.mosaic.inner import Inner, grouped, shares_of_categories, shares_of_numbers
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.generator import load_generator
from limbeck.release.verification import verify
from limbeck.vault.api import Answer
from limbeck.vault.maps.bound import Bound

CITIES = [f"c{place}" for place in range(400)]
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "low": 0, "high": 100, "integer": True, "missing": True},
    {"name": "cost", "low": 0, "high": 100_000, "digits": 2},
    {"name": "city", "categories": CITIES},
    {"name": "seen", "kind": "date", "low": "2010-01-01", "high": "2029-12-31"},
    {"name": "always", "categories": ["x"]},
    {"name": "price", "low": -500, "high": 2000},
]
GENERAL = Schema.from_dict(
    {"name": "general", "shape": [406], "records": 5000, "low": -1, "high": 1, "augmentation": [], "columns": COLUMNS,
     "targets": ["price"]}
)  # fmt: skip


def table(count: int) -> dict[str, list[Any]]:
    random = np.random.default_rng(4)
    chances = 1 / np.arange(1, 401)
    age = random.integers(18, 90, count)
    days = np.datetime64("2015-01-01") + random.integers(0, 3000, count)
    return {
        "age": [None if gap else int(value) for gap, value in zip(random.random(count) < 0.2, age, strict=True)],
        "cost": np.round(np.exp(random.normal(5, 1.2, count)), 2).tolist(),
        "city": random.choice(CITIES, count, p=chances / chances.sum()).tolist(),
        "seen": days.tolist(),
        "always": ["x"] * count,
        "price": (10 * age + random.normal(0, 30, count)).tolist(),
    }


class Plain:
    def steps(self, total: int, state: Any, answers: str) -> Iterator[int]:
        return iter(range(total))


def run(columns: dict[str, list[Any]], noise: float, **settings: Any) -> dict[str, np.ndarray]:
    """noise: of the number of records in a cell, about."""
    x = torch.from_numpy(encode_rows(columns, GENERAL))
    y, random = torch.zeros(len(x), dtype=torch.int64), np.random.default_rng(1)

    def ask(label: str, index: int, mapping: Any) -> Answer:
        total = mapping.clipped_sum(x, y, y, 1, Bound(float("inf"))).numpy()
        std = noise * mapping.weight
        return Answer((total + std * random.standard_normal(total.shape)).astype(np.float32), std)

    chosen = {"T": 150, "components": 60, "rows": len(x), **settings}
    return decode_rows(method_named("mosaic", chosen).run(GENERAL, ask, Plain(), torch.device("cpu")).x, GENERAL)


def numbers(values: Any) -> np.ndarray:
    there = [value for value in values if value is not None]
    return np.array([value.toordinal() if hasattr(value, "toordinal") else value for value in there], dtype=float)


def _ordinals(values: np.ndarray) -> np.ndarray:
    return numbers(values.astype(object) if values.dtype.kind == "M" else values)


def test_means_and_shares_are_within_the_noise_of_the_queries() -> None:
    columns, noise = table(5000), 3.0
    made = run(columns, noise, T=300, components=100)
    for name, width in (("age", 72), ("cost", 3000), ("seen", 3000), ("price", 800)):
        real, own = numbers(columns[name]), _ordinals(made[name])
        chance = real.std() * np.sqrt(2 / len(real))
        assert own.mean() == pytest.approx(real.mean(), abs=4 * (noise * np.sqrt(40) * width / len(real) + chance))
    gaps = np.mean([value is None for value in made["age"]])
    assert gaps == pytest.approx(np.mean([value is None for value in columns["age"]]), abs=0.02)
    real, own = (np.array([np.mean(np.array(each["city"]) == city) for city in CITIES]) for each in (columns, made))
    assert np.abs(own - real).max() < 0.03 and np.abs(own - real)[20:].max() < (3 * noise + 4 * 3) / 5000
    assert (own > 0).sum() > 250 and own[200:].sum() == pytest.approx(real[200:].sum(), abs=0.04)
    assert set(made["always"]) == {"x"}
    known = np.array([value is not None for value in made["age"]])
    assert np.corrcoef(numbers(made["age"]), made["price"][known])[0, 1] > 0.6


def test_a_long_tail_is_not_even_in_its_last_bin() -> None:
    columns = table(5000)
    made = run(columns, noise=20.0)
    real, own = np.array(columns["cost"]), made["cost"]
    assert own.mean() == pytest.approx(real.mean(), rel=0.6)  # even in its bins it is off by a factor of ten


def test_shares_inside_of_a_cell_follow_the_counts_and_not_the_noise() -> None:
    owner, widths = np.repeat([0, 1], 8), np.ones(16)
    counts = np.array([0, 0, 800, 0, 0, 0, 0, 0] + [100] * 8, dtype=float)
    totals = np.array([800.0, 800.0])
    exact = shares_of_numbers(counts, np.ones(16), widths, owner, 1e-6, totals)
    assert exact[:8] == pytest.approx(counts[:8] / 800, abs=1e-6) and exact[8:] == pytest.approx([0.125] * 8, abs=1e-6)
    random = np.random.default_rng(0)
    drowned = shares_of_numbers(random.normal(0, 50, 16), np.ones(16), widths, owner, 1e4, totals)
    assert drowned == pytest.approx([0.125] * 16)
    falling = shares_of_numbers(np.zeros(24), np.ones(24), np.repeat([1.0, 1, 50], 8), np.repeat([0, 1, 2], 8), 1e4,
                                np.array([1000.0, 900.0, 300.0]))  # fmt: skip
    assert falling[16] > 0.9 and falling.reshape(3, 8).sum(1) == pytest.approx([1, 1, 1])


def test_many_categories_share_a_cell_and_keep_their_shares() -> None:
    counts = np.array([500.0, 3.0, 400.0, 30.0, -20.0, 10.0])
    owner = grouped(counts, 5.0, 1000.0, 4)
    assert owner.tolist() == [0, 2, 1, 2, 2, 2]
    shares = shares_of_categories(counts, owner)
    assert shares[[0, 2]].tolist() == [1, 1] and shares[[1, 3, 4, 5]].sum() == pytest.approx(1)
    assert shares[4] == 0 and shares[3] > shares[5] > shares[1]
    inner = Inner(np.zeros(0), owner, shares)
    drawn = inner.drawn(np.full(4000, 2), np.random.default_rng(0), np.ones(6))
    assert np.bincount(drawn, minlength=6) / 4000 == pytest.approx(shares * (owner == 2), abs=0.03)
    only = inner.drawn(np.full(50, 2), np.random.default_rng(0), np.array([1.0, 1, 1, 0, 1, 1]))
    assert set(only.tolist()) == {5}


def released(root: Path, columns: dict[str, list[Any]], epsilon: float, **settings: Any) -> Path:
    x = encode_rows(columns, GENERAL)
    source = DataSource(GENERAL, "here", lambda _: Records(x, np.zeros(len(x), dtype=np.int64)))
    method = method_named("mosaic", {"T": 20, "components": 10, "rows": 200, **settings})
    plan = work.make_plan(GENERAL, method, epsilon, 1e-5)
    asked = work.asked(data=None, ledger=str(root / "ledger.sqlite"))
    return work.condense(asked, plan, source, root / "out", Silent()).release


def test_end_to_end_without_a_label(tmp_path: Path) -> None:
    release = released(tmp_path, table(2000), 3.0)
    verify(release)
    assert pq.read_schema(release / "data" / "train.parquet").names == [column["name"] for column in COLUMNS]
    x, _ = load_generator(release).sample(300, where=["age > 60", "city = c3"])
    decoded = decode_rows(x, GENERAL)
    assert (decoded["age"] > 60).all() and set(decoded["city"]) == {"c3"}


def test_three_rows_make_a_table(tmp_path: Path) -> None:
    release = released(tmp_path, table(3), 1.0, rows=3)
    verify(release)
    assert pq.read_table(release / "data" / "train.parquet").num_rows == 3


@pytest.mark.slow
def test_a_million_rows() -> None:
    columns = table(1_000_000)
    made = run(columns, noise=20.0, T=100)
    for name in ("age", "cost", "seen", "price"):
        real, own = numbers(columns[name]), _ordinals(made[name])
        assert own.mean() == pytest.approx(real.mean(), abs=0.05 * real.std())
    assert np.mean(made["city"] == "c399") == pytest.approx(np.mean(np.array(columns["city"]) == "c399"), rel=0.3)
