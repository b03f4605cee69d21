"""A wide, long table end to end: how many seconds of CPU `limbeck condense` takes, and how much memory at its peak.

    python -m benchmarks.wide_table                            100 columns, 1,000,000 rows, as Parquet
    python -m benchmarks.wide_table --format csv --rows 100000
    python -m benchmarks.wide_table --set rows=100             and a small set in place of a whole table
    python -m benchmarks.wide_table --draw                     all results there are, as docs/images/wide-table.png

The table is generated: whole numbers, decimals, long tails, dates, categories of 2 to 12 values and ordered ones, a tenth of the
columns with gaps, all of them bound to four hidden causes and to the label. Results go to results/wide-table-NAME.json. Seconds
are those of CPU, of one thread unless --threads says more, and the peak is that of the whole command.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pc
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent / "results"
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "wide-table.png"
CAUSES = 4
AT_ONCE = 100_000  # rows that are made at a time
KINDS = ("whole", "decimal", "tail", "date", "pair", "category", "ordered", "yes-no", "many", "spike")
CLASSES = ("no", "yes")
Entries = dict[str, Any]
EPOCH = np.datetime64("2020-01-01")


def column_of(place: int) -> Entries:
    """What the schema says about a column."""
    kind = KINDS[place % len(KINDS)]
    entries: Entries = {"name": f"{kind}-{place}"}
    if kind in ("whole", "spike"):
        entries |= {"low": 0, "high": 100 if kind == "whole" else 50_000, "integer": True}
    elif kind == "decimal":
        entries |= {"low": -5, "high": 5, "digits": 2}
    elif kind == "tail":
        entries |= {"low": 0, "high": 1e6}
    elif kind == "date":
        entries |= {"kind": "date", "low": "2020-01-01", "high": "2024-12-31"}
    else:
        count = {"pair": 2, "yes-no": 2, "category": 5, "ordered": 6, "many": 12}[kind]
        entries |= {"categories": [f"{kind[0]}{rank}" for rank in range(count)], "ordinal": kind == "ordered"}
    if place % 10 == (place // 10) % 10:
        entries["missing"] = True
    return entries


def values_of(column: Entries, cause: np.ndarray, rng: np.random.Generator) -> pa.Array:
    """A column of the table, bound to a hidden cause."""
    hidden = 0.6 * cause + 0.8 * rng.standard_normal(len(cause))
    kind = str(column["name"]).split("-")[0]
    if kind == "whole":
        made = pa.array(np.clip(40 + 15 * hidden, 0, 100).astype(np.int64))
    elif kind == "spike":
        made = pa.array(np.where(hidden < 1, 0, np.clip(5000 * hidden, 0, 50_000)).astype(np.int64))
    elif kind == "decimal":
        made = pa.array(np.clip(hidden, -5, 5).round(2))
    elif kind == "tail":
        made = pa.array(np.minimum(np.exp(5 + 1.5 * hidden), 1e6).round(4))
    elif kind == "date":
        made = pa.array(EPOCH + np.clip(900 + 300 * hidden, 0, 1826).astype("timedelta64[D]"))
    else:
        categories = column["categories"]
        rank = np.clip((hidden + 2) / 4 * len(categories), 0, len(categories) - 1).astype(np.int32)
        made = pa.DictionaryArray.from_arrays(pa.array(rank), pa.array(categories)).cast(pa.string())
    if column.get("missing"):
        made = pa.compute.if_else(pa.array(rng.random(len(cause)) < 0.1), pa.scalar(None, made.type), made)
    return made


def tables(columns: list[Entries], rows: int) -> Iterator[pa.Table]:
    """The table in pieces."""
    rng = np.random.default_rng(0)
    for begin in range(0, rows, AT_ONCE):
        causes = rng.standard_normal((min(AT_ONCE, rows - begin), CAUSES))
        label = np.where(causes @ [1.0, 0.7, 0.0, -0.5] + 0.5 * rng.standard_normal(len(causes)) > 0.8, *CLASSES[::-1])
        arrays = {
            str(column["name"]): values_of(column, causes[:, place % CAUSES], rng)
            for place, column in enumerate(columns)
        }
        yield pa.table({**arrays, "label": pa.array(label)})


def write(path: Path, columns: list[Entries], rows: int) -> None:
    writer = None
    for piece in tables(columns, rows):
        if writer is None:
            kind = pc.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
            writer = kind(path, piece.schema)
        writer.write_table(piece)
    assert writer is not None
    writer.close()


def schema_text(columns: list[Entries], rows: int) -> str:
    """The schema as TOML."""
    width = 0
    for column in columns:
        is_hot = "categories" in column and not column["ordinal"]
        width += (len(column["categories"]) if is_hot else 1) + bool(column.get("missing"))
    head = {
        "name": "wide",
        "classes": list(CLASSES),
        "label": "label",
        "records": rows,
        "shape": [width],
        "low": -1,
        "high": 1,
    }
    parts = [_entries({**head, "augmentation": []}), *(f"[[columns]]\n{_entries(column)}" for column in columns)]
    return "\n".join(parts)


def _entries(values: Entries) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=100)
    options.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--draw", action="store_true")
    options.add_argument("--set", dest="settings", action="append", default=[])
    chosen = options.parse_args()
    if chosen.draw:
        draw()
        return
    columns = [column_of(place) for place in range(chosen.columns)]
    with tempfile.TemporaryDirectory() as folder:
        path, schema = Path(folder) / f"wide.{chosen.format}", Path(folder) / "wide.toml"
        write(path, columns, chosen.rows)
        schema.write_text(schema_text(columns, chosen.rows))
        command = [
            sys.executable, "-m", "limbeck", "condense", str(path), "--schema", str(schema), "--epsilon", "1",
            "--delta", str(0.1 / chosen.rows), "--out", str(Path(folder) / "release"),
            "--ledger", str(Path(folder) / "ledger.sqlite"), "--json",
            *(word for each in chosen.settings for word in ("--set", each)),
        ]  # fmt: skip
        began = time.monotonic()
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": str(chosen.threads)}
        )
        took, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    result = {
        "command": " ".join(["python -m benchmarks.wide_table", *sys.argv[1:]]),
        "rows": chosen.rows, "columns": chosen.columns, "format": chosen.format, "threads": chosen.threads,
        "cpu_seconds": round(used.ru_utime + used.ru_stime), "peak_megabytes": round(used.ru_maxrss / 1024),
    }  # fmt: skip
    name = f"{chosen.columns}x{chosen.rows}-{chosen.format}" + "".join(
        f"-{each.replace('=', '-')}" for each in chosen.settings
    )
    (RESULTS / f"wide-table-{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({**result, "seconds": round(took)}, indent=1))


def draw() -> None:
    """Seconds and memory against the cells of the table, a line for each number of columns; a dashed line is the aim."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("wide-table-*-parquet.json"))]
    figure, panels = plt.subplots(1, 2, figsize=(7.5, 2.9), layout="constrained")
    for axes, entry, limit, words in (
        (panels[0], "cpu_seconds", 600, "seconds of CPU"),
        (panels[1], "peak_megabytes", 3072, "megabytes at the peak"),
    ):
        for count, colour in zip(
            sorted({each["columns"] for each in results}), ("#4a6a8a", "#b3541e", "#6b8a4a"), strict=False
        ):
            line = sorted((each["rows"] * count, each[entry]) for each in results if each["columns"] == count)
            axes.plot(*zip(*line, strict=True), "o-", color=colour, label=f"{count} columns")
        axes.axhline(limit, color="#888888", linestyle="--", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_ylim(0, 1.1 * max(limit, *(each[entry] for each in results)))
        axes.set_xlabel("cells: rows x columns")
        axes.set_ylabel(words)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
