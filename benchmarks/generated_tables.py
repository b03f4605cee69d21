"""Generated tables that are unlike Adult: mosaic beside our own AIM, on decoded rows, scored on rows of the same law.

    python -m benchmarks.generated_tables twins      two facts in two columns each (school and years, zip and state)
    python -m benchmarks.generated_tables classes    12 classes, the rarest of 20 records; amounts with a mass at 0
    python -m benchmarks.generated_tables turned     the same, but rare classes have the small amounts in place of the large ones
    python -m benchmarks.generated_tables campaign   nine per cent of the records answer a call, by many columns a little
    python -m benchmarks.generated_tables product    a number to predict that is the product of two columns

Each is drawn by fixed seeds, written as CSV, drafted by `limbeck schema draft` with every entry taken as public, and made by
`limbeck condense` at epsilon 1, three sets of each method. Trees are XGBoost's: 30 of depth 4, one thread.
Pairs off is the mean total variation of all two-way marginals, numbers cut at the twentieths of the real rows, per cent.
Results go to results/generated-tables-NAME.json; with `--only mosaic` what they say of other methods stays.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

RESULTS = Path(__file__).parent / "results"
METHODS = ("mosaic", "aim")
SETS = 3
SCHOOLS = (
    "pre", "one", "five", "seven", "nine", "ten", "eleven", "twelve", "hs", "some", "voc", "acad", "bach", "mast", "prof", "doc",
)  # fmt: skip
SCHOOL_SHARES = np.array([51, 168, 333, 646, 514, 933, 1175, 433, 10501, 7291, 1382, 1067, 5355, 1723, 576, 413])


def twins(rng: np.random.Generator) -> pd.DataFrame:
    count = 24_000
    years = rng.choice(16, count, p=SCHOOL_SHARES / SCHOOL_SHARES.sum())
    place = rng.choice(60, count, p=(shares := 1 / np.arange(1, 61)) / shares.sum())
    age = rng.integers(20, 95, count)
    pay = (20 + 6 * years + 0.3 * age + rng.normal(0, 15, count)).clip(0).round(1)
    return pd.DataFrame({
        "school": np.array(SCHOOLS)[years], "years": years + 1, "zip": [f"{10_000 + 137 * each}" for each in place],
        "state": [f"S{each % 9}" for each in place], "age": age, "kids": rng.poisson(1.3, count), "pay": pay,
        "label": np.where(pay + 8 * (place % 9 == 0) > 95, "rich", "poor"),
    })  # fmt: skip


def classes(rng: np.random.Generator, turned: bool = False) -> pd.DataFrame:
    count = 30_000
    kind = rng.choice(12, count, p=(shares := 0.6 ** np.arange(12)) / shares.sum())
    large = 11 - kind if turned else kind
    is_nothing = rng.random(count) < 0.7 - 0.03 * large
    return pd.DataFrame({
        "height": (170 + rng.normal(0, 9, count)).round(1),
        "amount": np.where(is_nothing, 0, np.exp(rng.normal(3 + 0.25 * large, 1.6, count)).clip(0, 9e5)).round(2),
        "calls": pd.Series(rng.poisson(3 + large / 2, count)).where(rng.random(count) > 0.15).astype("Int64"),
        "sign": rng.choice(["a", "b", "c", "d"], count, p=[0.4, 0.3, 0.2, 0.1]),
        "known": np.where(rng.random(count) < 0.3 + 0.04 * large, "yes", "no"),
        "label": [f"T{each}" for each in kind],
    })  # fmt: skip


def campaign(rng: np.random.Generator) -> pd.DataFrame:
    count = 40_000
    age = rng.gamma(9, 4.6, count).clip(18, 95).astype(int)
    work = np.where(
        age > 62, "retired", rng.choice(["office", "manual", "technical", "service", "student", "none"], count)
    )
    is_new = rng.random(count) < 0.82
    before = np.where(is_new, "unknown", rng.choice(["no", "other", "yes"], count, p=[0.6, 0.22, 0.18]))
    month, seconds = rng.integers(1, 13, count), np.exp(rng.normal(5.2, 0.9, count)).clip(0, 5000).round()
    calls, money = rng.geometric(0.4, count).clip(1, 60), rng.normal(1000, 2500, count).clip(-8000, 100_000).round()
    odds = -4.3 + 1.4 * np.log1p(seconds / 100) + 2.2 * (before == "yes") + 0.6 * np.isin(work, ["student", "retired"])
    odds += 1.3 * np.isin(month, [3, 9, 10, 12]) - 0.12 * calls - 0.3 * (money < 0) + 0.8 * (age > 60) * (seconds > 200)
    return pd.DataFrame({
        "age": age, "work": work, "money": money.astype(int), "seconds": seconds.astype(int), "calls": calls,
        "days": np.where(is_new, -1, rng.integers(1, 400, count)), "before": before, "month": [f"m{each}" for each in month],
        "label": np.where(rng.random(count) < 1 / (1 + np.exp(-odds)), "yes", "no"),
    })  # fmt: skip


def product(rng: np.random.Generator) -> pd.DataFrame:
    count = 60_000
    one, two, group = rng.normal(0, 1, count), rng.normal(0, 1, count), rng.choice(4, count)
    return pd.DataFrame({
        "one": one.round(3), "two": two.round(3), "group": np.array(list("wxyz"))[group],
        "y": (10 * one * two + 5 * (group == 2) + 3 * one + rng.normal(0, 2, count)).round(2),
    })  # fmt: skip


TABLES: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "twins": twins,
    "classes": classes,
    "turned": partial(classes, turned=True),
    "campaign": campaign,
    "product": product,
}


def features(rows: pd.DataFrame, known: pd.DataFrame, without: str) -> np.ndarray:
    """Numbers as they are, texts by their place among those of the real rows."""
    found = []
    for name in known.columns.drop(without):
        column = rows[name]
        if not pd.api.types.is_numeric_dtype(known[name]):
            column = column.astype(str).map({text: place for place, text in enumerate(sorted(set(known[name])))})
        found.append(column.astype(float).to_numpy())
    return np.stack(found, axis=1)


def trees_score(made: pd.DataFrame, real: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    from sklearn.metrics import r2_score, roc_auc_score
    from xgboost import XGBClassifier, XGBRegressor

    kind = {"n_estimators": 30, "max_depth": 4, "n_jobs": 1}
    if "y" in made:
        trees = XGBRegressor(**kind).fit(features(made, real, "y"), made["y"])
        return {"r2": 100 * float(r2_score(test["y"], trees.predict(features(test, real, "y"))))}
    names = sorted(set(real["label"]))
    own, truth = (
        rows["label"].map({name: place for place, name in enumerate(names)}).to_numpy() for rows in (made, test)
    )
    known, chances = np.unique(own), np.zeros((len(test), len(names)))
    trees = XGBClassifier(**kind).fit(features(made, real, "label"), np.searchsorted(known, own))
    chances[:, known] = trees.predict_proba(features(test, real, "label"))
    areas = [roc_auc_score(truth == place, chances[:, place]) for place in range(len(names))]
    return {"auc": 100 * float(np.mean(areas))}


def cells(rows: pd.DataFrame, real: pd.DataFrame) -> list[np.ndarray]:
    found = []
    for name in real.columns:
        if pd.api.types.is_numeric_dtype(real[name]):
            values = rows[name].astype(float).to_numpy()
            edges = np.unique(np.nanquantile(real[name].astype(float), np.linspace(0, 1, 21))[1:-1])
            found.append(np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="right")))
        else:
            found.append(np.searchsorted(sorted(set(real[name])), rows[name].astype(str)))
    return found


def pairs_off(made: pd.DataFrame, real: pd.DataFrame) -> float:
    distances = []
    for one, two in itertools.combinations(zip(cells(made, real), cells(real, real), strict=True), 2):
        width = 1 + max(part.max() for part in two)
        size = width * (1 + max(part.max() for part in one))
        own, true = (np.bincount(a * width + b, minlength=size) / len(a) for a, b in zip(one, two, strict=True))
        distances.append(np.abs(own - true).sum() / 2)
    return 100 * float(np.mean(distances))


def scores(made: pd.DataFrame, real: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    found = {"pairs_off": pairs_off(made, real), **trees_score(made, real, test)}
    if "school" in made:
        years = made["school"].map({name: place + 1 for place, name in enumerate(SCHOOLS)})
        states = made["zip"].astype(int).map(lambda each: f"S{(each - 10_000) // 137 % 9}")
        found["school_contradicts_years"] = 100 * float((years != made["years"]).mean())
        found["zip_contradicts_state"] = 100 * float((states != made["state"]).mean())
    return found


def limbeck(*words: object) -> None:
    command = [sys.executable, "-m", "limbeck", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def released(folder: Path, name: str, method: str, seed: int) -> pd.DataFrame:
    out = folder / f"{method}-{seed}"
    limbeck("condense", folder / f"{name}.csv", "--schema", folder / "schema.toml", "--epsilon", 1, "--delta", 1e-5, "--method",
            method, "--set", f"seed={seed}", "--out", out, "--ledger", folder / f"{method}-{seed}.sqlite", "--yes")  # fmt: skip
    return pd.read_parquet(out / "data" / "train.parquet")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("name", choices=TABLES)
    options.add_argument("--only", choices=METHODS)
    chosen = options.parse_args()
    name, kept = chosen.name, RESULTS / f"generated-tables-{chosen.name}.json"
    methods = (chosen.only,) if chosen.only else METHODS
    rows = TABLES[name](np.random.default_rng(7))
    real, test = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    result: dict[str, Any] = {
        "command": f"python -m benchmarks.generated_tables {name}",
        "records": len(real),
        "epsilon": 1.0,
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        real.to_csv(folder / f"{name}.csv", index=False)
        said = ("--target", "y") if name == "product" else ("--label", "label")
        limbeck("schema", "draft", folder / f"{name}.csv", *said, "--out", folder / "schema.toml")
        text = (folder / "schema.toml").read_text()
        (folder / "schema.toml").write_text(re.sub(r"unconfirmed = \[.*?\]\n", "", text, flags=re.S))
        result["real"] = {key: round(value, 2) for key, value in scores(test, real, test).items() if key == "pairs_off"}
        result["real"] |= {key: round(value, 2) for key, value in trees_score(real, real, test).items()}
        if chosen.only and kept.exists():
            result |= {method: found for method, found in json.loads(kept.read_text()).items() if method in METHODS}
        for method in methods:
            sets = [scores(released(folder, name, method, seed), real, test) for seed in range(SETS)]
            result[method] = {
                key: {"mean": round(float(np.mean(each)), 2), "std": round(float(np.std(each)), 2)}
                for key in sets[0]
                if (each := [found[key] for found in sets])
            }
            print(json.dumps({method: result[method]}), file=sys.stderr, flush=True)
    kept.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
