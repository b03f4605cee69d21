"""demo, condense, resume, plan, methods: everything that makes a set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.asking import Yes, agree, warnings_for
from limbeck.cli.datasets import ready
from limbeck.cli.next_steps import after_the_demo, after_the_plan, next_commands
from limbeck.cli.options import (
    DataOrVault,
    Delta,
    Epsilon,
    Json,
    Label,
    LedgerPath,
    MethodOrDefault,
    PerClass,
    RealAccuracy,
    Root,
    Rows,
    SchemaPath,
    Set,
    VaultPath,
    data_reference,
    epsilon_value,
    settings_from,
    text_of,
)
from limbeck.cli.output import Stopped, emit, reporter, table
from limbeck.cli.owner import ask_once
from limbeck.cli.plan_lines import plan_lines
from limbeck.errors import out_of_memory, ran_out
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.unit import adjacency_and_unit

if TYPE_CHECKING:
    from limbeck.runs.condense import Outcome
    from limbeck.vault.sharded.group import Group

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
    out: Out,
    data: DataOrVault = None,
    vault: VaultPath = None,
    method: MethodOrDefault = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    rows: Rows = None,
    settings: Set = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    part: Annotated[
        str | None,
        typer.Option("--part", help="One part of a split, as SPLIT/NUMBER; see 'limbeck budget split --help'."),
    ] = None,
    ledger: LedgerPath = None,
    device: Device = "cpu",
    insecure_seed: InsecureSeed = None,
    yes: Yes = False,
    real_accuracy: RealAccuracy = None,
    as_json: Json = False,
) -> None:
    """Turn a private data set into a small synthetic one. Its epsilon is booked first; it can be stopped and resumed."""
    from limbeck.runs.condense import condense as run
    from limbeck.runs.parts import with_part
    from limbeck.runs.planning import plan_for
    from limbeck.runs.request import Request, RunOptions

    with stoppable(out), ranks() as group:
        options = RunOptions(ledger=text_of(ledger), insecure_seed=insecure_seed, device=device)
        reference = with_part(data_reference(data, schema, label, root, vault), part, options.ledger_path)
        request = Request(data=reference, options=options)
        chosen = settings_from(settings, per_class)
        plan, source = plan_for(reference, method, chosen, epsilon_value(epsilon), delta, rows)
        ready(source)
        if vault is None and group is None:
            ask_once(ledger, as_json)
        with reporter() as shown:
            agree(warnings_for(source.schema, plan, source, real_accuracy), yes, shown)
            shown.say(
                f"{plan.method} on {plan.dataset}: epsilon {finite_or_word(plan.price.epsilon)}, delta {delta:g}, "
                f"{adjacency_and_unit(plan.price.adjacency, source.schema.unit)}. You may stop it with Ctrl-C and go on later."
            )
            outcome = run(request, plan, source, out, shown, group=group)
    emit_outcome(outcome, as_json)


def resume(
    run: Annotated[Path, typer.Argument(help="The folder of an interrupted run.")],
    ledger: LedgerPath = None,
    vault: Annotated[
        Path | None,
        typer.Option("--vault", readable=False, help="The socket of the run's vault, if it was moved since."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Go on with a run that was stopped or broke off. Nothing is paid twice."""
    from limbeck.runs.resume import resume as go_on

    with stoppable(run), ranks() as group, reporter() as shown:
        outcome = go_on(run, shown, ledger, vault_path=vault, group=group)
    emit_outcome(outcome, as_json)


@contextlib.contextmanager
def ranks() -> Iterator[Group | None]:
    """Under torchrun the ranks of the run, at rank 0. The others serve it here, and then their command is over."""
    from limbeck.runs.ranks import joined, serve

    with joined() as group:
        if group is not None and group.rank:
            serve(group)
            raise typer.Exit
        yield group


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


def emit_outcome(outcome: Outcome, as_json: bool) -> None:
    emit(as_json, outcome.to_dict(), outcome_lines(outcome))


def outcome_lines(outcome: Outcome) -> list[str]:
    release, plan = outcome.release, outcome.plan
    adjacency = adjacency_and_unit(plan.price.adjacency, outcome.unit)
    lines = [
        f"release   {release}",
        f"epsilon   {finite_or_word(plan.price.epsilon)} (delta {plan.price.delta:g}, {adjacency})",
        f"seconds   {outcome.seconds:.1f}",
        f"report    {release / 'report.html'}",
    ]
    if not outcome.releasable:
        return [*lines, "NOT RELEASABLE: this set is not private. Never share it."]
    return [*lines, "next:", *(f"  {command}" for command in next_commands(release))]


def plan(
    data: DataOrVault = None,
    vault: VaultPath = None,
    method: MethodOrDefault = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    rows: Rows = None,
    settings: Set = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    real_accuracy: RealAccuracy = None,
    as_json: Json = False,
) -> None:
    """Show what a run would ask and cost, how long it takes, how useful its set will be. Reads no record, books nothing."""
    from limbeck.runs.planning import quote

    reference = data_reference(data, schema, label, root, vault)
    chosen = settings_from(settings, per_class)
    found = quote(reference, method, chosen, epsilon_value(epsilon), delta, rows, ledger, real_accuracy)
    command = after_the_plan(found, ledger)
    emit(
        as_json,
        {**found.to_dict(), "next_command": command},
        [*plan_lines(found), *found.forecast.lines, f"next      {command}"],
    )


def methods(
    name: Annotated[str | None, typer.Argument(help="Only this one.", show_default=False)] = None, as_json: Json = False
) -> None:
    """List the methods: papers, needs, settings and their bounds."""
    from limbeck.methods import METHODS, declared, kind_named

    found: list[dict[str, Any]] = []
    lines: list[str] = []
    for kind in METHODS.values() if name is None else (kind_named(name),):
        settings = declared(kind).values()
        found.append(
            {
                "name": kind.name,
                "title": kind.title,
                "paper": kind.paper,
                "needs": kind.needs,
                "private": kind.private,
                "makes": kind.makes,
                "defaults": {setting.name: setting.default for setting in settings},
                "bounds": {setting.name: setting.to_dict() for setting in settings},
            }
        )
        rows = [(f"{setting.name}={setting.default}", setting.summary) for setting in settings]
        lines += [
            f"{kind.name}: {kind.title}",
            f"  paper     {kind.paper}",
            f"  needs     {kind.needs}",
            "  settings",
            *(f"    {row}" for row in table(rows)),
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
        "",
        "Open the report in a browser. Then try:",
        *(f"  {command:<58} {why}".rstrip() for command, why in after_the_demo(Path(result["release"]))),
    ]
    emit(as_json, result, lines)
