"""demo, condense, resume, plan, methods: everything that makes a set."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Annotated, Any

import typer

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
from limbeck.cli.output import emit, reporter, table
from limbeck.plan import Plan
from limbeck.queries import finite_or_word

Out = Annotated[Path, typer.Option("--out", help="The release folder; must not exist or be empty.")]
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
    method: MethodName = "ndpdc",
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
    """Turn a private data set into a small synthetic one."""
    from limbeck import condense as work

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
    with reporter() as shown:
        shown.say(
            f"{plan.method} on {plan.dataset}: epsilon {plan.price.epsilon:g}, delta {delta:g}; stop with Ctrl-C, "
            f"go on with: limbeck resume {out}"
        )
        outcome = work.condense(request, plan, source, out, shown)
    _emit_outcome(outcome.release, outcome.plan, outcome.seconds, outcome.releasable, as_json)


def resume(
    run: Annotated[Path, typer.Argument(help="The folder of an interrupted run.")],
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Take up an interrupted run. It pays nothing twice."""
    from limbeck import condense as work

    with reporter() as shown:
        outcome = work.resume(run, shown, ledger)
    _emit_outcome(outcome.release, outcome.plan, outcome.seconds, outcome.releasable, as_json)


def _emit_outcome(release: Path, plan: Plan, seconds: float, releasable: bool, as_json: bool) -> None:
    values = {
        "release": str(release),
        "dataset": plan.dataset,
        "method": plan.method,
        "epsilon": finite_or_word(plan.price.epsilon),
        "delta": plan.price.delta,
        "adjacency": plan.price.adjacency,
        "releasable": releasable,
        "seconds": seconds,
    }
    lines = [
        f"release   {release}",
        f"epsilon   {finite_or_word(plan.price.epsilon)} (delta {plan.price.delta:g}, {plan.price.adjacency})",
        f"seconds   {seconds:.1f}",
        f"report    {release / 'report.html'}",
    ]
    if not releasable:
        lines.append("NOT RELEASABLE: this set is not private. Never share it.")
    emit(as_json, values, lines)


def plan(
    data: Data,
    method: MethodName = "ndpdc",
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    settings: Set = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Show what a run would ask and cost. Reads no record, books nothing."""
    from limbeck.accounting import calibrate
    from limbeck.condense import Request, plan_for
    from limbeck.methods import method_named

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
    made = method_named(method, chosen)
    if target is not None and made.fixed_noise is None:
        values["noise_multiplier_rdp"] = calibrate(
            lambda noise: made.queries(source.schema, noise), target, delta, "rdp"
        )
    rows = [("query", "map", "clip", "noise", "rate", "count")] + [
        (q["label"], q["map"], f"{q['clip']}"[:8], f"{q['noise_multiplier']:g}", f"{max(q['rate']):.6g}", q["count"])
        for q in queries
    ]
    lines = [
        f"{drawn.method} on {drawn.dataset}: epsilon {values['epsilon']}, delta {delta:g}, {drawn.price.adjacency}",
        f"PLD {finite_or_word(drawn.price.epsilon_pld)}, RDP {finite_or_word(drawn.price.epsilon_rdp)}",
        *table(rows),
    ]
    emit(as_json, values, lines)


def methods(as_json: Json = False) -> None:
    """List the methods with their papers, needs and settings."""
    from limbeck.methods import METHODS

    found = [
        {
            "name": kind.name,
            "title": kind.title,
            "paper": kind.paper,
            "needs": kind.needs,
            "private": kind.private,
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
    """Condense the embedded digits at epsilon 1, evaluate the set and show it. Takes a minute or two."""
    from limbeck.demo import run_demo

    with reporter() as shown:
        result = run_demo(out, shown)
    lines = [
        f"epsilon   {result['epsilon']} (delta {result['delta']:g})",
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
