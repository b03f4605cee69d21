"""Several owners against one vault with all records: accuracy at the same epsilon for each record.

    python -m benchmarks.federated ndpdc-iid-shared          one row; --all for every one (hours on two cores)
    python -m benchmarks.federated ndpdc-iid-shared --short  fewer answers, the same for all rows, kept under another name
    python -m benchmarks.federated ndpdc-iid-shared --quick  smaller still: shows the order, not the level

Sites are in this process (limbeck.federated.transport.InProcess), with ledgers, keys, frames and masks as over Flower; only the
network is not there. The data set is public, so ledgers are throw-away ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from limbeck.data import open_source
from limbeck.federated.folders import Federation
from limbeck.federated.running import federated_plan, run_federated
from limbeck.federated.site import desk_of
from limbeck.federated.splits import Share, SharedOut
from limbeck.federated.transport import InProcess
from limbeck.privacy.federation import Terms, views
from limbeck.privacy.plan import Plan
from limbeck.progress import Lines
from limbeck.release.signature import signing_key
from limbeck.runs.condense import condense
from limbeck.runs.planning import make_plan, method_for
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.vault.ledger import Ledger
from limbeck.vault.noise import Randomness

RESULTS = Path(__file__).parent / "results"
SITES, EPSILON, DELTA = 4, 1.0, 1e-5
METHODS: dict[str, dict[str, Any]] = {"ndpdc": {"per_class": 50, "I": 2000}, "elixir": {"per_class": 50}}
SHORT: dict[str, dict[str, Any]] = {
    "ndpdc": {"per_class": 20, "I": 200, "width": 32},
    "elixir": {"per_class": 20, "T": 40},
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
    source = open_source("mnist")
    if row.noise == "one":
        request = Request(data=DataReference(data="mnist"), options=RunOptions(ledger=str(folder / "ledger.sqlite")))
        plan = make_plan(source.schema, method_for(source.schema, row.method, settings, None), EPSILON, DELTA)
        return condense(request, plan, source, folder / "out", Lines()).release, plan, None
    books = {}
    for number in range(SITES):
        (folder / f"s{number}").mkdir()
        books[f"s{number}"] = Ledger.open(folder / f"s{number}" / "ledger.sqlite")
    keys = tuple(_public(book) for book in books.values())
    terms = Terms(name="measured", sites=tuple(books), keys=keys, noise=row.noise)
    federation = Federation(terms=terms, schema=source.schema, address="127.0.0.1:1", nodes=tuple(books))
    plan = federated_plan(federation, row.method, settings, EPSILON, DELTA)
    desks = {}
    for number, (name, book) in enumerate(books.items()):
        part = SharedOut(source, Share(kind=row.split, sites=SITES, number=number))
        book.set_budget(part.schema.name, plan.price.epsilon, DELTA)
        desks[name] = desk_of(part, book, terms, name, Randomness(), "cpu", print).answer
    release = run_federated(folder, federation, InProcess(desks), plan, folder / "out", Lines()).release
    return release, plan, terms


def _public(book: Ledger) -> str:
    key = signing_key(book.path.with_name("signing-key")).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


SIZES = {"": (METHODS, 3), "short": (SHORT, 2), "quick": (QUICK, 1)}


def measured(row: Row, size: str) -> dict[str, Any]:
    sizes, repeats = SIZES[size]
    settings = sizes[row.method]
    with tempfile.TemporaryDirectory() as scratch:
        release, plan, terms = made(row, settings, Path(scratch))
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
        "scores": scores,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help="which rows")
    parser.add_argument("--all", action="store_true")
    small = parser.add_mutually_exclusive_group()
    small.add_argument("--short", dest="size", action="store_const", const="short", default="", help="fewer answers")
    small.add_argument(
        "--quick", dest="size", action="store_const", const="quick", help="shows the order, not the level"
    )
    given = parser.parse_args()
    for name in ROWS if given.all else given.rows:
        result = measured(ROWS[name], given.size)
        path = RESULTS / f"federated-{'-'.join(filter(None, (name, given.size)))}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(path)


if __name__ == "__main__":
    main()
