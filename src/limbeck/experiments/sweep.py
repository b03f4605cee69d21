"""Privacy-utility curves: the same method at many points, each set booked, made and scored like any other.

    OUT/sweep.json                        the specification and everything measured so far
    OUT/curve.png                         accuracy against the first varied setting
    OUT/points/001/set-1/                 a release of the first point
    OUT/points/001/evaluation-1.json      its scores

A second call with the same arguments goes on where the first one stopped. The folder belongs to one specification.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.evaluation import Evaluation
from limbeck.experiments.booked_sets import BookedSets, evaluations, seen_size
from limbeck.experiments.jobs import Job
from limbeck.experiments.sweep_plan import Sweep, plan_jobs
from limbeck.files import write_atomic
from limbeck.privacy.numbers import finite_or_word
from limbeck.progress import Reporter
from limbeck.report.sweep_figure import Line, draw_curve
from limbeck.runs.request import Request

NAME = "sweep.json"


def run_sweep(
    sweep: Sweep, request: Request, out: Path, reporter: Reporter, only_price: bool = False
) -> dict[str, Any]:
    """Price everything, refuse what the budget does not cover, then make and score what is missing.

    Guarantee: no record is read and nothing is booked unless the budget covers all sets that are still to be made.
    """
    jobs, source = plan_jobs(sweep, request.data, out)
    sets = BookedSets.of("sweep", out / NAME, sweep, _described(sweep), request, (jobs, source))
    price = sets.price(reporter, only_price)
    if only_price:
        return {"out": str(out), "price": price, "points": [_priced(job) for job in jobs if job.repeat == 1]}
    created = sets.make(lambda: {"points": _points(jobs)}, reporter)
    result = sets.stated({"points": _points(jobs)})
    _draw(result, sweep, out / "curve.png")
    return {"out": str(out), "price": price, "ledger_created": created, **result}


def _described(sweep: Sweep) -> dict[str, Any]:
    values = asdict(sweep)
    values["vary"] = [[key, *each] for key, each in sweep.vary.items()]
    values["models"] = None if sweep.models is None else list(sweep.models)
    values["epsilon"] = None if sweep.epsilon is None else finite_or_word(sweep.epsilon)
    return values


def _points(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Everything measured so far, point by point."""
    points = []
    for _, some in itertools.groupby(jobs, key=lambda job: job.values):
        sets = list(some)
        done = evaluations(sets)
        points.append({**_priced(sets[0]), "sets": len(done), **seen_size(done), "accuracy": _summary(done)})
    return points


def _priced(job: Job) -> dict[str, Any]:
    return {"values": dict(job.values), **job.described()}


def _summary(done: Sequence[Evaluation]) -> dict[str, Any]:
    """Over all fits of all sets of a point: mean, standard deviation and every single accuracy."""
    found: dict[str, list[float]] = {}
    for evaluation in done:
        for model, accuracy in (evaluation.accuracy or {}).items():
            found.setdefault(model, []).extend(accuracy.runs)
    return {model: Accuracy.of(runs).to_dict() for model, runs in found.items()}


def _draw(result: Mapping[str, Any], sweep: Sweep, path: Path) -> None:
    across, *others = list(sweep.vary)
    lines: dict[str, list[tuple[str, float, float]]] = {}
    for point in result["points"]:
        rest = _named({key: point["values"][key] for key in others})
        for model, score in point["accuracy"].items():
            title = ", ".join(word for word in (model, rest) if word)
            lines.setdefault(title, []).append((point["values"][across], score["mean"], score["std"] or 0.0))
    drawn = [Line(title=title, points=tuple(points)) for title, points in lines.items()]
    write_atomic(path, draw_curve(drawn, across, f"{sweep.method}: accuracy on real test records (%)"))


def _named(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())
