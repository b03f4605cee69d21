"""join: one set of several owners' sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.options import Json, LedgerPath, text_of
from limbeck.cli.output import emit
from limbeck.privacy.numbers import finite_or_word


def register(app: typer.Typer) -> None:
    app.command()(join)


def join(
    releases: Annotated[list[Path], typer.Argument(help="The releases of several owners, two or more.")],
    out: Annotated[Path, typer.Option("--out", help="Where the union goes: a folder that is not there yet.")],
    name: Annotated[str, typer.Option("--name", help="What the union is called.")] = "joined",
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Join sets of different owners. Costs nothing; the certificate cites every part, and 'limbeck verify' checks them all.

    It is signed with your own key, the one beside your ledger. That the owners hold different records is their word.
    """
    from limbeck.release.joining import join as joined
    from limbeck.release.signature import KeyFile
    from limbeck.report.pages import release_pages
    from limbeck.runs.folder import require_unused
    from limbeck.runs.request import RunOptions
    from limbeck.vault.ledger.address import home

    require_unused(out)
    if out.exists():
        out.rmdir()
    key = KeyFile.beside(home(RunOptions(ledger=text_of(ledger)).ledger_path)).path
    certificate = joined(releases, name, out, key, release_pages)
    values = {
        "release": str(out),
        "records": certificate.records,
        "epsilon": finite_or_word(certificate.epsilon),
        "delta": certificate.delta,
        "parts": [str(release) for release in releases],
    }
    emit(
        as_json,
        values,
        [
            f"release   {out}: {certificate.records} records of {len(releases)} owners",
            f"epsilon   {values['epsilon']} (delta {certificate.delta:g}), the dearest part's: owners hold different records",
        ],
    )
