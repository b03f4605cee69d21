"""The public sets that cases of the forecast are made of, and how hard each is: what a usual model reaches on real records.

Pictures: one ConvNet of width 32, trained for 8 epochs on up to 3,000 real records of each of the set's ten classes; of some of
the classes it says how often the network picks the right one among these. Tables: boosted trees on real rows, up to 3,000 of each
class. Generated tables are scikit-learn's `make_classification`, drawn by their number.

    python -m benchmarks.forecast_data --root DATA      writes results/forecast-real.json: of the whole sets
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import interpolate

from limbeck.data import Records, open_source
from limbeck.evaluate.downstream import train
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import Choice
from limbeck.evaluate.presets import preset_named
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.scoring import TrainingSet, score_models
from limbeck.nets.training.descent import likes_channels_last, logits_of
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Silent
from limbeck.vault.encoding import encode

RESULTS = Path(__file__).parent / "results"
KEEP = Path(tempfile.gettempdir()) / "limbeck-forecast"
IMAGES = ("mnist", "fashion-mnist", "cifar10", "digits")
GENERATED = "generated-"
WHOLE = (*IMAGES, "adult")
MANY = 3000  # real records of a class that a usual model is trained on
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PublicSet:
    schema: Schema
    train: Records
    test: Records


@functools.cache
def public_set(name: str, root: Path) -> PublicSet:
    if name in IMAGES or name == "adult":
        sources = [open_source(name, split=split, root=root) for split in ("train", "test")]
        return PublicSet(sources[0].schema, sources[0].load(), sources[1].load())
    return _plain_table(name, *_rows(name))


def _rows(name: str) -> tuple[NDArray[Any], Labels, list[str], list[str]]:
    from sklearn import datasets

    if not name.startswith(GENERATED):
        found = {"breast-cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}[name]()
        return found.data, found.target.astype(np.int64), list(found.feature_names), list(map(str, found.target_names))
    number = int(name.removeprefix(GENERATED))
    rng = np.random.default_rng(1000 + number)
    columns, classes = int(rng.choice((6, 10, 16, 24))), int(rng.choice((2, 2, 3, 4)))
    x, y = datasets.make_classification(
        n_samples=9000, n_features=columns, n_informative=int(rng.integers(4, columns // 2 + 2)), n_redundant=columns // 4,
        n_classes=classes, n_clusters_per_class=1, class_sep=float(rng.uniform(0.4, 1.6)), random_state=number,
    )  # fmt: skip
    return x, y.astype(np.int64), [f"c{each}" for each in range(columns)], [str(each) for each in range(classes)]


def _plain_table(name: str, x: NDArray[Any], y: Labels, columns: list[str], classes: list[str]) -> PublicSet:
    """Every third row is for tests. The range of a column is that of all its rows, as if it had been declared."""
    lows, highs = np.floor(x.min(0)), np.ceil(x.max(0))
    declared = tuple(
        Column(name=each, low=float(low), high=float(high))
        for each, low, high in zip(columns, lows, highs, strict=True)
    )
    schema = Schema(
        name=name, shape=(len(columns),), classes=tuple(classes), records=len(y), low=-1.0, high=1.0, columns=declared,
        augmentation=(),
    )  # fmt: skip
    scaled = (2 * (x - lows) / (highs - lows) - 1).astype(np.float32)
    held = np.arange(len(y)) % 3 == 0
    return PublicSet(schema, Records(scaled[~held], y[~held]), Records(scaled[held], y[held]))


def of_each(y: Labels, classes: list[int], count: int, rng: np.random.Generator) -> Labels:
    """Rows of so many records of each class, or of all that there are."""
    order = rng.permutation(len(y))
    return np.concatenate([order[y[order] == kind][:count] for kind in classes])


def chosen(records: Records, rows: Labels, classes: list[int]) -> Records:
    """These rows, with the classes counted from 0 in their order."""
    code = {kind: index for index, kind in enumerate(classes)}
    return Records(records.x[rows], np.array([code[kind] for kind in records.y[rows].tolist()], dtype=np.int64))


def at_side(schema: Schema, records: Records, side: int | None) -> tuple[Schema, Records]:
    """Pictures of another size: averaged down, or interpolated."""
    if side is None or schema.shape[1] == side:
        return schema, records
    x = torch.from_numpy(np.asarray(records.x)).float()
    small = side < x.shape[2]
    x = interpolate(x, (side, side), mode="area") if small else interpolate(x, (side, side), mode="bilinear")
    changed = x.round().clamp(schema.low, schema.high).numpy().astype(np.asarray(records.x).dtype)
    return replace(schema, shape=(schema.shape[0], side, side)), Records(changed, records.y)


def real_accuracy(name: str, classes: list[int], root: Path, keep: Path) -> float:
    """Per cent, of the usual model on test records of these classes, equally many of each counted alike."""
    if name in IMAGES:
        logits, y = _answers(name, root, keep)
        rows = np.isin(y, classes)
        right = np.array(classes)[logits[rows][:, classes].argmax(1)] == y[rows]
        return float(100 * np.mean([right[y[rows] == kind].mean() for kind in classes]))
    return _trees(name, tuple(classes), root)


@functools.cache
def _trees(name: str, classes: tuple[int, ...], root: Path) -> float:
    found, rng = public_set(name, root), np.random.default_rng(0)
    rows = of_each(found.train.y, list(classes), MANY, rng)
    own = chosen(found.train, rows, list(classes))
    fewest = min(int((found.test.y == kind).sum()) for kind in classes)
    test = chosen(found.test, of_each(found.test.y, list(classes), fewest, rng), list(classes))
    scoring = Scoring(choices=(Choice("boosted-trees"),), preset=preset_named("brief"), repeats=1, seed=0)
    training = TrainingSet(x=encode(own.x, found.schema), y=torch.from_numpy(own.y), classes=len(classes))
    tests = [Labelled(encode(test.x, found.schema), torch.from_numpy(test.y))]
    (outcome,) = score_models(training, tests, scoring, Silent())
    assert outcome.score is not None, outcome.skipped
    return float(np.mean(outcome.score.runs))


def _answers(name: str, root: Path, keep: Path) -> tuple[NDArray[np.float32], Labels]:
    """The network's logits of all test records, which are kept between calls."""
    path = keep / f"{name}-logits.npz"
    if not path.exists():
        found, rng = public_set(name, root), np.random.default_rng(0)
        kinds = list(range(len(found.schema.classes)))
        own = chosen(found.train, of_each(found.train.y, kinds, MANY, rng), kinds)
        preset = replace(preset_named("brief").fitted(found.schema), width=32, epochs=8 if name != "digits" else 40)
        network = train("convnet", encode(own.x, found.schema), torch.from_numpy(own.y), len(kinds), preset)
        last = likes_channels_last(network)
        with torch.no_grad():
            parts = torch.split(encode(found.test.x, found.schema), 100)
            logits = torch.cat([logits_of(network, part, last) for part in parts]).numpy()
        keep.mkdir(parents=True, exist_ok=True)
        np.savez(path, logits=logits, y=found.test.y)
    kept = np.load(path)
    return kept["logits"], kept["y"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", type=Path)
    options.add_argument("--keep", type=Path, default=KEEP)
    asked = options.parse_args()
    found = {
        name: real_accuracy(name, list(range(2 if name == "adult" else 10)), asked.root, asked.keep) for name in WHOLE
    }
    values = {"command": "python -m benchmarks.forecast_data --root DATA", "accuracy": found}
    (RESULTS / "forecast-real.json").write_text(json.dumps(values, indent=1) + "\n")
    print(found)


if __name__ == "__main__":
    main()
