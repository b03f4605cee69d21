"""demo, condense, resume, plan, methods: everything that makes a set."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import (
    Data,
    Delta,
    Epsilon,
    Json,
    Label,
    LedgerPath,
    MethodName,
    PerClass,
    Root,
    SchemaPath,
    Set,
    epsilon_value,
    settings_from,
)
from limbeck.cli.output import Stopped, emit, reporter, table
from limbeck.data.memory import out_of_memory, ran_out
from limbeck.privacy.queries import finite_or_word

if TYPE_CHECKING:
    from limbeck.runs.condense import Outcome

Out = Annotated[Path, typer.Option("--out", help="Where the set goes: a folder that is empty or not there yet.")]
InsecureSeed = Annotated[
    int | None,
    typer.Option(
        "--insecure-seed", help="For tests only: predictable noise. The release is stamped as not releasable."
    ),
]
Device = Annotated[str, typer.Option("--device", help="Where to compute: cpu, cuda, cuda:1 ...")]


def register(app: typer.Typer) -> None:
    app.command()(demo)
    app.command()(condense)
    app.command()(resume)
    app.command()(plan)
    app.command()(methods)


def condense(
    data: Data,
    out: Out,
    method: MethodName = "elixir",
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    settings: Set = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    device: Device = "cpu",
    insecure_seed: InsecureSeed = None,
    as_json: Json = False,
) -> None:
    """Turn a private data set into a small synthetic one. Its epsilon is booked first; it can be stopped and resumed."""
    from limbeck.runs import condense as work

    request = work.Request(
        data=data,
        schema=_text(schema),
        label=label,
        root=_text(root or _environment_root()),
        ledger=_text(ledger),
        insecure_seed=insecure_seed,
        device=device,
    )
    plan, source = work.plan_for(request, method, settings_from(settings, per_class), epsilon_value(epsilon), delta)
    ready(source)
    with stoppable(out), reporter() as shown:
        shown.say(
            f"{plan.method} on {plan.dataset}: epsilon {finite_or_word(plan.price.epsilon)}, delta {delta:g}, "
            f"{plan.price.adjacency}. You may stop it with Ctrl-C and go on later."
        )
        outcome = work.condense(request, plan, source, out, shown)
    _emit_outcome(outcome, as_json)


def resume(
    run: Annotated[Path, typer.Argument(help="The folder of an interrupted run.")],
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Go on with a run that was stopped or broke off. Nothing is paid twice."""
    from limbeck.runs import condense as work

    with stoppable(run), reporter() as shown:
        outcome = work.resume(run, shown, ledger)
    _emit_outcome(outcome, as_json)


@contextlib.contextmanager
def stoppable(run: Path) -> Iterator[None]:
    """Turn Ctrl-C into a sentence that tells how to go on."""
    from limbeck.release.destination import is_unfinished, resume_command

    try:
        yield
    except KeyboardInterrupt:
        if not is_unfinished(run):
            raise Stopped("Stopped; nothing was booked.") from None
        command = resume_command(run)
        raise Stopped(f"Stopped; what was answered so far is kept. Go on with: {command}", command) from None
    except (MemoryError, RuntimeError, OSError) as error:
        if not ran_out(error):
            raise
        raise out_of_memory("for this run", resume_command(run) if is_unfinished(run) else None) from None


def _emit_outcome(outcome: Outcome, as_json: bool) -> None:
    release, plan = outcome.release, outcome.plan
    values = {
        "release": str(release),
        "dataset": plan.dataset,
        "method": plan.method,
        "epsilon": finite_or_word(plan.price.epsilon),
        "delta": plan.price.delta,
        "adjacency": plan.price.adjacency,
        "releasable": outcome.releasable,
        "seconds": outcome.seconds,
        "ledger_created": outcome.ledger_created,
    }
    lines = [
        f"release   {release}",
        f"epsilon   {finite_or_word(plan.price.epsilon)} (delta {plan.price.delta:g}, {plan.price.adjacency})",
        f"seconds   {outcome.seconds:.1f}",
        f"report    {release / 'report.html'}",
    ]
    if not outcome.releasable:
        lines.append("NOT RELEASABLE: this set is not private. Never share it.")
    emit(as_json, values, lines)


