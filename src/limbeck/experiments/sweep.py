"""Privacy-utility curves: the same method at many points, each set booked, made and scored like any other.

    OUT/sweep.json                        the specification and everything measured so far
    OUT/curve.png                         accuracy against the first varied setting
    OUT/points/001/set-1/                 a release of the first point
    OUT/points/001/evaluation-1.json      its scores

A second call with the same arguments goes on where the first one stopped. The folder belongs to one specification.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from limbeck.data import DataSource
from limbeck.errors import BadInput, DataUnreadable, OutputFault, RunConflict
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.compatible import compatible
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.release import evaluate_release
from limbeck.evaluate.released_model import evaluate_model
from limbeck.experiments.sweep_plan import Cost, Job, Sweep, plan_jobs, require_budget
from limbeck.files import as_json, write_atomic
from limbeck.methods import METHODS
from limbeck.privacy.numbers import finite_or_word
from limbeck.progress import Reporter
from limbeck.release.certificate import NAME as CERTIFICATE
from limbeck.release.destination import is_unfinished, require_outside
from limbeck.release.model import is_model
from limbeck.report.sweep_figure import Line, draw_curve
from limbeck.runs.condense import condense
from limbeck.runs.record import RunRecord
from limbeck.runs.request import Request
from limbeck.runs.resume import resume
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import may_exist
from limbeck.vault.ledger.commands import naming

FORMAT = 1
NAME = "sweep.json"


def run_sweep(
    sweep: Sweep, request: Request, out: Path, reporter: Reporter, only_price: bool = False
) -> dict[str, Any]:
    """Price everything, refuse what the budget does not cover, then make and score what is missing.

    Guarantee: no record is read and nothing is booked unless the budget covers all sets that are still to be made.
    """
    spec = _specification(sweep, request)
    _claim(out, spec)
    test = replace(request.data, data=sweep.test, part=None).source("test")
    jobs, source = plan_jobs(sweep, request.data, out)
    _check_scoring(sweep, source, test)
    for needed in () if only_price else (source, test):
        needed.prepare()  # a set that cannot be had is found before anything is paid
    whole = [(job.release / CERTIFICATE).exists() for job in jobs]
    begun = any(job.release.exists() for job in jobs) and not all(whole)
    with _ledger_to_read(request.options.ledger_path, begun) as ledger:
        unpaid = [job for job in jobs if not _is_paid(job, ledger)]
        price = _price(jobs, unpaid, source.schema.unit)
        reporter.say(
            f"{len(jobs)} sets of {jobs[0].plan.dataset} by {sweep.method}: epsilon {price['epsilon']} in all; still to "
            f"pay: epsilon {price['to_pay']['epsilon']}, delta {price['to_pay']['delta']}"
        )
        if only_price:
            return {"out": str(out), "price": price, "points": [_priced(job) for job in jobs if job.repeat == 1]}
        with naming(request.options.ledger_path):
            require_budget(ledger, unpaid)
    _write(out / NAME, _result(spec, jobs, test))
    created = False
    for number, job in enumerate(jobs, 1):
        reporter.say(f"set {number} of {len(jobs)}: {_named(job.values)}, epsilon {job.epsilon}")
        created |= _make(job, request, source, reporter)
        _score(job, sweep, test, request.options.device, reporter)
        _write(out / NAME, _result(spec, jobs, test))
    result = _result(spec, jobs, test)
    _draw(result, sweep, out / "curve.png")
    return {"out": str(out), "price": price, "ledger_created": created, **result}


def _specification(sweep: Sweep, request: Request) -> dict[str, Any]:
    values = asdict(sweep)
    values["vary"] = [[key, *each] for key, each in sweep.vary.items()]
    values["models"] = None if sweep.models is None else list(sweep.models)
    values["epsilon"] = None if sweep.epsilon is None else finite_or_word(sweep.epsilon)
    return {**values, "data": request.data.data, "ledger": str(request.options.ledger_path.absolute())}


def _claim(out: Path, spec: dict[str, Any]) -> None:
    """Refuse a folder that belongs to something else."""
    require_outside(out)
    path = out / NAME
    if path.exists():
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            same = (kept["format"], kept["specification"]) == (FORMAT, spec)
        except (OSError, ValueError, KeyError, TypeError):
            raise DataUnreadable(f"{path} is damaged; restore it from a backup, or choose another --out.") from None
        if not same:
            raise RunConflict(f"{out} holds a sweep with other arguments; repeat those, or choose another --out.")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunConflict(f"{out} exists and is no sweep; nothing is overwritten. Choose another --out.")


def _check_scoring(sweep: Sweep, source: DataSource, test: DataSource) -> None:
    """Whatever would make a score impossible is said before a set is paid for."""
    if test.where == source.where:
        raise BadInput(f"{test.where} would be trained on and tested on; give other test records by --test.")
    if not compatible(source.schema, test.schema):
        raise BadInput(f"The test records {test.where} have another shape or other classes than {source.where}.")
    protocol = _protocol(sweep)
    if METHODS[sweep.method].makes == "model":
        if sweep.models or sweep.preset or sweep.networks:
            raise BadInput(
                f"Method '{sweep.method}' makes models, which are scored themselves; leave --models, --preset and "
                "--networks out."
            )
        return
    protocol.resolve(test.schema)


def _protocol(sweep: Sweep, seed: int = 0, device: str = "cpu") -> EvaluationProtocol:
    models = None if sweep.models is None else tuple(sweep.models)
    return EvaluationProtocol(models=models, preset=sweep.preset, repeats=sweep.networks, seed=seed, device=device)


@contextlib.contextmanager
def _ledger_to_read(path: Path, begun: bool) -> Iterator[Ledger | None]:
    """The ledger as it is; None where the first booking will make it. A sweep that has begun has its ledger."""
    if not begun and not may_exist(path):
        yield None
        return
    with Ledger.open_to_read(path) as ledger:
        yield ledger


def _is_paid(job: Job, ledger: Ledger | None) -> bool:
    if (job.release / CERTIFICATE).exists():
        return True
    return (
        ledger is not None
        and is_unfinished(job.release)
        and ledger.state(RunRecord.read(job.release).grant) in ("open", "finished")
    )


def _price(jobs: Sequence[Job], unpaid: Sequence[Job], unit: str) -> dict[str, Any]:
    return {
        **Cost.of(jobs).to_dict(),
        "adjacency": jobs[0].plan.price.adjacency,
        "unit": unit,
        "to_pay": Cost.of(unpaid).to_dict(),
    }


def _make(job: Job, request: Request, source: DataSource, reporter: Reporter) -> bool:
    """Make the set unless it is there; True if its booking made the ledger."""
    if (job.release / CERTIFICATE).exists():
        return False
    if is_unfinished(job.release):
        return resume(job.release, reporter).ledger_created
    return condense(request, job.plan, source, job.release, reporter).ledger_created


def _score(job: Job, sweep: Sweep, test: DataSource, device: str, reporter: Reporter) -> None:
    if job.evaluation.exists():
        return
    if is_model(job.release):
        scores = evaluate_model(job.release, test, device)
    else:
        seed = 1000 * (job.repeat - 1)  # so that no two sets are scored by the same networks
        scores = evaluate_release(job.release, test, _protocol(sweep, seed, device), reporter)
    _write(job.evaluation, replace(scores, release=job.release.name).to_dict())


def _result(spec: dict[str, Any], jobs: Sequence[Job], test: DataSource) -> dict[str, Any]:
    """Everything measured so far, point by point."""
    points = []
    for _, some in itertools.groupby(jobs, key=lambda job: job.values):
        sets = list(some)
        done = [_evaluation(job.evaluation) for job in sets if job.evaluation.exists()]
        points.append({**_priced(sets[0]), "sets": len(done), "accuracy": _summary(done)})
    return {
        "format": FORMAT,
        "specification": spec,
        "points": points,
        "test": test.where,
        **Provenance.of(test=test).to_dict(),
    }


def _priced(job: Job) -> dict[str, Any]:
    return {
        "values": dict(job.values),
        "epsilon": job.epsilon,
        "delta": job.plan.price.delta,
        "noise_multiplier": job.plan.queries[0].noise_multiplier,
    }


def _evaluation(path: Path) -> Evaluation:
    return Evaluation.from_dict(json.loads(path.read_text(encoding="utf-8")))


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


def _write(path: Path, values: dict[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFault(f"The folder {path.parent} cannot be made: {error.strerror}.") from None
    write_atomic(path, as_json(values))
