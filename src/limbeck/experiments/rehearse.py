"""A rehearsal: the very same plan on stand-in records that cost nothing, so that choosing needs no budget.

    OUT/rehearsal.json      what was tried, on which stand-in, with accuracies and seconds
    OUT/1-elixir/           a set like the one that a run would release, made of stand-in records

Guarantee: no record of the owner is opened, and the owner's ledger is not written to: the run books in one of its own that
is thrown away. Its noise is predictable, so `limbeck verify` refuses the sets; they carry the name "rehearsal of ...".
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data.stand_in import StandIn, stand_in
from limbeck.errors import RunConflict
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.experiments.scored import scores_of
from limbeck.files import as_json, write_atomic
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.release.destination import require_outside
from limbeck.runs.condense import condense
from limbeck.runs.planning import make_plan, method_for
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.vault.ledger import Ledger

NAME = "rehearsal.json"
SEED = 1  # of noise that is nobody's secret
WHAT = (
    "A rehearsal on stand-in records: it shows how much this plan's noise leaves of data of this shape and size. It is not made "
    "of your records, says nothing about them, is not private and not releasable. How hard your own data is, only a run shows."
)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One plan to rehearse: a method, None for the default, with settings and its epsilon."""

    method: str | None
    settings: Mapping[str, Any]
    epsilon: float | None
    rows: int | None = None

    def plan(self, schema: Schema, delta: float) -> Plan:
        return make_plan(schema, method_for(schema, self.method, self.settings, self.rows), self.epsilon, delta)


def rehearse(
    schema: Schema,
    attempts: Sequence[Attempt],
    delta: float,
    out: Path,
    reporter: Reporter,
    root: Path | None = None,
    protocol: EvaluationProtocol | None = None,
) -> dict[str, Any]:
    """Make and score a set for every attempt. schema: of the owner's data, which are not needed."""
    require_outside(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunConflict(f"{out} exists; nothing is overwritten. Choose another folder with --out.")
    for each in attempts:  # whatever is wrong with one is said before the first is made
        each.plan(schema, delta)
    made = stand_in(schema, SEED, root)
    reporter.say(f"rehearsing on {made.words}; nothing is booked")
    out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    for number, each in enumerate(attempts, 1):
        plan = each.plan(made.train.schema, delta)
        folder = out / f"{number}-{plan.method}"
        reporter.say(f"{number} of {len(attempts)}: {plan.method} at epsilon {finite_or_word(plan.price.epsilon)}")
        found.append({**_tried(plan, made, folder, reporter, protocol), "given": {**each.settings}})
        write_atomic(out / NAME, as_json(_result(found, made)))
    return {"out": str(out), **_result(found, made)}


def _result(found: Sequence[Mapping[str, Any]], made: StandIn) -> dict[str, Any]:
    """The best attempt's figures on top."""
    best = max(found, key=lambda each: -1.0 if each["accuracy"] is None else each["accuracy"])
    return {
        "rehearsal": True,
        "what": WHAT,
        "stand_in": made.words,
        "booked": 0,
        "accuracy": best["accuracy"],
        "seconds": best["seconds"],
        "attempts": list(found),
    }


def _tried(
    plan: Plan, made: StandIn, folder: Path, reporter: Reporter, protocol: EvaluationProtocol | None
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        options = RunOptions(ledger=str(Path(scratch) / "ledger.sqlite"), insecure_seed=SEED)
        with Ledger.open(options.ledger_path):
            pass  # made here, so that nobody is told of a new ledger: it is none of the owner's
        request = Request(data=DataReference(data=None), options=options)
        outcome = condense(request, plan, made.train, folder, reporter)
    began, scores = time.monotonic(), None
    if made.train.schema.has_label:
        scores = scores_of(folder, made.test, protocol or EvaluationProtocol(), reporter)
    means = (
        {} if scores is None or scores.accuracy is None else {name: each.mean for name, each in scores.accuracy.items()}
    )
    known = [mean for mean in means.values() if mean is not None]
    return {
        "method": plan.method,
        "settings": plan.settings,
        "epsilon": finite_or_word(plan.price.epsilon),
        "accuracy": max(known) if known else None,
        "accuracies": means,
        "majority_rate": None if scores is None else scores.majority_rate,
        "seconds": outcome.seconds,
        "evaluate_seconds": round(time.monotonic() - began, 3),
        "folder": str(folder),
        "pictures": str(folder / "grid.png") if (folder / "grid.png").exists() else None,
    }
