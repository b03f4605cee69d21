"""Cases that the forecast of usefulness is fitted to and tried on: small public sets, made and scored in seconds.

    python -m benchmarks.forecast_cases --root DATA --part 0 --parts 3    adds to results/forecast-cases-0.json

A case is a data set, some of its classes, so many records of each, an epsilon and a size. Which cases there are is drawn from
one seed and never looked at again; every third is held out and no fit sees it. A set of images is scored by one ConvNet of
width 16 over 60 epochs on at most 600 test records, a table by boosted trees on decoded rows. A part can be stopped and goes on.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from limbeck.data import DataSource, Records, open_source
from limbeck.evaluate.decoded import decoded
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import Choice
from limbeck.evaluate.presets import preset_named
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.scoring import TrainingSet, score_models
from limbeck.methods import SyntheticSet
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Silent
from limbeck.runs.execution import run_method
from limbeck.runs.planning import make_plan, method_for
from limbeck.vault.encoding import encode
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness

RESULTS = Path(__file__).parent / "results"
IMAGES, TABLES = ("mnist", "fashion-mnist", "cifar10", "digits"), ("adult", "breast-cancer", "wine")
TESTS = 600


def cases() -> list[dict[str, Any]]:
    rng = np.random.default_rng(27)
    found: list[dict[str, Any]] = []
    for number in range(120):
        table = number % 4 == 3
        data = str(rng.choice(TABLES, p=(0.6, 0.25, 0.15)) if table else rng.choice(IMAGES, p=(0.3, 0.3, 0.3, 0.1)))
        classes = int(rng.choice((2, 3, 5, 10), p=(0.45, 0.25, 0.2, 0.1)))
        most = {"digits": 130, "adult": 7000, "breast-cancer": 180, "wine": 40}.get(data, 999)
        each = round(float(np.exp(rng.uniform(np.log(30), np.log(most)))))
        epsilon = float(rng.choice((0.3, 0.5, 1, 1, 2, 4, 8)))
        size = None if table else int(rng.choice((10, 20, 50))) if classes < 10 else 10
        chosen = tuple(sorted(rng.choice(10, size=classes, replace=False).tolist()))
        if table:
            chosen = (0, 1, 2) if data == "wine" else (0, 1)
        found.append({"data": data, "classes": chosen, "each": each, "epsilon": epsilon, "per_class": size})
    for number, case in enumerate(found):
        case["held_out"] = number % 3 == 2
    return [{**case, "classes": [*map(int, case["classes"])], "number": number} for number, case in enumerate(found)]


def records_of(case: dict[str, Any], root: Path) -> tuple[Schema, Records, Records]:
    schema, train, test = _whole(case["data"], root)
    rng = np.random.default_rng(case["number"])
    order = rng.permutation(len(train))
    rows = np.concatenate([order[train.y[order] == kind][: case["each"]] for kind in case["classes"]])
    tests = rng.permutation(len(test))
    tests = tests[np.isin(test.y[tests], case["classes"])][:TESTS]
    code = {kind: index for index, kind in enumerate(case["classes"])}
    names = tuple(schema.classes[kind] for kind in case["classes"])
    schema = replace(schema, name="case", classes=names, records=len(rows), class_sizes=None)

    def part(records: Records, chosen: Any) -> Records:
        return Records(records.x[chosen], np.array([code[kind] for kind in records.y[chosen].tolist()], dtype=np.int64))

    return schema, part(train, rows), part(test, tests)


@functools.cache
def _whole(name: str, root: Path) -> tuple[Schema, Records, Records]:
    if name in ("breast-cancer", "wine"):
        return _plain_table(name)
    sources = [open_source(name, split=split, root=root) for split in ("train", "test")]
    return sources[0].schema, sources[0].load(), sources[1].load()


def _plain_table(name: str) -> tuple[Schema, Records, Records]:
    from sklearn import datasets

    found = datasets.load_breast_cancer() if name == "breast-cancer" else datasets.load_wine()
    x, y = found.data, found.target.astype(np.int64)
    lows, highs = np.floor(x.min(0)), np.ceil(x.max(0))
    columns = tuple(
        Column(name=str(each), low=float(low), high=float(high))
        for each, low, high in zip(found.feature_names, lows, highs, strict=True)
    )
    schema = Schema(
        name=name, shape=(len(columns),), classes=tuple(map(str, found.target_names)), records=len(y), low=-1.0, high=1.0,
        columns=columns, augmentation=(),
    )  # fmt: skip
    scaled = (2 * (x - lows) / (highs - lows) - 1).astype(np.float32)
    held = np.arange(len(y)) % 3 == 0
    return schema, Records(scaled[~held], y[~held]), Records(scaled[held], y[held])


def made(schema: Schema, records: Records, case: dict[str, Any]) -> tuple[Any, Any, float, dict[str, Any]]:
    """A set by the default method, its CPU seconds and settings. Nothing of it is private: the data is public."""
    settings = {} if case["per_class"] is None else {"per_class": case["per_class"]}
    plan = make_plan(schema, method_for(schema, None, settings), case["epsilon"], 1e-5)
    source, began = DataSource(schema, "case", lambda _: records), time.process_time()
    with tempfile.TemporaryDirectory() as scratch, Ledger.open(Path(scratch) / "ledger.sqlite") as ledger:
        vault = LocalVault(source, ledger, Randomness(case["number"]))
        grant = vault.grant(plan)
        vault.open_records(grant)
        method = method_for(schema, plan.method, plan.settings)
        folder = Path(scratch) / "run"
        (folder / ".run").mkdir(parents=True)  # where a method keeps its checkpoints
        result = run_method(method, folder, vault, grant, Silent(), torch.device("cpu"), 1e9)
    assert isinstance(result, SyntheticSet)
    return result.x, result.y, time.process_time() - began, {"method": plan.method, **plan.settings}


def score(schema: Schema, x: Any, y: Any, test: Records, seed: int) -> float:
    encoded = encode(test.x, schema)
    if schema.is_image:
        preset = replace(preset_named("cpu"), width=16, epochs=60).fitted(schema)
        own, choice = TrainingSet(x=torch.from_numpy(x), y=torch.from_numpy(y), classes=len(schema.classes)), "convnet"
    else:
        preset, choice = preset_named("brief").fitted(schema), "boosted-trees"
        own = TrainingSet(x=decoded(x, schema), y=torch.from_numpy(y), classes=len(schema.classes))
    scoring = Scoring(choices=(Choice(choice),), preset=preset, repeats=1, seed=seed)
    (outcome,) = score_models(own, [Labelled(encoded, torch.from_numpy(test.y))], scoring, Silent())
    assert outcome.score is not None, outcome.skipped
    return float(np.mean(outcome.score.runs))


def measure(case: dict[str, Any], root: Path) -> dict[str, Any]:
    schema, records, test = records_of(case, root)
    x, y, seconds, settings = made(schema, records, case)
    began = time.process_time()
    accuracy = score(schema, x, y, test, case["number"])
    kept = {name: settings[name] for name in ("method", "T", "width", "per_class", "rows") if name in settings}
    return {
        **case,
        "shape": list(schema.shape),
        "records": len(records),
        "accuracy": round(accuracy, 2),
        "seconds": round(seconds, 2),
        "score_seconds": round(time.process_time() - began, 2),
        "settings": kept,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", type=Path, required=True)
    options.add_argument("--part", type=int, default=0)
    options.add_argument("--parts", type=int, default=1)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    out = chosen.out or RESULTS / f"forecast-cases-{chosen.part}.json"
    kept = json.loads(out.read_text()) if out.exists() else []
    done = {case["number"] for case in kept}
    for case in cases():
        if case["number"] % chosen.parts == chosen.part and case["number"] not in done:
            kept.append(measure(case, chosen.root))
            out.with_suffix(".part").write_text(json.dumps(kept, indent=1) + "\n")
            os.replace(out.with_suffix(".part"), out)


if __name__ == "__main__":
    main()
