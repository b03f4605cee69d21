"""Carry out one run of a table: make its sets, score them, and say everything that is needed to judge the figure.

The benchmark sets are public, so each set has a throw-away ledger beside it. A set is kept under the digest of how it was made: a
bench that was stopped goes on with it, and two tables that use the same sets share them.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import limbeck
from benchmarks.papers.scales import Scoring, scoring_at, settings_at
from benchmarks.papers.spec import AVERAGE, REAL, Run, Table
from limbeck.evaluate.accuracy import DIGITS, Accuracy
from limbeck.evaluate.models import choose
from limbeck.evaluate.protocol import Scoring as ModelScoring
from limbeck.evaluate.released_model import evaluate_model
from limbeck.evaluate.sets import real_subset, score_set
from limbeck.methods import METHODS
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.progress import Reporter
from limbeck.release.destination import is_unfinished
from limbeck.release.reader import read_release
from limbeck.release.statement import read_certificate
from limbeck.runs.condense import condense
from limbeck.runs.planning import plan_for
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.runs.resume import resume
from limbeck.vault.ledger import Ledger

FORMAT = 1
DELTA = 1e-5
Scores = dict[str, list[float]]


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Where sets are kept, where the named data is, and on which device to compute."""

    sets: Path
    root: str | None = None
    device: str = "cpu"
    again: bool = False


def exists(run: Run) -> bool:
    """Whether there is a way to make this run's set."""
    return run.method == REAL or run.method in METHODS


def carry_out(table: Table, run: Run, scale: str, shop: Workshop, reporter: Reporter) -> dict[str, Any]:
    """The result of one run at one scale, as it is kept."""
    scoring = scoring_at(run, scale)
    began, made_in = time.monotonic(), 0.0
    scores: Scores = {}
    statements: list[dict[str, Any]] = []
    for number in range(scoring.sets):
        reporter.say(f"{table.name} {run.name} at scale {scale}: set {number + 1} of {scoring.sets}")
        found, statement, seconds = _one_set(run, scale, number, scoring, shop, reporter)
        made_in += seconds
        statements.append(statement)
        for model, runs in found.items():
            scores.setdefault(model, []).extend(runs)
    return {
        "format": FORMAT,
        "table": table.name,
        "run": run.name,
        "scale": scale,
        "commands": commands(table, run, scale),
        "data": run.data,
        "method": run.method,
        "delta": DELTA,
        **statements[0],
        "preset": scoring.preset.name,
        "sets": scoring.sets,
        "networks": scoring.networks,
        "accuracy": summary(scores, run.models if run.protocol == "gs-wgan" else ()),
        "condense_seconds": round(made_in, 1) or None,  # none where every set was kept from before
        "evaluate_seconds": round(time.monotonic() - began - made_in, 1),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"limbeck": limbeck.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def _one_set(
    run: Run, scale: str, number: int, scoring: Scoring, shop: Workshop, reporter: Reporter
) -> tuple[Scores, dict[str, Any], float]:
    """Scores by model, what the certificate says, and the seconds that making the set took."""
    data = DataReference(data=run.data, root=shop.root)
    test, settings = data.source("test"), settings_at(run, scale)
    if run.method == REAL:
        real = real_subset(data.source(), settings["per_class"], number)
        x, y = real.x, real.y
        statement = {"settings": settings, "epsilon": "infinity", "adjacency": None, "accounting": None}
        seconds = 0.0
    else:
        release, seconds = _release(run, settings, number, shop, reporter)
        if METHODS[run.method].makes == "model":
            accuracy = evaluate_model(release, test, shop.device).accuracy or {}
            return {"model": list(accuracy["model"].runs)}, _statement(release), seconds
        found = read_release(release)
        x, y = torch.from_numpy(found.x), torch.from_numpy(found.y)
        statement = _statement(release)
    protocol = ModelScoring(
        choices=tuple(choose(run.models, test.schema.shape)),
        preset=scoring.preset.fitted(test.schema),
        repeats=scoring.networks,
        seed=1000 * number,
        device=shop.device,
    )
    scores = score_set(x, y, test, protocol, reporter)
    return {model: list(score.runs) for model, score in scores.items()}, statement, seconds


def _release(
    run: Run, settings: Mapping[str, Any], number: int, shop: Workshop, reporter: Reporter
) -> tuple[Path, float]:
    """The release of a run's set: kept, taken up again, or made now."""
    data = DataReference(data=run.data, root=shop.root)
    plan, source = plan_for(data, run.method, settings, run.epsilon, DELTA)
    folder = shop.sets / recipe_digest(run, plan, number)
    release = folder / "release"
    if shop.again:
        shutil.rmtree(folder, ignore_errors=True)
    if is_unfinished(release):
        return release, resume(release, reporter).seconds
    if (release / "certificate.json").exists():
        reporter.say(f"using the set that is kept in {release}")
        return release, 0.0
    options = RunOptions(device=shop.device, ledger=str(folder / "ledger.sqlite"))
    folder.mkdir(parents=True, exist_ok=True)
    if not plan.is_private:
        with Ledger.open(options.ledger_path) as ledger:
            ledger.set_budget(plan.dataset, math.inf, DELTA)
    return release, condense(Request(data=data, options=options), plan, source, release, reporter).seconds


def recipe_digest(run: Run, plan: Plan, number: int) -> str:
    """The name under which a set is kept: the same for every table that makes it in the same way.

    The plan's settings count, not the row's: they hold the defaults, so that a set is made anew where a default has changed.
    """
    recipe = [limbeck.__version__, run.data, run.method, plan.settings, str(run.epsilon), DELTA, number]
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:24]


def _statement(release: Path) -> dict[str, Any]:
    certificate = read_certificate(release)
    return {
        "settings": certificate.settings,
        "epsilon": finite_or_word(certificate.epsilon),
        "adjacency": certificate.adjacency,
        "accounting": certificate.accounting.to_dict(),
    }


def summary(scores: Mapping[str, Sequence[float]], averaged: Sequence[str] = ()) -> dict[str, Any]:
    """Mean and standard deviation over all fits of a model, and the mean over the `averaged` models if none is missing."""
    found = {model: Accuracy.of(runs).to_dict() for model, runs in scores.items()}
    if averaged and set(averaged) <= set(scores):
        mean = statistics.fmean(statistics.fmean(scores[model]) for model in averaged)
        found[AVERAGE] = {"mean": round(mean, DIGITS), "std": None, "runs": []}
    return found


def commands(table: Table, run: Run, scale: str) -> list[str]:
    """What measures this figure anew, and the plain command that makes one of its sets."""
    lines = [f"python -m benchmarks.papers measure --table {table.name} --rows {run.name} --scale {scale}"]
    if run.method != REAL:
        words = [f"limbeck condense {run.data} --method {run.method}"]
        words += [] if run.epsilon is None else [f"--epsilon {'inf' if math.isinf(run.epsilon) else run.epsilon}"]
        words += [f"--set {key}={value}" for key, value in settings_at(run, scale).items()]
        lines.append(" ".join([*words, "--out RELEASE"]))
    return lines
