"""A table without a label and with a constraint of every kind, and rows that keep to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from limbeck.privacy.schema import Schema

CONSTRAINTS: list[dict[str, Any]] = [
    {"if": "pregnant = yes", "then": "sex = female & age >= 12"},
    {"never": "age < 16 & married = yes"},
    {"sum": ["net", "tax"], "is": "gross"},
    {"order": ["start", "end"]},
    {"unique": "id"},
    {"same": ["level", "years"], "by": {"school": 9, "college": 13, "doctor": 16}},
]
COLUMNS: list[dict[str, Any]] = [
    {"name": "id", "low": 1, "high": 10**9, "integer": True},
    {"name": "age", "low": 0, "high": 99, "integer": True},
    {"name": "sex", "categories": ["female", "male"]},
    {"name": "pregnant", "categories": ["yes", "no"], "missing": True},
    {"name": "married", "categories": ["yes", "no"]},
    {"name": "gross", "low": 0, "high": 1500, "digits": 2, "missing": True},
    {"name": "net", "low": 0, "high": 1000, "digits": 2, "missing": True},
    {"name": "tax", "low": 0, "high": 1000, "digits": 2},
    {"name": "start", "kind": "date", "low": "2020-01-01", "high": "2024-12-31"},
    {"name": "end", "kind": "date", "low": "2020-01-01", "high": "2024-12-31", "missing": True},
    {"name": "level", "categories": ["school", "college", "doctor"]},
    {"name": "years", "low": 0, "high": 20, "integer": True},
]
DECLARED: dict[str, Any] = {
    "name": "clinic", "shape": [21], "records": 3000, "low": -1, "high": 1, "augmentation": [], "columns": COLUMNS,
    "constraints": CONSTRAINTS,
}  # fmt: skip
CLINIC = Schema.from_dict(DECLARED)


def visits(count: int = 3000) -> dict[str, list[Any]]:
    """Rows that keep to all of it: stays of a few days, and sums in cents."""
    random = np.random.default_rng(8)
    age = random.integers(0, 100, count)
    female = random.random(count) < 0.5
    pregnant = female & (age > 17) & (age < 45) & (random.random(count) < 0.2)
    net, tax = np.round(random.uniform(0, 800, count), 2), np.round(random.uniform(0, 300, count), 2)
    gaps = random.random(count) < 0.2
    start = random.integers(18_262, 20_000, count)
    end = start + random.integers(0, 20, count)
    level = random.integers(0, 3, count)
    silent, stays = random.random(count) < 0.1, random.random(count) < 0.1
    days = end.astype("datetime64[D]").tolist()
    return {
        "id": (1 + random.permutation(count)).tolist(),
        "age": age.tolist(),
        "sex": np.where(female, "female", "male").tolist(),
        "pregnant": [None if gap else "yes" if yes else "no" for gap, yes in zip(silent, pregnant, strict=True)],
        "married": np.where((age > 20) & (random.random(count) < 0.6), "yes", "no").tolist(),
        "gross": [None if gap else float(value) for gap, value in zip(gaps, np.round(net + tax, 2), strict=True)],
        "net": [None if gap else float(value) for gap, value in zip(gaps, net, strict=True)],
        "tax": tax.tolist(),
        "start": start.astype("datetime64[D]").tolist(),
        "end": [None if gap else day for gap, day in zip(stays, days, strict=True)],
        "level": np.array(["school", "college", "doctor"])[level].tolist(),
        "years": np.array([9, 13, 16])[level].tolist(),
    }  # fmt: skip


def plainly_kept(columns: dict[str, Any]) -> bool:
    """The constraints once more, as a plain loop over decoded rows."""
    names = list(columns)
    seen = set()
    for values in zip(*(list(columns[name]) for name in names), strict=True):
        row = dict(zip(names, values, strict=True))
        years = {"school": 9, "college": 13, "doctor": 16}[row["level"]]
        right = [
            row["pregnant"] != "yes" or (row["sex"] == "female" and row["age"] >= 12),
            not (row["age"] < 16 and row["married"] == "yes"),
            (row["gross"] is None) == (row["net"] is None),
            row["gross"] is None or row["gross"] == round(row["net"] + row["tax"], 2),
            row["end"] is None or row["start"] <= row["end"],
            row["years"] == years,
            row["id"] not in seen,
            row["gross"] is None or row["gross"] <= 1500,
        ]
        if not all(right):
            return False
        seen.add(row["id"])
    return True
