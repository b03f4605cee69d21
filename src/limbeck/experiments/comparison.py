"""Methods beside one another: the same data, budget and models, several sets each, every one booked like any other.

    OUT/compare.json              the specification and everything measured so far
    OUT/compare.md                the same as a table
    OUT/compare.png               accuracy of each method, with the standard deviation over its sets
    OUT/METHOD/set-1/             a release
    OUT/METHOD/evaluation-1.json  its scores

A second call with the same arguments goes on where the first one stopped. The folder belongs to one specification.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.evaluation import Evaluation
from limbeck.experiments.booked_sets import BookedSets, evaluations, seen_size
from limbeck.experiments.comparison_plan import METHOD, Comparison, plan_comparison
from limbeck.experiments.jobs import Job
from limbeck.files import write_atomic
from limbeck.progress import Reporter
from limbeck.report.comparison_figure import draw_bars
from limbeck.report.comparison_table import comparison_page
from limbeck.runs.request import Request

NAME = "compare.json"


def run_comparison(
    comparison: Comparison, request: Request, out: Path, reporter: Reporter, only_price: bool = False
) -> dict[str, Any]:
    """Price everything, refuse what the budget does not cover, then make and score what is missing.

    Guarantee: no record is read and nothing is booked unless the budget covers all sets that are still to be made.
    """
    jobs, source = plan_comparison(comparison, request.data, out)
    described = comparison.described()
    sets = BookedSets.of("comparison", out / NAME, comparison, described, request, (jobs, source))
    price = sets.price(reporter, only_price)
    if only_price:
        return {"out": str(out), "price": price, "methods": [_priced(job) for job in jobs if job.repeat == 1]}

    def figures() -> dict[str, Any]:
        return {"dataset": source.schema.name, "price": price, "methods": _rows(comparison, jobs)}

    created = sets.make(figures, reporter)
    result = sets.stated(figures())
    write_atomic(out / "compare.md", comparison_page(result).encode())
    write_atomic(out / "compare.png", draw_bars(result))
    return {"out": str(out), "ledger_created": created, **result}


def _priced(job: Job) -> dict[str, Any]:
    return {METHOD: job.values[METHOD], "settings": dict(job.plan.settings), **job.described()}


def _rows(comparison: Comparison, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Everything measured so far, method by method."""
    rows = []
    for name in comparison.methods:
        sets = [job for job in jobs if job.values[METHOD] == name]
        done = evaluations(sets)
        rows.append(
            {
                **_priced(sets[0]),
                "sets": len(done),
                "seconds": _seconds(sets),
                **seen_size(done),
                "accuracy": _over_sets(done),
            },
        )
    return rows


def _seconds(jobs: Sequence[Job]) -> float | None:
    """The mean over the sets that were made in one go; None if none was."""
    known = [json.loads(job.seconds.read_text(encoding="utf-8"))["seconds"] for job in jobs if job.seconds.exists()]
    return round(statistics.fmean(known), 3) if known else None


def _over_sets(done: Sequence[Evaluation]) -> dict[str, Mapping[str, Any]]:
    """By model: mean and standard deviation over the sets, of each of which the mean over its fits counts. fits: all of them."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for evaluation in done:
        for model, accuracy in (evaluation.accuracy or {}).items():
            found.setdefault(model, []).append(accuracy.runs)
    return {
        model: {
            **Accuracy.of([statistics.fmean(runs) for runs in fits]).to_dict(),
            "fits": [list(runs) for runs in fits],
        }
        for model, fits in found.items()
    }
