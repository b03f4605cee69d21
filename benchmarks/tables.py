"""Tables on what a user opens: models trained on decoded rows, scored on real test rows; and how far marginals are off.

    python -m benchmarks.tables mosaic --epsilon 1 --root DATA               makes three sets and scores them
    python -m benchmarks.tables aim --epsilon 1 --root DATA a.csv b.csv c.csv    scores rows that another tool made
    python -m benchmarks.tables aim-own --epsilon 1 --root DATA              makes and scores sets by our own form of it
    python -m benchmarks.tables real --root DATA                            the real rows themselves
    python -m benchmarks.tables mosaic-100-rows --method mosaic --set rows=100 --root DATA    under a name of its own

DATA holds adult/train.csv and adult/test.csv. XGBoost has its own defaults and one thread; logistic regression takes standardised
numbers and one-hot categories. The total variation of two-way marginals is the mean over all pairs of columns, numbers cut at the
twentieths of the real training rows. Every figure is scored once. Results go to benchmarks/results/tables-NAME-epsilon-E.json.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from limbeck.data.named import named_set
from limbeck.privacy.schema import Schema

RESULTS = Path(__file__).parent / "results"
SETS = 3
FIGURES = (
    "xgboost_accuracy", "xgboost_auc", "xgboost_f1", "logistic_accuracy", "logistic_auc", "logistic_f1", "pair_distance",
)  # fmt: skip
Table = dict[str, NDArray[np.generic]]


def from_csv(path: Path, schema: Schema) -> Table:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    numeric = {column.name: column.numeric for column in schema.columns}
    return {
        name: np.array([float(row[name]) for row in rows])
        if numeric.get(name)
        else np.array([row[name].strip().rstrip(".") for row in rows])
        for name in (*numeric, schema.label)
    }


def from_parquet(path: Path, schema: Schema) -> Table:
    import pyarrow.parquet as pq

    columns = pq.read_table(path).to_pydict()
    return {name: np.array(columns[name]) for name in (*(column.name for column in schema.columns), schema.label)}


def scores(made: Table, train: Table, test: Table, schema: Schema) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    def codes(table: Table) -> NDArray[np.float64]:
        return np.stack(
            [
                table[column.name].astype(np.float64)
                if column.numeric
                else _ranks(table[column.name], column.categories)
                for column in schema.columns
            ],
            axis=1,
        )

    def hot(table: Table) -> NDArray[np.float64]:
        return np.concatenate(
            [
                table[column.name].astype(np.float64)[:, None]
                if column.numeric
                else (table[column.name][:, None] == np.array(column.categories)).astype(np.float64)
                for column in schema.columns
            ],
            axis=1,
        )

    y, truth = (np.asarray(table[schema.label] == schema.classes[1]) for table in (made, test))
    trees = XGBClassifier(n_jobs=1, random_state=0).fit(codes(made), y).predict_proba(codes(test))[:, 1]
    scaler = StandardScaler().fit(hot(made))
    linear = LogisticRegression(max_iter=1000).fit(scaler.transform(hot(made)), y)
    lines = linear.predict_proba(scaler.transform(hot(test)))[:, 1]
    found = {}
    for name, chance in (("xgboost", trees), ("logistic", lines)):
        found[f"{name}_accuracy"] = 100 * accuracy_score(truth, chance > 0.5)
        found[f"{name}_auc"] = 100 * roc_auc_score(truth, chance)
        found[f"{name}_f1"] = 100 * f1_score(truth, chance > 0.5)
    return {**found, "pair_distance": 100 * pair_distance(made, train, schema)}


def _ranks(values: NDArray[np.generic], categories: tuple[str, ...]) -> NDArray[np.float64]:
    rank = {category: index for index, category in enumerate(categories)}
    return np.array([rank[str(value)] for value in values], dtype=np.float64)


def pair_distance(made: Table, real: Table, schema: Schema) -> float:
    """The mean total variation of all two-way marginals, the label's included."""
    cells: list[tuple[NDArray[np.int64], NDArray[np.int64], int]] = []
    for column in schema.columns:
        mine, theirs = (table[column.name] for table in (made, real))
        if column.numeric:
            edges = np.unique(np.quantile(theirs.astype(float), np.linspace(0, 1, 21))[1:-1])
            one, two = (np.searchsorted(edges, values.astype(float), side="right") for values in (mine, theirs))
            cells.append((one, two, len(edges) + 1))
        else:
            one, two = (_ranks(values, column.categories).astype(np.int64) for values in (mine, theirs))
            cells.append((one, two, len(column.categories)))
    one, two = ((table[schema.label] == schema.classes[1]).astype(np.int64) for table in (made, real))
    cells.append((one, two, 2))
    distances = []
    for (one, true_one, size), (two, true_two, other) in itertools.combinations(cells, 2):
        ours = np.bincount(one * other + two, minlength=size * other) / len(one)
        real_shares = np.bincount(true_one * other + true_two, minlength=size * other) / len(true_one)
        distances.append(np.abs(ours - real_shares).sum() / 2)
    return float(np.mean(distances))


