"""Several owners against one vault with all records: accuracy at the same epsilon for each record.

    python -m benchmarks.federated ndpdc-iid-shared          one row; --all for every one (hours on two cores)
    python -m benchmarks.federated ndpdc-iid-shared --short  fewer answers, the same for all rows, kept under another name
    python -m benchmarks.federated ndpdc-iid-shared --quick  smaller still: shows the order, not the level
    python -m benchmarks.federated ndpdc-iid-shared --short --second-set    the same with other seeds, kept beside the first

Sites are those of `limbeck federate simulate`, with the same ledgers, keys, frames and masks, but in this process: a message of
Flower's takes seconds (limbeck.federated.simulate.in_this_process). That the bits are the same over Flower is for
tests/federated/test_flower.py to show. The data set is public, so ledgers are throw-away ones.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data import open_source
from limbeck.federated.running import federated_plan, run_federated
from limbeck.federated.simulate import Simulation, give_budgets, in_this_process, set_up
from limbeck.privacy.federation import Terms, views
from limbeck.privacy.plan import Plan
from limbeck.progress import Lines
from limbeck.runs.condense import condense
from limbeck.runs.planning import make_plan, method_for
from limbeck.runs.request import DataReference, Request, RunOptions

RESULTS = Path(__file__).parent / "results"
SITES, EPSILON, DELTA = 4, 1.0, 1e-5
METHODS: dict[str, dict[str, Any]] = {"ndpdc": {"per_class": 50, "I": 2000}, "elixir": {"per_class": 50}}
SHORT: dict[str, dict[str, Any]] = {
    "ndpdc": {"per_class": 20, "I": 400, "width": 32},
    "elixir": {"per_class": 20, "T": 100},
}
QUICK: dict[str, dict[str, Any]] = {
    "ndpdc": {"per_class": 10, "I": 200, "width": 32},
    "elixir": {"per_class": 10, "T": 50, "networks": 4, "width": 8},
}


@dataclass(frozen=True)
class Row:
    """noise: 'one' for a single vault with all records."""

    method: str
    split: str
    noise: str

    @property
    def name(self) -> str:
        return f"{self.method}-{self.split}-{self.noise}" if self.noise != "one" else f"{self.method}-one"


ROWS = {
    row.name: row
    for row in (
        *(Row(method, "all", "one") for method in METHODS),
        *(
            Row(method, split, noise)
            for method in METHODS
            for split in ("iid", "class")
            for noise in ("site", "shared")
        ),
    )
}


def made(row: Row, settings: dict[str, Any], folder: Path) -> tuple[Path, Plan, Terms | None]:
    data = DataReference(data="mnist")
    if row.noise == "one":
        source = open_source("mnist")
        request = Request(data=data, options=RunOptions(ledger=str(folder / "ledger.sqlite")))
        plan = make_plan(source.schema, method_for(source.schema, row.method, settings, None), EPSILON, DELTA)
        return condense(request, plan, source, folder / "out", Lines()).release, plan, None
    simulation = Simulation(data=data, sites=SITES, split=row.split, noise=row.noise)
    federation = set_up(folder, simulation)
    plan = federated_plan(federation, row.method, settings, EPSILON, DELTA)
    give_budgets(folder, simulation, plan)
    with in_this_process(folder, federation, lambda text: print(text, file=sys.stderr)) as transport:
        release = run_federated(folder / "server", federation, transport, plan, folder / "out", Lines()).release
    return release, plan, federation.terms


SIZES = {"": (METHODS, 3), "short": (SHORT, 2), "quick": (QUICK, 1)}


def measured(row: Row, size: str, seed: int) -> dict[str, Any]:
    sizes, repeats = SIZES[size]
    settings = {**sizes[row.method], **({"seed": seed} if seed else {})}
    began, scoring = _cpu_seconds(resource.RUSAGE_SELF), _cpu_seconds(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as scratch:
        release, plan, terms = made(row, settings, Path(scratch))
        condensing = _cpu_seconds(resource.RUSAGE_SELF) - began
        command = [
            sys.executable, "-m", "limbeck", "evaluate", str(release), "--test", "mnist", "--models", "convnet",
            "--repeats", str(repeats), "--preset", "cpu", "--json",
        ]  # fmt: skip
        scores = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        del scores["release"]  # a folder that is gone
        total = 1.0 if terms is None else terms.total
        found = None if terms is None else views(plan.queries, DELTA, terms).to_dict()
    return {
        "row": row.name,
        "settings": settings,
        "size": size or "whole",
        "sites": 1 if terms is None else SITES,
        "epsilon": plan.price.epsilon,
        "noise_of_the_sum": total,
        "views": found,
        "transport": "in this process",
        "cpu_seconds": {
            "condense": round(condensing),
            "evaluate": round(_cpu_seconds(resource.RUSAGE_CHILDREN) - scoring),
        },
        "scores": scores,
    }


def _cpu_seconds(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help="which rows")
    parser.add_argument("--all", action="store_true")
    small = parser.add_mutually_exclusive_group()
    small.add_argument("--short", dest="size", action="store_const", const="short", default="", help="fewer answers")
    small.add_argument(
        "--quick", dest="size", action="store_const", const="quick", help="shows the order, not the level"
    )
    parser.add_argument("--second-set", action="store_true")
    given = parser.parse_args()
    second = "second-set" if given.second_set else ""
    for name in ROWS if given.all else given.rows:
        result = measured(ROWS[name], given.size, int(given.second_set))
        path = RESULTS / f"federated-{'-'.join(filter(None, (name, given.size, second)))}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(path)


if __name__ == "__main__":
    main()
