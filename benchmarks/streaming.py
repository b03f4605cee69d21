"""Data larger than memory: 10 million pictures of 28 x 28 and a CSV file of 20 million rows, each through several methods.

    python -m benchmarks.streaming                       the full sizes: 9 GB on the disk, half an hour of one core
    python -m benchmarks.streaming --share 0.05          a twentieth of each
    python -m benchmarks.streaming --only csv-mosaic     one run
    python -m benchmarks.streaming --folder FOLDER       records are made there once, and stay for the next time

Kept are the peak of the memory and the CPU seconds of each command, which a busy machine does not change much, and no wall time;
and of a command under a limit of 1 GB of addresses how it ends. The records are made up, so the ledger is a throw-away one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from benchmarks.accuracy import RESULTS

PICTURES, ROWS, AT_ONCE = 10_000_000, 20_000_000, 100_000
COMMON = ("--epsilon", "1", "--delta", "1e-9", "--json")
RUNS: dict[str, tuple[str, ...]] = {
    "pictures-ldpdc": ("--method", "ldpdc", "--per-class", "10"),
    "pictures-dpmerf": ("--method", "dpmerf", "--per-class", "10", "--set", "features=500", "--set", "T=100"),
    "csv-mosaic": ("--method", "mosaic", "--rows", "20000"),
    "csv-dpmerf": ("--method", "dpmerf", "--per-class", "10", "--set", "features=500", "--set", "T=100"),
    "csv-ldpdc": ("--method", "ldpdc", "--per-class", "10"),
    "csv-elixir": ("--method", "elixir", "--per-class", "100"),
    "pictures-limit": ("--method", "ldpdc", "--per-class", "10"),
    "csv-limit": ("--method", "mosaic", "--rows", "20000"),
}
LIMIT = 10**9  # bytes of addresses of the last two, which end in a sentence
# What the system says of the process at its end: of its own memory alone, where wait4 counts that of its parent, too.
CHILD = """
import atexit, os, pathlib
atexit.register(lambda: pathlib.Path(os.environ["STATUS"]).write_text(pathlib.Path("/proc/self/status").read_text()))
from limbeck.cli import main
main()
"""
JOBS, REGIONS = ("clerk", "craft", "driver", "farmer", "nurse", "sales", "teacher", "tech"), ("N", "E", "S", "W")


def make_pictures(folder: Path, count: int) -> Path:
    """x.npy and y.npy: a pattern for each of ten classes, and bytes of noise. Written piece by piece."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    patterns = random.integers(0, 128, (10, 28, 28), dtype=np.uint8)
    with (folder / "x.npy").open("wb") as x, (folder / "y.npy").open("wb") as y:
        for file, shape in ((x, (count, 28, 28)), (y, (count,))):
            head = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, head)
        for start in range(0, count, AT_ONCE):
            size = min(AT_ONCE, count - start)
            labels = random.integers(0, 10, size, dtype=np.uint8)
            noise = np.frombuffer(random.bytes(size * 784), dtype=np.uint8).reshape(size, 28, 28)
            x.write((patterns[labels] + (noise >> 1)).tobytes())
            y.write(labels.tobytes())
    lines = ['name = "made-pictures"', "shape = [1, 28, 28]", f"classes = {list('0123456789')}", f"records = {count}"]
    (folder / "limbeck.toml").write_text("\n".join(lines) + "\n")
    return folder


def make_rows(folder: Path, count: int) -> Path:
    """A CSV file of ten columns and a label, about 60 bytes a row."""
    folder.mkdir(parents=True)
    random, path = np.random.default_rng(1), folder / "rows.csv"
    writer = None
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        piece = _rows(random, size)
        writer = writer or pc.CSVWriter(str(path), piece.schema, write_options=pc.WriteOptions(quoting_style="none"))
        writer.write_table(piece)
    assert writer is not None
    writer.close()
    (folder / "rows.csv.limbeck.toml").write_text(_row_schema(count))
    return path


def _rows(random: np.random.Generator, size: int) -> pa.Table:
    age = random.integers(18, 90, size)
    income = np.round(random.lognormal(10, 0.5, size) + 200 * age, 2)
    label = np.where(income + 3000 * random.normal(size=size) > 35_000, "high", "low")
    return pa.table(
        {
            "age": age,
            "income": income,
            "hours": random.integers(0, 80, size),
            "job": random.choice(JOBS, size),
            "region": random.choice(REGIONS, size),
            "score": np.round(random.normal(50, 15, size), 4),
            "visits": random.poisson(3, size),
            "balance": np.round(random.normal(1000, 800, size), 2),
            "distance": np.round(random.exponential(12, size), 3),
            "weight": np.round(random.normal(75, 12, size), 1),
            "class": label,
        }
    )


