"""What it costs to protect persons in place of records: MNIST with ten records a person, which a set is made of at epsilon 1.

    python -m benchmarks.persons                 every row (an hour of one core)
    python -m benchmarks.persons any             one row

    record   the unit is a record, as everywhere else
    any      a person has ten records that were drawn at random, of several classes
    alike    a person has ten records of one class

A stand-in: MNIST does not say who wrote what. The benchmark sets are public, so the ledger is a throw-away one.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.accuracy import RESULTS, limbeck
from limbeck.data import Records, open_source
from limbeck.privacy.schema import Schema
from limbeck.release.statement import read_certificate

EACH = 10
ROWS = ("record", "any", "alike")
METHOD = ("--method", "elixir", "--epsilon", "1")
SCORED = ("--test", "mnist", "--models", "convnet", "--repeats", "3", "--preset", "cpu")


def write(folder: Path, row: str) -> Path:
    """The training records as an archive with a schema beside it."""
    source = open_source("mnist")
    source.prepare()
    records, schema = source.load(), dataclasses.replace(source.schema, name=f"mnist-{row}")
    path, arrays = folder / f"{row}.npz", {"x": records.x, "y": records.y}
    if row != "record":
        arrays["writer"] = writers(records, row)
        persons = len(np.unique(arrays["writer"]))
        schema = dataclasses.replace(schema, unit="writer", units=persons, unit_records=EACH)
    np.savez(path, **arrays)  # type: ignore[arg-type]
    Path(f"{path}.limbeck.toml").write_text(toml(schema))
    return path


def writers(records: Records, row: str) -> np.ndarray:
    """Ten records each, in a random order; of one class where `row` is 'alike'."""
    random = np.random.default_rng(0).permutation(len(records))
    order = random if row == "any" else random[np.argsort(records.y[random], kind="stable")]
    found = np.empty(len(records), dtype=np.int64)
    found[order] = np.arange(len(records)) // EACH
    return found if row == "any" else found * 10 + records.y


def toml(schema: Schema) -> str:
    values = {key: value for key, value in schema.to_dict().items() if value not in (None, ())}
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def score(row: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as scratch:
        data, release = write(Path(scratch), row), Path(scratch) / "release"
        made = limbeck("condense", str(data), *METHOD, "--out", str(release), "--ledger", f"{scratch}/l.sqlite")
        scores = limbeck("evaluate", str(release), *SCORED)
        certificate = read_certificate(release)
    return {
        "command": f"python -m benchmarks.persons {row}",
        "unit": certificate.unit,
        "units": certificate.public_assumptions.privacy_units,
        "unit_records": certificate.public_assumptions.unit_records,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "condense_seconds": made["seconds"],
        "accuracy": scores["accuracy"],
        "versions": dict(certificate.versions),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help="default: all")
    for row in parser.parse_args().rows or ROWS:
        result = score(row)
        (RESULTS / f"persons-{row}.json").write_text(json.dumps(result, indent=2) + "\n")
        print(row, result["accuracy"], flush=True)


if __name__ == "__main__":
    main()
