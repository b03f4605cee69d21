"""From command to release: LDPDC on MNIST, the time to plan, and what the ledger and its journal take of an NDPDC run.

python -m benchmarks.release_time [--iterations 20]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limbeck.privacy import accountants
from limbeck.progress import Silent
from limbeck.runs.condense import condense
from limbeck.runs.planning import plan_for
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.vault.ledger import Ledger

RESULT = Path(__file__).parent / "results" / "release_time.json"


def command_seconds(*words: str) -> float:
    """Wall time of a whole `limbeck` command in a process of its own, imports included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "limbeck", *words], check=True, capture_output=True)
    return time.perf_counter() - start


def timed(calls: list[float], function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*positional: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*positional, **named)
        finally:
            calls.append(time.perf_counter() - start)

    return wrapper


def planning_seconds(method: str) -> float:
    """Calibration and price alone, cold caches, imports done: what planning itself takes."""
    accountants.epsilon_pld.cache_clear()
    accountants.epsilon_rdp.cache_clear()
    start = time.perf_counter()
    plan_for(DataReference(data="mnist"), method, {}, 1.0, 1e-5)
    return round(time.perf_counter() - start, 2)


def ledger_share(folder: Path, iterations: int) -> dict[str, float]:
    """Seconds inside the ledger's calls over seconds of the whole run, NDPDC at the paper's size."""
    calls: list[float] = []
    kept = {name: getattr(Ledger, name) for name in ("book", "store", "fetch", "forget", "finish", "drawn", "grant")}
    for name, function in kept.items():
        setattr(Ledger, name, timed(calls, function))
    try:
        request = Request(data=DataReference(data="mnist"), options=RunOptions(ledger=str(folder / "share.sqlite")))
        plan, source = plan_for(request.data, "ndpdc", {"sigma": 1.0, "I": iterations}, None, 1e-5)
        start = time.perf_counter()
        condense(request, plan, source, folder / "ndpdc", Silent())
        whole = time.perf_counter() - start
    finally:
        for name, function in kept.items():
            setattr(Ledger, name, function)
    return {
        "run_seconds": round(whole, 3),
        "ledger_seconds": round(sum(calls), 4),
        "share": round(sum(calls) / whole, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=20)
    iterations = parser.parse_args().iterations
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = ("--ledger", str(folder / "ledger.sqlite"))
        release = ("condense", "mnist", "--method", "ldpdc", "--epsilon", "1", "--per-class", "50")
        result = {
            "command": f"python -m benchmarks.release_time --iterations {iterations}",
            "ldpdc_mnist_command_to_release_seconds": round(
                command_seconds(*release, "--out", str(folder / "ldpdc"), *ledger), 2
            ),
            "plan_ldpdc_mnist_seconds": round(
                command_seconds("plan", "mnist", "--method", "ldpdc", "--epsilon", "1"), 2
            ),
            "plan_ndpdc_mnist_seconds": round(
                command_seconds("plan", "mnist", "--method", "ndpdc", "--epsilon", "1"), 2
            ),
            "planning_alone_seconds": {name: planning_seconds(name) for name in ("ldpdc", "ndpdc")},
            "ledger_in_ndpdc": ledger_share(folder, iterations),
        }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