def _row_schema(count: int) -> str:
    ranges = {"age": (0, 100), "income": (0, 200_000), "hours": (0, 100), "score": (0, 100), "visits": (0, 50)}
    ranges |= {"balance": (-2000, 5000), "distance": (0, 100), "weight": (30, 150)}
    lines = [
        'name = "made-rows"',
        f"records = {count}",
        'classes = ["low", "high"]',
        'label = "class"',
        "low = -1",
        "high = 1",
    ]
    lines.append(f"shape = [{len(ranges) + len(JOBS) + len(REGIONS)}]")
    for name, (low, high) in ranges.items():
        whole = name in ("age", "hours", "visits")
        lines += [
            "[[columns]]",
            f'name = "{name}"',
            f"low = {low}",
            f"high = {high}",
            f"integer = {str(whole).lower()}",
        ]
    for name, values in (("job", JOBS), ("region", REGIONS)):
        lines += ["[[columns]]", f'name = "{name}"', f"categories = {json.dumps(values)}"]
    return "\n".join(lines) + "\n"


def _peak(status: Path) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return round(int(line.split()[1]) * 1024 / 1e6)


def started(name: str, data: Path, folder: Path, limit: int = resource.RLIM_INFINITY) -> subprocess.Popen[bytes]:
    words = ["condense", str(data), *RUNS[name], *COMMON]
    where = ["--ledger", str(folder / f"{name}.sqlite"), "--out", str(folder / name)]
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *words, *where],
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "STATUS": str(folder / "status")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


def measured(name: str, data: Path, folder: Path) -> dict[str, Any]:
    """One command, with the peak of its memory and its CPU seconds."""
    process = started(name, data, folder)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{name} ended with {os.waitstatus_to_exitcode(status)}: {output.decode()}")
    certificate = json.loads((folder / name / "certificate.json").read_text())
    found = {
        "peak_mb": _peak(folder / "status"),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "answers": sum(query["count"] for query in certificate["queries"]),
        "epsilon": json.loads(output)["epsilon"],
    }
    shutil.rmtree(folder / name)
    return found


def refused(name: str, data: Path, folder: Path) -> dict[str, Any]:
    """The same under a limit that the libraries alone do not fit into: how it ends, and whether anything was booked."""
    process = started(name, data, folder, LIMIT)
    output, _ = process.communicate()
    said = json.loads(output)["error"]["message"] if output else ""
    return {
        "address_limit_mb": LIMIT // 10**6,
        "exit_code": process.returncode,
        "said": said,
        "booked": (folder / f"{name}.sqlite").exists(),
    }


def made(kind: str, folder: Path, count: int) -> Path:
    """The records, which may be there already. What describes them is written last."""
    schema = folder / kind / ("limbeck.toml" if kind == "pictures" else "rows.csv.limbeck.toml")
    if schema.exists() and f"records = {count}\n" in schema.read_text():
        return schema.parent if kind == "pictures" else schema.with_name("rows.csv")
    shutil.rmtree(folder / kind, ignore_errors=True)
    return (make_pictures if kind == "pictures" else make_rows)(folder / kind, count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the full sizes")
    parser.add_argument("--only", choices=RUNS, action="append", help="these runs")
    parser.add_argument("--folder", type=Path, help="where the records are made, and stay; by default they are removed")
    parser.add_argument("--out", type=Path, default=RESULTS / "streaming.json")
    chosen = parser.parse_args()
    count, rows = int(PICTURES * chosen.share), int(ROWS * chosen.share)
    kept: dict[str, Any] = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    with tempfile.TemporaryDirectory(prefix="limbeck-streaming-") as scratch:
        place = chosen.folder or Path(scratch)
        for name in chosen.only or list(RUNS):
            kind = name.split("-")[0]
            records = count if kind == "pictures" else rows
            data = made(kind, place, records)
            size = sum(file.stat().st_size for file in (place / kind).iterdir())
            command = " ".join(["limbeck", "condense", data.name, *RUNS[name], *COMMON])
            found = (refused if name.endswith("-limit") else measured)(name, data, Path(scratch))
            kept[name] = {"records": records, "bytes": size, "command": command, **found}
            kept["machine"] = {"processor": platform.processor() or platform.machine(), "threads": 1}
            kept["versions"] = {name: version(name) for name in ("limbeck", "torch", "numpy", "pyarrow")}
            kept["date"] = time.strftime("%Y-%m-%d")
            chosen.out.write_text(json.dumps(kept, indent=1) + "\n")
            print(name, json.dumps(kept[name]), flush=True)


if __name__ == "__main__":
    main()
