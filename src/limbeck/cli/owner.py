"""owner set, owner show: who releases, why and under which licence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.options import Json, LedgerPath
from limbeck.cli.output import emit, table
from limbeck.errors import BadInput

if TYPE_CHECKING:
    from limbeck.release.imprint import Imprint

owner = typer.Typer(
    help="Say who releases, why and under which licence. It stands in every release.", pretty_exceptions_enable=False
)
PUBLIC = "It becomes public with your next release: card and report state it."


def register(app: typer.Typer) -> None:
    app.add_typer(owner, name="owner")


@owner.command("set")
def set_owner(
    name: Annotated[str | None, typer.Option("--name", help="Who releases: a person or an institution.")] = None,
    contact: Annotated[str | None, typer.Option("--contact", help="Where to ask: an address.")] = None,
    purpose: Annotated[str | None, typer.Option("--purpose", help="What the releases are for.")] = None,
    licence: Annotated[
        str | None, typer.Option("--licence", help="Under which they may be used, such as CC-BY-4.0.")
    ] = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Keep name, contact, purpose and licence beside the ledger. All are optional, and become public with the next release.

    What is not given stays as it is; an empty text takes it away. Releases that exist do not change.
    """
    import dataclasses

    from limbeck.release.imprint import Imprint, read_imprint, write_imprint

    given = {"name": name, "contact": contact, "purpose": purpose, "licence": licence}
    said = {entry: value.strip() for entry, value in given.items() if value is not None}
    if not said:
        raise BadInput("Give at least one of --name, --contact, --purpose and --licence.", "limbeck owner set --help")
    path = _path(ledger)
    imprint = dataclasses.replace(read_imprint(path) or Imprint(), **said)
    write_imprint(path, imprint)
    emit(as_json, {**imprint.to_dict(), "file": str(path)}, [*table(imprint.rows), PUBLIC])


@owner.command("show")
def show_owner(ledger: LedgerPath = None, as_json: Json = False) -> None:
    """Show what every new release will say of its owner. Changes nothing."""
    from limbeck.release.imprint import Imprint, read_imprint

    path = _path(ledger)
    imprint = read_imprint(path) or Imprint()
    lines = table(imprint.rows) if imprint.rows else ["nothing is said; see: limbeck owner set --help"]
    emit(as_json, {**imprint.to_dict(), "file": str(path)}, lines)


def _path(ledger: Path | None) -> Path:
    from limbeck.release.imprint import path_beside
    from limbeck.vault.ledger.address import default_path, home

    return path_beside(home(default_path() if ledger is None else ledger))


def ask_once(ledger: Path | None, as_json: bool) -> None:
    """On a terminal, before the first release of this owner. Enter leaves an entry empty; without a terminal nothing is asked."""
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    path = _path(ledger)
    if path.exists():
        return
    from limbeck.release.imprint import write_imprint

    print(f"Who releases this? Each line may stay empty (Enter), and you are asked once. {PUBLIC}", file=sys.stderr)
    write_imprint(path, _answers())


def _answers() -> Imprint:
    from limbeck.release.imprint import Imprint

    words = {
        "name": "  name or institution",
        "contact": "  contact",
        "purpose": "  purpose of the release",
        "licence": "  licence, such as CC-BY-4.0",
    }
    return Imprint(**{entry: _answer(text) for entry, text in words.items()})


def _answer(text: str) -> str:
    print(f"{text}: ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return "".join(letter for letter in line.strip() if letter.isprintable())[:500]
