"""federate: many owners, each with a vault of its own, and one set made of all of their answers."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.options import (
    Json,
    Label,
    LedgerPath,
    Root,
    SchemaPath,
    data_reference,
    text_of,
)
from limbeck.cli.output import Stopped, emit
from limbeck.errors import BadInput

if TYPE_CHECKING:
    from limbeck.federated.folders import Federation

federate = typer.Typer(help="Make one set with several owners, who keep their records.", pretty_exceptions_enable=False)
Noise = Annotated[
    str, typer.Option("--noise", help="'site': each site adds all the noise; 'shared': once, in shares, under masks.")
]
Collusion = Annotated[
    int, typer.Option("--collusion", help="With --noise shared: so many sites may tell the server what they know.")
]
Block = Annotated[
    int,
    typer.Option(
        "--block", help="Questions to teachers that a site answers in a row; a generator stays there as long."
    ),
]


@federate.callback()
def _federate() -> None:
    """Make one set with several owners, who keep their records. docs/federated.md explains who sees what."""


@federate.command("init")
def init(
    folder: Annotated[Path, typer.Argument(help="A folder for the site, or for the server.")],
    site: Annotated[str | None, typer.Option("--site", help="Of a site: its name in the federation.")] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Of a site: its records, as in 'limbeck condense'.")
    ] = None,
    card: Annotated[
        list[Path] | None, typer.Option("--card", help="Of the server: the card of a site. Repeat it.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Of the server: the federation's name.")] = "federation",
    address: Annotated[
        str, typer.Option("--address", help="Of the server: HOST:PORT that sites connect to.")
    ] = "127.0.0.1:8443",
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    noise: Noise = "site",
    collusion: Collusion = 0,
    block: Block = 1,
    as_json: Json = False,
) -> None:
    """Begin a site (--site NAME --data DATA) or the server (--card for every site, --schema for all records together).

    A site's card, FOLDER/NAME.json, goes to the server's owner; the server's federation.json and ca.pem go to the sites.
    """
    if (site is None) == (not card):
        raise BadInput(
            "Give --site NAME and --data DATA to begin a site, or --card FILE for each site to begin the server."
        )
    if site is not None:
        from limbeck.federated.folders import Site
        from limbeck.runs.request import Request, RunOptions

        request = Request(data=data_reference(data, schema, label, root), options=RunOptions(ledger=text_of(ledger)))
        request.data.source().schema.require_confirmed()
        kept = request.to_dict()
        reference = data_reference(kept["data"], kept["schema"], label, kept["root"])
        made = Site(site=site, data=reference, ledger=kept["ledger"]).write(folder)
        values: dict[str, Any] = {"site": site, "card": str(folder / f"{site}.json"), "key": made.key}
        emit(as_json, values, [f"site {site}: key {made.key}", f"send {values['card']} to the server's owner"])
        return
    if schema is None:
        raise BadInput("The server needs --schema: what is public about all records together.")
    federation = _begin_server(folder, card or [], schema, name, address, noise, collusion, block)
    values = {"folder": str(folder), "sites": list(federation.terms.sites), "terms": federation.terms.digest()}
    emit(
        as_json,
        values,
        [
            f"federation '{name}' of {', '.join(federation.terms.sites)}; terms {values['terms']}",
            f"send federation.json and ca.pem of {folder} to every site; all owners compare the digest of the terms",
        ],
    )


def _begin_server(
    folder: Path, cards: list[Path], schema: Path, name: str, address: str, noise: str, collusion: int, block: int
) -> Federation:
    from limbeck.federated.folders import FEDERATION, Card, Federation, checked_address
    from limbeck.federated.identities import make_tls
    from limbeck.privacy.federation import Terms
    from limbeck.privacy.schema import Schema

    if (folder / FEDERATION).exists():
        raise BadInput(f"{folder} holds a federation already; its terms are not changed. Choose another folder.")
    found = [Card.read(path) for path in cards]
    terms = Terms(
        name=name,
        sites=tuple(card.site for card in found),
        keys=tuple(card.key for card in found),
        noise=noise,
        collusion=collusion,
        block=block,
    )
    whole = Schema.read(schema)
    whole.require_confirmed()
    nodes = tuple(card.node_key for card in found)
    federation = Federation(terms=terms, schema=whole, address=checked_address(address), nodes=nodes)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    make_tls(folder, address.rpartition(":")[0])
    federation.write(folder)
    return federation


@federate.command("server")
def server(
    folder: Annotated[Path, typer.Argument(help="The server's folder.")],
    as_json: Json = False,
) -> None:
    """Let the sites connect, until Ctrl-C. Telemetry is off, TLS and node keys are on, and no code is sent to anybody."""
    from limbeck.federated.flower import require_alive
    from limbeck.federated.flower_server import superlink
    from limbeck.federated.folders import Federation

    federation = Federation.read(folder)
    with _until_signal() as ended, superlink(folder, federation) as child:
        values = {
            "address": federation.address,
            "sites": list(federation.terms.sites),
            "log": str(folder / "server.log"),
        }
        emit(
            as_json, values, [f"the server of '{federation.terms.name}' waits at {federation.address}. Ctrl-C ends it."]
        )
        sys.stdout.flush()
        while not ended.wait(1.0):
            require_alive(child, "The federation's server", folder / "server.log")


@federate.command("site")
def site(
    folder: Annotated[Path, typer.Argument(help="The site's folder.")],
    server: Annotated[
        Path | None,
        typer.Option("--server", help="A folder with the server's federation.json and ca.pem, the first time."),
    ] = None,
    ready_file: Annotated[Path | None, typer.Option("--ready-file", hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Answer the federation's server from your own records, ledger and key, until Ctrl-C. Set a budget first."""
    from limbeck.federated.folders import Site
    from limbeck.federated.serving import serve_site, take_terms

    federation, own = take_terms(folder, server), Site.read(folder)

    def there() -> None:
        values = {"site": own.site, "server": federation.address, "terms": federation.terms.digest()}
        emit(as_json, values, [f"site '{own.site}' answers {federation.address}; terms {values['terms']}"])
        sys.stdout.flush()
        if ready_file is not None:
            ready_file.touch()

    with _until_signal() as ended:
        serve_site(folder, federation, own, _log, ended, there)


@contextlib.contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C or SIGTERM sets; 130 or 0 is what the command then ends with."""
    ended, by = threading.Event(), [0]

    def end(number: int, _: object) -> None:
        by[0] = number
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if by[0] == signal.SIGINT:
        raise typer.Exit(Stopped.exit_code)


def _log(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"limbeck: {text}", file=sys.stderr, flush=True)
