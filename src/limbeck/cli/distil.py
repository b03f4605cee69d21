"""distil: another set, of any size, of what a release has paid for already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.checks import ReleaseFolder
from limbeck.cli.options import Json, LedgerPath, settings_from, text_of
from limbeck.cli.output import reporter
from limbeck.cli.runs import Out, emit_outcome, stoppable
from limbeck.errors import BadInput


def register(app: typer.Typer) -> None:
    app.command()(distil)


def distil(
    release: ReleaseFolder,
    out: Out,
    per_class: Annotated[
        int | None, typer.Option("--per-class", help="How many records to make of each class. Default: 500.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("--rows", help="How many records over all classes, in equal shares, instead.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives another set of the same answers.")] = 0,
    generator: Annotated[
        str | None,
        typer.Option(
            "--generator",
            help="First match a new generator in so many steps, or 'auto' for as many as usual; it is released with the set.",
            metavar="STEPS",
        ),
    ] = None,
    drawing: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A set that was distilled from this very release with a generator, whose pictures are the start.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="How it is done, as key=value: updates, part, eta, start ... May be repeated."),
    ] = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Make another set, of any size, of the answers that a release keeps. Costs nothing: no data, no ledger, no budget.

    The certificate cites the release's own, with its epsilon, and 'limbeck verify' checks both. It is signed with your own key,
    the one beside your ledger; of --ledger nothing else is used. It can be stopped and taken up with 'limbeck resume'.
    """
    from limbeck.release.signature import KeyFile
    from limbeck.runs.distil import distil as distilled
    from limbeck.runs.distil import wanted_from
    from limbeck.runs.request import RunOptions
    from limbeck.vault.ledger.address import home

    if per_class is not None and rows is not None:
        raise BadInput(f"Give --per-class {per_class} or --rows {rows}, not both.")
    chosen = settings_from(settings, per_class) | {"seed": seed}
    for name, value in (("rows", rows), ("generator", generator)):
        if value is not None:
            chosen[name] = value
    key = KeyFile.beside(home(RunOptions(ledger=text_of(ledger)).ledger_path)).path
    with stoppable(out), reporter() as shown:
        outcome = distilled(release, out, wanted_from(chosen), key, shown, drawing=drawing)
    emit_outcome(outcome, as_json)
