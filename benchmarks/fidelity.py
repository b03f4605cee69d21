"""Fidelity of real MNIST images and of an LDPDC set: `python -m benchmarks.fidelity`, minutes on one core.

MNIST is public, so the ledger is a throw-away one and the owner's figures may be kept here.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy import limbeck
from limbeck.evaluate.frechet import frechet_distance
from limbeck.evaluate.judge import judge_of
from limbeck.progress import Silent
from limbeck.runs.request import DataReference
from limbeck.vault.encoding import encode

RESULT = Path(__file__).parent / "results" / "fidelity-mnist.json"
CONDENSE = ("condense", "mnist", "--method", "ldpdc", "--epsilon", "1", "--per-class", "50")
FIDELITY = ("fidelity", "RELEASE", "--data", "mnist")
LEVELS = (0.0, 0.1, 0.2, 0.4, 0.8)


def distances_under_noise() -> dict[str, float]:
    """Frechet classifier distance of 10,000 real training images from the test images, with Gaussian noise added."""
    train, test = (DataReference(data="mnist").source(split) for split in ("train", "test"))
    records = train.load()
    judge = judge_of(records, train.schema, Silent())
    reference = judge.look(encode(test.load().x, train.schema))[0]
    x = encode(records.x[:10_000], train.schema)
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    return {f"{level:g}": round(frechet_distance(judge.look(x + level * noise)[0], reference), 4) for level in LEVELS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", type=Path, help="measure a release that is there already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        release = options.release or Path(scratch) / "set"
        if options.release is None:
            limbeck(*CONDENSE, "--out", str(release), "--ledger", f"{scratch}/ledger.sqlite")
        measured = limbeck(*(str(release) if word == "RELEASE" else word for word in FIDELITY))
        certificate: dict[str, Any] = json.loads((release / "certificate.json").read_text())
    result = {
        "commands": [
            "python -m benchmarks.fidelity",
            " ".join(("limbeck", *CONDENSE, "--out RELEASE")),
            " ".join(("limbeck", *FIDELITY)),
        ],
        "fidelity": {**measured, "release": "RELEASE"},
        "frechet_classifier_distance_by_noise": distances_under_noise(),
        "versions": certificate["versions"],
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"inception score of the test images: {measured['real_test']['inception_score']}")


if __name__ == "__main__":
    main()