def make(method: str, epsilon: float, seed: int, root: Path, settings: list[str], folder: Path) -> tuple[Path, float]:
    """A release, and the seconds of CPU that its making took."""
    out = folder / f"set-{seed}"
    command = [
        sys.executable, "-m", "limbeck", "condense", "adult", "--root", str(root), "--method", method,
        "--epsilon", str(epsilon), "--delta", "1e-5", "--set", f"seed={seed}", "--out", str(out),
        "--ledger", str(folder / f"ledger-{seed}.sqlite"), "--json",
    ]  # fmt: skip
    for each in settings:
        command += ["--set", each]
    before = os.times()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return out / "data" / "train.parquet", spent


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("name")
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--root", type=Path, required=True)
    options.add_argument("--method", help="if it is not the name that the result gets")
    options.add_argument("--set", dest="settings", action="append", default=[])
    options.add_argument("--cpu-seconds", type=float, nargs="*", help="what each of the files took to make")
    chosen = options.parse_intermixed_args()
    schema = named_set("adult").schema
    train, test = (from_csv(chosen.root / "adult" / f"{split}.csv", schema) for split in ("train", "test"))
    sets, seconds = [], list(chosen.cpu_seconds or [])
    began, method = time.monotonic(), chosen.method or chosen.name.removesuffix("-own")
    if chosen.name == "real":
        sets = [scores(train, train, test, schema)]
    elif chosen.files:
        read = {".csv": from_csv, ".parquet": from_parquet}
        sets = [scores(read[path.suffix](path, schema), train, test, schema) for path in chosen.files]
    else:
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(SETS):
                path, spent = make(method, chosen.epsilon, seed, chosen.root, chosen.settings, Path(folder))
                seconds.append(spent)
                sets.append(scores(from_parquet(path, schema), train, test, schema))
                print(f"set {seed}: {sets[-1]}", file=sys.stderr, flush=True)
    result = {
        "command": "python -m benchmarks.tables " + " ".join(_without_paths(sys.argv[1:])),
        "data": "adult",
        "rows": "decoded",
        "epsilon": None if chosen.name == "real" else chosen.epsilon,
        "delta": 1e-5,
        "figures": {name: spread([found[name] for found in sets]) for name in FIGURES},
        "cpu_seconds": [round(each) for each in seconds],
    }
    ending = "" if chosen.name == "real" else f"-epsilon-{chosen.epsilon:g}"
    (RESULTS / f"tables-{chosen.name}{ending}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({"figures": result["figures"], "seconds": round(time.monotonic() - began)}, indent=1))


def spread(values: list[float]) -> dict[str, object]:
    """Per cent, over sets."""
    mean, std = round(float(np.mean(values)), 2), round(float(np.std(values)), 2)
    return {"mean": mean, "std": std, "sets": [round(value, 2) for value in values]}


def _without_paths(words: list[str]) -> list[str]:
    """Where the data and the peers' rows lie is nobody's business: their names are enough."""
    return [Path(word).name if "/" in word else word for word in words]


if __name__ == "__main__":
    main()
