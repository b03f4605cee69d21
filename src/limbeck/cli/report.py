"""report, bundle: what a release looks like, and what of it is handed over."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Json, Label, LedgerPath, Root, SchemaPath, data_reference
from limbeck.cli.output import emit
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.unit import adjacency_and_unit


def register(app: typer.Typer) -> None:
    app.command()(report)
    app.command()(bundle)


def report(
    run: Annotated[Path, typer.Argument(help="A release folder.")],
    edition: Annotated[
        str,
        typer.Option(
            "--edition",
            help="release: nothing that was not paid for, to be shared. owner: may show private records; never share it.",
        ),
    ] = "release",
    evaluation: Annotated[
        list[Path] | None,
        typer.Option("--evaluation", help="Scores from 'limbeck evaluate --out FILE'. May be repeated."),
    ] = None,
    curve: Annotated[
        Path | None, typer.Option("--curve", help="A privacy-utility curve as JSON; see docs/report.md.")
    ] = None,
    fidelity: Annotated[
        Path | None, typer.Option("--fidelity", help="Owner: closeness to the real records, as JSON.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Owner: the real records, to show beside the synthetic ones.")
    ] = None,
    with_history: Annotated[
        bool, typer.Option("--with-history", help="Show all bookings of the data set in the release edition, too.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="The HTML file. Default: RUN-report.html beside the release.")
    ] = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page about a release: what was asked, spent and promised, its pictures and scores. Needs no network."""
    from limbeck.files import write_atomic
    from limbeck.release.editions import OWNER, checked_edition
    from limbeck.release.statement import public_schema
    from limbeck.report.gather import Sources, default_report_path, gather, require_report_path
    from limbeck.report.page import render

    path = out or default_report_path(run, checked_edition(edition))
    require_report_path(path)
    real = None if data is None else data_reference(data, schema, label, root).source("train", public_schema(run))
    ready(real)
    sources = Sources(
        run=run,
        edition=edition,
        evaluations=evaluation or (),
        curve=curve,
        fidelity=fidelity,
        real=real,
        ledger=ledger,
        history=with_history,
    )
    page = render(gather(sources)).encode()
    # The owner's edition may show private records, so it is nobody else's to read.
    write_atomic(path, page, 0o600 if edition == OWNER else 0o644)
    lines = [f"report    {path}", f"edition   {edition}"]
    if edition == OWNER:
        lines.append("DO NOT SHARE: the owner's edition may show private records and scores that nobody paid for.")
    emit(as_json, {"report": str(path), "edition": edition, "release": str(run), "bytes": len(page)}, lines)


def bundle(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The zip file. Default: a name made of set, method and digest, beside it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Pack a release into one zip file to hand over. It is verified first; whatever is not on its certificate is refused."""
    from limbeck.release.bundle import write_bundle

    path, packed = write_bundle(release, out)
    values = {
        "bundle": str(path),
        "release": str(release),
        "files": packed.files,
        "bytes": packed.size,
        "sha256": packed.sha256,
        "epsilon": finite_or_word(packed.certificate.epsilon),
        "delta": packed.certificate.delta,
        "adjacency": packed.certificate.adjacency,
        "unit": packed.certificate.unit,
    }
    adjacency = adjacency_and_unit(packed.certificate.adjacency, packed.certificate.unit)
    lines = [
        f"bundle    {path}",
        f"content   {packed.files} files, {packed.size} bytes, in the folder {packed.name}/",
        f"sha256    {packed.sha256}",
        f"epsilon   {values['epsilon']} (delta {values['delta']:g}, {adjacency})",
    ]
    emit(as_json, values, lines)
