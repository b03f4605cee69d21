"""serve: look at a folder of runs in a browser."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.options import Json, LedgerPath
from limbeck.cli.output import Stopped, emit
from limbeck.errors import BadInput, DataNotFound


def register(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    runs: Annotated[Path, typer.Argument(help="A folder that holds runs and releases.")],
    host: Annotated[
        str, typer.Option("--host", help="Where to listen. Anything but this machine alone needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            help="Let in only who has it. Other users of this machine see it in the list of processes: better --token-file, or "
            "LIMBECK_TOKEN in the environment. Made and printed if --host is not this machine alone.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="Read the token from this file, which only you may read (chmod 600)."),
    ] = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Show a folder of runs in a browser: progress, releases side by side, budgets, downloads. It changes nothing."""
    from limbeck.release.certificate import NAME
    from limbeck.serve.access import access_for, chosen_token
    from limbeck.serve.server import start

    if not runs.is_dir():
        raise DataNotFound(f"There is no folder {runs}; give the folder that your runs are in.")
    if (runs / NAME).exists():
        raise BadInput(
            f"{runs} is itself a release; give the folder that it is in.", f"limbeck serve {runs.absolute().parent}"
        )
    access = access_for(host, chosen_token(token, token_file))
    with start(runs.absolute(), ledger, host, port, access) as server:
        values = {"url": server.url, "host": host, "port": server.server_port, "token": access.token, "runs": str(runs)}
        lines = [f"url       {server.url}", f"runs      {runs}"]
        if access.token is not None:
            lines.append("The address holds the token: whoever has it sees these runs and may download their releases.")
        emit(as_json, values, [*lines, "Ctrl-C ends it."])
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    if as_json:
        # The one object is out, so only the exit code tells.
        raise typer.Exit(Stopped.exit_code)
    raise Stopped("Stopped.")
