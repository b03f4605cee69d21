"""Elixir on pictures of several sizes: three classes of CIFAR-10, 3,000 training records each, set up to the size by bicubic
interpolation, so that every size holds the same information.

    python -m benchmarks.sizes set 128 --keep FOLDER       a default run at epsilon 1; the set is kept
    python -m benchmarks.sizes score 128 --keep FOLDER     ConvNets trained on it, scored once on 3,000 test records of that size,
                                                           both averaged down to the size at which the set was made
    python -m benchmarks.sizes score 128 --at 128 ...      the same of pictures as they are
    python -m benchmarks.sizes time 64 96 128 224          a few answers of each size, and what a whole run takes by them

`--split held-out` scores on training records that no run has seen: for choosing. Times are CPU seconds of one thread (user
time), so that they mean the same on a busy machine. CIFAR-10 is public, so the ledger is a throw-away one.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from PIL import Image

from limbeck import Condenser, Schema
from limbeck.data import fetch
from limbeck.evaluate.downstream import Task, score_model
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.presets import preset_named
from limbeck.forecast.duration import reference_seconds
from limbeck.nets.features.pooled import pooled
from limbeck.vault.encoding import encode

RESULTS = Path(__file__).parent / "results"
CLASSES, EACH, HELD_OUT = ("airplane", "automobile", "bird"), 3000, 1000
FEW = (5, 35)  # answers of the two short runs whose difference is the time of an answer
SIDES = (32, 64, 96, 128, 224)
Pixels = NDArray[np.uint8]


def records(side: int, split: str) -> tuple[Pixels, NDArray[np.int64]]:
    """split: "train", "held-out" (other training records) or "test"."""
    file = fetch.locate("cifar10") / ("test.parquet" if split == "test" else "train.parquet")
    table = pq.read_table(file)
    labels = table.column("label").to_numpy()
    images = table.column("image" if "image" in table.column_names else "img").combine_chunks().field("bytes")
    first, last = {"train": (0, EACH), "held-out": (EACH, EACH + HELD_OUT), "test": (0, HELD_OUT)}[split]
    rows = np.concatenate([np.flatnonzero(labels == index)[first:last] for index in range(len(CLASSES))])
    x = np.stack([at_side(images[int(row)].as_py(), side) for row in rows])
    return x, labels[rows].astype(np.int64)


def at_side(data: bytes, side: int) -> Pixels:
    picture = Image.open(io.BytesIO(data)).convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
    return np.moveaxis(np.asarray(picture, dtype=np.uint8), -1, 0)


def schema_of(side: int) -> Schema:
    sizes = (EACH,) * len(CLASSES)
    return Schema(
        name="sizes", shape=(3, side, side), classes=CLASSES, records=sum(sizes), class_sizes=sizes, low=0, high=255
    )


def made(side: int, settings: dict[str, Any], folder: Path) -> tuple[Condenser, dict[str, Any]]:
    """A run, and what it took. folder: of its ledger and release; a run that was stopped in it is gone on with."""
    x, y = records(side, "train")
    folder.mkdir(parents=True, exist_ok=True)
    began, wall = cpu_seconds(), time.monotonic()
    condenser = Condenser(epsilon=1.0, per_class=50, settings=settings, ledger=folder / "ledger.sqlite")
    condenser.fit(x, y, schema=schema_of(side), out=folder / "release")
    spent, waited = cpu_seconds() - began, time.monotonic() - wall
    return condenser, {"cpu_seconds": round(spent, 1), "wall_seconds_on_a_busy_machine": round(waited, 1)}


def cpu_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def make_set(side: int, keep: Path, settings: dict[str, Any], name: str) -> None:
    condenser, took = made(side, settings, keep / f"{name}-run")
    np.savez(keep / f"{name}.npz", x=condenser.X_, y=condenser.y_)
    used = condenser.plan_
    took |= {
        "forecast_seconds": round(expected(side)),
        "side": side,
        "method": used.method,
        "settings": used.settings,
        "epsilon": used.price.epsilon,
    }
    took["most_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    (keep / f"{name}.json").write_text(json.dumps(took, indent=2) + "\n")
    print(name, json.dumps(took), flush=True)


def score(side: int, keep: Path, split: str, networks: int, epochs: int, name: str, model: str, at: int) -> None:
    """at: pixels a side that set and test records are averaged down to before a network sees them; 0: as the set was made."""
    run = json.loads((keep / f"{name}.json").read_text())
    at = at or run["settings"]["size"] or side
    found = np.load(keep / f"{name}.npz")
    x, y = records(side, split)
    test = Labelled(pooled(encode(x, schema_of(side)).float(), (at, at)), torch.from_numpy(y))
    own = pooled(torch.from_numpy(found["x"]), (at, at))
    task = Task(own, torch.from_numpy(found["y"]), (test,), len(CLASSES), False)
    began = cpu_seconds()
    preset = dataclasses.replace(preset_named("cpu").fitted(schema_of(at)), epochs=epochs)
    result = score_model(model, task, preset, networks, 0, "cpu")
    accuracy = {"runs": result.runs, "mean": float(np.mean(result.runs)), "std": float(np.std(result.runs))}
    values = {
        "command": f"python -m benchmarks.sizes set {side} ...; python -m benchmarks.sizes score {side} --at {at} ...",
        "data": f"{', '.join(CLASSES)} of CIFAR-10 at {side}x{side}, {EACH} training records each",
        "scored_on": split,
        "seen_at": at,
        "preset": "cpu",
        "epochs": epochs,
        "model": model,
        "accuracy": accuracy,
        "evaluation_cpu_seconds": round(cpu_seconds() - began, 1),
        "run": run,
    }
    target = RESULTS if split == "test" else keep
    seen = "" if at == side else f"-at-{at}"
    (target / f"sizes-{name}{seen}-{model}-{split}.json").write_text(json.dumps(values, indent=2) + "\n")
    print(name, split, accuracy, flush=True)


def expected(side: int) -> float:
    """What `limbeck plan` says of a whole run, on the machine of the benchmarks."""
    plan = Condenser(epsilon=1.0, per_class=50).plan(schema_of(side))
    found = reference_seconds(schema_of(side), plan)
    assert found is not None
    return found


def short_runs(sides: list[int]) -> None:
    """Extrapolated, and said so: a whole run takes as long as a short one and the answers that it has more."""
    path = RESULTS / "sizes-time.json"
    values = json.loads(path.read_text()) if path.exists() else {}
    for side in sides:
        took = []
        for answers in FEW:
            with tempfile.TemporaryDirectory() as folder:
                took.append(made(side, {"T": answers}, Path(folder))[1]["cpu_seconds"])
        each = (took[1] - took[0]) / (FEW[1] - FEW[0])
        whole = took[1] + each * (500 - FEW[1])
        values[str(side)] = {
            "answers_measured": list(FEW),
            "forecast_seconds": round(expected(side)),
            "cpu_seconds_measured": took,
            "cpu_seconds_of_an_answer": round(each, 2),
            "cpu_seconds_of_500_answers_extrapolated": round(whole),
        }
        print(side, values[str(side)], flush=True)
        path.write_text(json.dumps({"command": "python -m benchmarks.sizes time", **values}, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("set", "score", "time"))
    parser.add_argument("sides", nargs="+", type=int)
    parser.add_argument("--keep", type=Path, default=Path("."))
    parser.add_argument("--set", action="append", default=[], help="a setting, KEY=VALUE")
    parser.add_argument("--name", help="of the set; default: its side")
    parser.add_argument("--split", choices=("held-out", "test"), default="test")
    parser.add_argument("--networks", type=int, default=2)
    parser.add_argument("--model", default="convnet")
    parser.add_argument("--epochs", type=int, default=150, help="of the preset cpu's protocol")
    parser.add_argument(
        "--at",
        type=int,
        default=0,
        help="score: average set and test records down to so many pixels a side first; default: as the set was made",
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "time":
        short_runs(options.sides)
        return
    for side in options.sides:
        name = options.name or str(side)
        if options.what == "set":
            make_set(side, options.keep, dict(word.split("=", 1) for word in options.set), name)
        else:
            score(
                side,
                options.keep,
                options.split,
                options.networks,
                options.epochs,
                name,
                options.model,
                options.at,
            )


if __name__ == "__main__":
    main()
