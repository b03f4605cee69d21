"""vault serve: hold records and ledger in this process, and answer others at a socket."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Data, Json, Label, LedgerPath, Root, SchemaPath, data_reference, text_of
from limbeck.cli.output import Stopped

vault = typer.Typer(help="Hold the records in a process of their own.", pretty_exceptions_enable=False)


def register(app: typer.Typer) -> None:
    app.add_typer(vault, name="vault")


@vault.callback()
def _vault() -> None:
    """Hold the records in a process of their own."""


@vault.command("serve")
def serve_vault(
    data: Data,
    socket: Annotated[
        Path, typer.Option("--socket", readable=False, help="Where others connect: a path for a Unix socket.")
    ],
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    device: Annotated[str, typer.Option("--device", help="Where to compute: cpu, cuda, cuda:1 ...")] = "cpu",
    insecure_seed: Annotated[
        int | None, typer.Option("--insecure-seed", help="For tests only: predictable noise; nothing is releasable.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="Who may connect: 600 this user alone, 660 its group too, 666 everybody here."),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", help="The group that the socket belongs to; its mode is then 660.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Hold your records and ledger here, and answer 'limbeck condense --vault SOCKET' of other users of this machine.

    They need the socket and nothing else: no file of yours, no budget, no key. Set the budget first, with 'limbeck budget set'.
    """
    from limbeck.runs.request import Request, RunOptions
    from limbeck.runs.vault_server import serving
    from limbeck.vault.ledger.address import shown
    from limbeck.vault.process.socket_file import Door

    door = Door.of(mode, group)
    options = RunOptions(ledger=text_of(ledger), device=device, insecure_seed=insecure_seed)
    request = Request(data=data_reference(data, schema, label, root), options=options)
    source = request.data.source()
    ready(source)
    ended, by = threading.Event(), [0]

    def end(number: int, _: object) -> None:
        by[0] = number
        ended.set()

    # From here on a signal ends it in order, also in the moment before the socket is there.
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with serving(request, source, socket, door, _log) as server:
            values = {
                "socket": str(socket.absolute()),
                "mode": f"{door.mode:o}",
                "dataset": source.schema.name,
                "ledger": shown(server.ledger.path),
                "pid": os.getpid(),
            }
            if as_json:
                print(json.dumps(values), flush=True)
            else:
                _log(f"the vault of '{source.schema.name}' answers at {socket} (mode {door.mode:o}). Ctrl-C ends it.")
            while not ended.wait(3600):
                pass
            idle = server.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    code = Stopped.exit_code if by[0] == signal.SIGINT else 0
    if not idle:
        # A thread is deep in a computation. What is confirmed is on the disk, so nothing is lost by not waiting for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise typer.Exit(code)


def _log(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever read it has gone; the vault goes on
        print(f"limbeck: {text}", file=sys.stderr, flush=True)
