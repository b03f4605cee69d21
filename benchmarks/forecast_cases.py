"""Cases that the forecast of usefulness is fitted to and tried on: small public sets, made by the default method and scored.

    python -m benchmarks.forecast_cases fit --root DATA         adds to results/forecast-cases-fit.json
    python -m benchmarks.forecast_cases more --root DATA        the same of more cases to fit
    python -m benchmarks.forecast_cases spent --root DATA       the same of those that were held out of an earlier fit,
    python -m benchmarks.forecast_cases spent-2 --root DATA     and of the one after it
    python -m benchmarks.forecast_cases held-out --root DATA    the same of cases that no fit sees

A case is a data set, some of its classes, so many records of each, an epsilon, a size of the set and, of grey pictures, of the
picture. Which cases there are is drawn from a seed; they are made in their order, so how many are made hangs on no result. The
held-out ones were drawn from a seed of their own, and made after the form of the forecast was fixed. Once they are scored they
are "spent", and the next fit sees them, too. Test records have equal shares of the classes, as the records have. Of a case
below a thousand records of a class at least four sets are made, because the luck of one is large, and up to twelve until the
standard error of their mean is below two points; its accuracy is that mean. A set of pictures is scored by one ConvNet of width
32 over 100 epochs, a table by boosted trees on decoded rows. What is left undone is gone on with.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.forecast_data import GENERATED, KEEP, at_side, chosen, of_each, public_set, real_accuracy
from limbeck.data import DataSource, Records
from limbeck.evaluate.decoded import decoded
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import Choice
from limbeck.evaluate.presets import preset_named
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.scoring import TrainingSet, score_models
from limbeck.forecast.duration import reference_seconds
from limbeck.methods import SyntheticSet
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.runs.execution import run_method
from limbeck.runs.planning import make_plan, method_for
from limbeck.vault.encoding import encode
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness

RESULTS = Path(__file__).parent / "results"
FIT, MORE, SPENT, SPENT_2, HELD_OUT = "fit", "more", "spent", "spent-2", "held-out"
SEEDS = {FIT: 270, SPENT: 226640, SPENT_2: 817304, MORE: 50931, HELD_OUT: 604417}
COUNTS = {FIT: 40, SPENT: 16, SPENT_2: 12, MORE: 96, HELD_OUT: 16}
# Each part has generated tables of its own: the first, and how many.
GENERATED_TABLES = {FIT: (0, 6), SPENT: (6, 6), SPENT_2: (12, 6), MORE: (18, 24), HELD_OUT: (42, 6)}
KINDS = ("grey", "table", "colour", "grey", "table", "many", "grey", "table")  # by the number of a case
TABLES = (("adult", 0.4), ("breast-cancer", 0.15), ("wine", 0.1), (GENERATED, 0.35))
MOST = {"digits": 130, "adult": 7000, "breast-cancer": 120, "wine": 30}
TESTS = 600
FEWEST, MOST_SETS, SURE = 4, 12, 2.0  # sets of a case are made until their mean is known to so many points


def cases(part: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng(SEEDS[part])
    return [{"number": number, "part": part, **_drawn(number, part, rng)} for number in range(COUNTS[part])]


def _drawn(number: int, part: str, rng: np.random.Generator) -> dict[str, Any]:
    kind = KINDS[number % len(KINDS)]
    epsilon = float(rng.choice((0.3, 0.5, 1, 1, 2, 4, 8)))
    if kind == "table":
        data = str(rng.choice([name for name, _ in TABLES], p=[share for _, share in TABLES]))
        if data == GENERATED:
            first, count = GENERATED_TABLES[part]
            data += str(int(rng.integers(count)) + first)
        each = _between(rng, 15 if data == "wine" else 40, MOST.get(data, 1500))
        return {"data": data, "classes": None, "each": each, "epsilon": epsilon, "per_class": None, "side": None}
    if kind == "many":
        data = str(rng.choice(("mnist", "fashion-mnist", "cifar10"), p=(0.35, 0.35, 0.3)))
        count, each = int(rng.choice((2, 3), p=(0.6, 0.4))), _between(rng, 1000, 4000)
    else:
        data = (
            "cifar10" if kind == "colour" else str(rng.choice(("mnist", "fashion-mnist", "digits"), p=(0.4, 0.4, 0.2)))
        )
        count, each = int(rng.choice((2, 3, 5, 10), p=(0.45, 0.25, 0.2, 0.1))), _between(rng, 40, MOST.get(data, 999))
    side = int(rng.choice((16, 40))) if kind == "grey" and data != "digits" and rng.random() < 0.3 else None
    classes = sorted(rng.choice(10, size=count, replace=False).tolist())
    size = min(int(rng.choice((10, 20, 50))) if count < 10 else 10, each)
    return {"data": data, "classes": classes, "each": each, "epsilon": epsilon, "per_class": size, "side": side}


def _between(rng: np.random.Generator, least: float, most: float) -> int:
    return round(float(np.exp(rng.uniform(np.log(least), np.log(most)))))


def records_of(case: dict[str, Any], root: Path) -> tuple[Schema, Records, Records]:
    found = public_set(case["data"], root)
    classes = case["classes"] or list(range(len(found.schema.classes)))
    rng = np.random.default_rng((SEEDS[case["part"]], case["number"]))
    rows = of_each(found.train.y, classes, case["each"], rng)
    most = min(TESTS // len(classes), *(int((found.test.y == kind).sum()) for kind in classes))
    names = tuple(found.schema.classes[kind] for kind in classes)
    schema = replace(found.schema, name="case", classes=names, records=len(rows), class_sizes=None)
    test = chosen(found.test, of_each(found.test.y, classes, most, rng), classes)
    changed, train = at_side(schema, chosen(found.train, rows, classes), case["side"])
    return changed, train, at_side(schema, test, case["side"])[1]


def plan_of(schema: Schema, case: dict[str, Any]) -> Plan:
    settings = {} if case["per_class"] is None else {"per_class": case["per_class"]}
    return make_plan(schema, method_for(schema, None, settings), case["epsilon"], 1e-5)


def made(plan: Plan, schema: Schema, records: Records, seed: int) -> tuple[Any, Any, float]:
    """A set and its CPU seconds. Nothing of it is private: the data is public."""
    source, began = DataSource(schema, "case", lambda _: records), time.process_time()
    with tempfile.TemporaryDirectory() as scratch, Ledger.open(Path(scratch) / "ledger.sqlite") as ledger:
        vault = LocalVault(source, ledger, Randomness(seed))
        grant = vault.grant(plan)
        vault.open_records(grant)
        method = method_for(schema, plan.method, plan.settings)
        folder = Path(scratch) / "run"
        (folder / ".run").mkdir(parents=True)  # where a method keeps its checkpoints
        result = run_method(method, folder, vault, grant, Silent(), torch.device("cpu"), 1e9)
    assert isinstance(result, SyntheticSet)
    return result.x, result.y, time.process_time() - began


def score(schema: Schema, x: Any, y: Any, test: Records, seed: int) -> float:
    if schema.is_image:
        preset, model, own = replace(preset_named("cpu"), width=32, epochs=100), "convnet", torch.from_numpy(x)
    else:
        preset, model, own = preset_named("brief"), "boosted-trees", decoded(x, schema)
    training = TrainingSet(x=own, y=torch.from_numpy(y), classes=len(schema.classes))
    scoring = Scoring(choices=(Choice(model),), preset=preset.fitted(schema), repeats=1, seed=seed)
    tests = [Labelled(encode(test.x, schema), torch.from_numpy(test.y))]
    (outcome,) = score_models(training, tests, scoring, Silent())
    assert outcome.score is not None, outcome.skipped
    return float(np.mean(outcome.score.runs))


def is_wanted(case: dict[str, Any], found: list[float]) -> bool:
    """Whether one more set is. Of thousands of pictures one set is much like another, and takes a minute and more."""
    if is_of_many(case):
        return not found
    if len(found) < FEWEST:
        return True
    return len(found) < MOST_SETS and float(np.std(found, ddof=1)) / np.sqrt(len(found)) > SURE


def is_of_many(case: dict[str, Any]) -> bool:
    return bool(case["each"] >= 1000 and case["per_class"] is not None)


def measure(case: dict[str, Any], root: Path, keep: Path, kept: dict[str, Any]) -> dict[str, Any]:
    """kept: what is measured of it already."""
    schema, records, test = records_of(case, root)
    plan = plan_of(schema, case)
    began, found, seconds = time.process_time(), list(kept.get("accuracies", [])), list(kept.get("seconds", []))
    while is_wanted(case, found):
        seed = 1000 * case["number"] + len(found)
        x, y, took = made(plan, schema, records, seed)
        seconds.append(round(took, 2))
        found.append(round(score(schema, x, y, test, seed), 2))
    classes = case["classes"] or list(range(len(schema.classes)))
    return {
        **case,
        "classes": classes,
        "shape": list(schema.shape),
        "columns": len(schema.columns),
        "records": len(records),
        "method": plan.method,
        "answers": int(plan.settings.get("T") or 0) if plan.method == "elixir" else 0,
        "accuracies": found,
        "accuracy": round(float(np.mean(found)), 2),
        "real_accuracy": kept.get("real_accuracy") or round(real_accuracy(case["data"], classes, root, keep), 2),
        "seconds": seconds,
        "forecast_seconds": round(reference_seconds(schema, plan) or 0, 2),
        "all_seconds": round(kept.get("all_seconds", 0.0) + time.process_time() - began, 2),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("part", choices=tuple(SEEDS))
    options.add_argument("--root", type=Path)
    options.add_argument("--keep", type=Path, default=KEEP)
    options.add_argument("--numbers", help="only these, as 3:20")
    options.add_argument("--many", action="store_true", help="only those of a thousand pictures and more of a class")
    options.add_argument("--few", action="store_true", help="only the others")
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    torch.set_num_threads(1)
    out = asked.out or RESULTS / f"forecast-cases-{asked.part}.json"
    kept = json.loads(out.read_text()) if out.exists() else []
    done, (first, last) = {case["number"]: case for case in kept}, map(int, (asked.numbers or "0:999").split(":"))
    for case in cases(asked.part):
        many, before = is_of_many(case), done.get(case["number"], {})
        if (
            not is_wanted(case, before.get("accuracies", []))
            or not first <= case["number"] < last
            or (many and asked.few)
            or (not many and asked.many)
        ):
            continue
        done[case["number"]] = measure(case, asked.root, asked.keep, before)
        kept = [done[number] for number in sorted(done)]
        print(json.dumps(done[case["number"]]), flush=True)
        out.with_suffix(".part").write_text(json.dumps(kept, indent=1) + "\n")
        os.replace(out.with_suffix(".part"), out)


if __name__ == "__main__":
    main()