def plan(
    data: Data,
    method: MethodName = "elixir",
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    settings: Set = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Show what a run would ask and what it would cost. Reads no record, books nothing."""
    from limbeck.methods import method_named
    from limbeck.privacy.calibration import calibrate
    from limbeck.runs.condense import Request, plan_for

    request = Request(data=data, schema=_text(schema), label=label, root=_text(root or _environment_root()))
    chosen, target = settings_from(settings, per_class), epsilon_value(epsilon)
    drawn, source = plan_for(request, method, chosen, target, delta)
    queries = [query.to_dict() for query in drawn.queries]
    values: dict[str, Any] = {
        **drawn.price.to_dict(),
        "dataset": drawn.dataset,
        "method": drawn.method,
        "settings": drawn.settings,
        "queries": queries,
        "noise_multiplier": drawn.queries[0].noise_multiplier,
    }
    made = method_named(method, chosen).resolved(source.schema, target)
    if target is not None and made.fixed_noise is None:
        base = calibrate(lambda noise: made.queries(source.schema, noise), target, delta, "rdp")
        values["noise_multiplier_rdp"] = made.queries(source.schema, base)[0].noise_multiplier
    for query, share in zip(queries, budget_shares(queries), strict=True):
        query["share"] = share
    rows = [("query", "map", "clip", "noise", "rate", "count", "share of the budget")] + [
        (
            q["label"],
            q["map"],
            f"{q['clip']}"[:8],
            f"{q['noise_multiplier']:g}",
            f"{_chance(q):.6g}",
            q["count"],
            f"{q['share']:.1%}",
        )
        for q in queries
    ]
    lines = [
        f"{drawn.method} on {drawn.dataset}: epsilon {values['epsilon']}, delta {delta:g}, {drawn.price.adjacency}",
        f"PLD {finite_or_word(drawn.price.epsilon_pld)}, RDP {finite_or_word(drawn.price.epsilon_rdp)}",
        *table(rows),
    ]
    if "noise_multiplier_rdp" in values:
        lines.append(
            f"noise of '{queries[0]['label']}' {values['noise_multiplier']:g}; by RDP alone, as in the papers, "
            f"{values['noise_multiplier_rdp']:g}"
        )
    emit(as_json, values, lines)


def budget_shares(queries: list[dict[str, Any]]) -> list[float]:
    """About how much of the price each query makes up: squares of rate / noise add up over Gaussian answers."""
    weights = [
        q["count"] * (_chance(q) / q["noise_multiplier"]) ** 2 if q["noise_multiplier"] else float("inf")
        for q in queries
    ]
    total = sum(weights)
    return [1 / len(weights) if total == float("inf") else weight / total for weight in weights]


def _chance(query: dict[str, Any]) -> float:
    """The chance that one record has a part in one draw of an answer."""
    if query["kind"] == "teacher_gradient":
        return 1 / float(query["teachers"])
    return float(max(query.get("rate", [1.0])))


def methods(as_json: Json = False) -> None:
    """List the methods: papers, needs and settings."""
    from limbeck.methods import METHODS

    found = [
        {
            "name": kind.name,
            "title": kind.title,
            "paper": kind.paper,
            "needs": kind.needs,
            "private": kind.private,
            "makes": kind.makes,
            "defaults": {field.name: field.default for field in dataclasses.fields(kind)},
        }
        for kind in METHODS.values()
    ]
    lines: list[str] = []
    for entry in found:
        defaults = entry["defaults"]
        assert isinstance(defaults, dict)
        lines += [
            f"{entry['name']}: {entry['title']}",
            f"  paper     {entry['paper']}",
            f"  needs     {entry['needs']}",
            "  settings  " + ", ".join(f"{key}={value}" for key, value in defaults.items()),
        ]
    emit(as_json, {"methods": found}, lines)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where the demonstration goes.")] = Path("limbeck-demo"),
    as_json: Json = False,
) -> None:
    """Try everything on digits that come with the package. Takes about a minute."""
    from limbeck.experiments.demo import run_demo

    with reporter() as shown:
        result = run_demo(out, shown)
    lines = [
        f"epsilon   {result['epsilon']} (delta {result['delta']:g}, {result['adjacency']})",
        *(
            f"accuracy  {name}: {score['mean']:.1f} +- {score['std']:.1f} %"
            for name, score in result["accuracy"].items()
        ),
        f"release   {result['release']}",
        f"pictures  {result['pictures']}",
        f"report    {result['report']}",
    ]
    emit(as_json, result, lines)


def _environment_root() -> str | None:
    return os.environ.get("LIMBECK_DATA")


def _text(path: Path | str | None) -> str | None:
    return None if path is None else str(path)
