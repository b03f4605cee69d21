"""The newcomer's path: condense the embedded digits at epsilon 1, evaluate the set, show it. No download, a minute."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from limbeck.errors import RunConflict
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.release import evaluate_release
from limbeck.files import as_json, write_atomic
from limbeck.privacy.numbers import finite_or_word
from limbeck.progress import Reporter
from limbeck.release.destination import require_outside
from limbeck.report.gather import Sources, gather
from limbeck.report.page import render
from limbeck.runs.condense import condense
from limbeck.runs.planning import plan_for
from limbeck.runs.request import DataReference, Request, RunOptions

DATA, METHOD, EPSILON, DELTA = "digits", "elixir", 1.0, 1e-5
SETTINGS = {"per_class": 10}
MARK = "limbeck-demo.json"


def run_demo(out: Path, reporter: Reporter) -> dict[str, Any]:
    """Make everything anew in `out`. The demonstration has a ledger of its own: its data is public, its budget a show."""
    require_outside(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not (out / MARK).exists():
        raise RunConflict(f"{out} exists and is no earlier demonstration; choose another folder with --out.")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    write_atomic(out / MARK, as_json({"demo": DATA}))
    data = DataReference(data=DATA)
    (out / "ledger").mkdir()
    plan, source = plan_for(data, METHOD, SETTINGS, EPSILON, DELTA)
    reporter.say(
        f"condensing {source.schema.records} handwritten digits to {SETTINGS['per_class']} per class at epsilon {EPSILON:g}"
    )
    request = Request(data=data, options=RunOptions(ledger=str(out / "ledger" / "ledger.sqlite")))
    outcome = condense(request, plan, source, out / "release", reporter)
    reporter.say("training networks on the synthetic set alone, scoring them on real digits")
    test = data.source("test")
    scores = evaluate_release(
        outcome.release, test, EvaluationProtocol(models=("convnet", "mlp"), repeats=3), reporter
    ).to_dict()
    write_atomic(out / "evaluation.json", as_json(scores))
    shown = gather(Sources(run=outcome.release, evaluations=[out / "evaluation.json"]))
    write_atomic(out / "report.html", render(shown).encode())
    return {
        "release": str(outcome.release),
        "report": str(out / "report.html"),
        "pictures": str(outcome.release / "grid.png"),
        "epsilon": finite_or_word(plan.price.epsilon),
        "delta": plan.price.delta,
        "adjacency": plan.price.adjacency,
        "seconds": outcome.seconds,
        "accuracy": scores["accuracy"],
        "majority_rate": scores["majority_rate"],
    }
