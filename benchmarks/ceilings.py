"""What models reach on the real training records of MNIST, beside the papers' columns "Real".

    python -m benchmarks.ceilings                   both tables (about 25 minutes on one idle core)
    python -m benchmarks.ceilings classifiers       GS-WGAN's thirteen, Table A1
    python -m benchmarks.ceilings architectures     the six of PSG's Table 2

Each table is one `limbeck evaluate --real` command; its result is kept as JSON. MNIST is public, so these figures are too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Table:
    """One command, and the paper's column in per cent."""

    models: str
    where: str
    paper: dict[str, float]


TABLES = {
    "classifiers": Table(
        "classical",
        "GS-WGAN (2020), Table A1, column Real (two digits)",
        {
            "mlp-100": 98, "cnn": 99, "adaboost": 73, "bagging": 93, "bernoulli-nb": 84, "decision-tree": 88,
            "gaussian-nb": 56, "gbm": 91, "lda": 88, "linear-svc": 92, "logistic-reg": 93, "random-forest": 97,
            "xgboost": 91,
        },
    ),
    "architectures": Table(
        "nets",
        "PSG (2022), Table 2, row Real (40 epochs at full width; ours are shorter, see the preset)",
        {"convnet": 99.6, "lenet": 99.2, "alexnet": 99.5, "vgg11": 99.6, "resnet18": 99.7, "mlp": 98.3},
    ),
}  # fmt: skip


def measure(name: str) -> dict[str, Any]:
    table = TABLES[name]
    words = ("evaluate", "--real", "mnist", "--models", table.models)
    run = subprocess.run([sys.executable, "-m", "limbeck", *words, "--json"], check=True, stdout=subprocess.PIPE)
    result: dict[str, Any] = json.loads(run.stdout)
    for row in result["rows"]:
        row["paper"] = table.paper[row["model"]]
    return {
        "command": " ".join(("limbeck", *words, "--json")),
        "paper": table.where,
        **result,
        "versions": {
            package: _version(package) for package in ("torch", "scikit-learn", "numpy", "xgboost-cpu", "xgboost")
        },
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="default: both")
    for name in parser.parse_args().tables or TABLES:
        result = measure(name)
        (RESULTS / f"{name}-real-mnist.json").write_text(json.dumps(result, indent=2) + "\n")
        for row in result["rows"]:
            print(f"{row['model']:15} {row.get('mean', float('nan')):6.2f}  paper {row['paper']}", flush=True)


if __name__ == "__main__":
    main()
