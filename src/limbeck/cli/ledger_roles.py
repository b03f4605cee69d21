"""budget allow: who else may book in a ledger on a server."""

from __future__ import annotations

from typing import Annotated

import typer

from limbeck.cli.budgets import budget
from limbeck.cli.options import Json, LedgerPath
from limbeck.cli.output import emit


def register(app: typer.Typer) -> None:
    budget.command("allow")(allow_role)


def allow_role(
    role: Annotated[str, typer.Argument(help="A role that the server knows.")],
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Let a role of the server book plans in this ledger: not set budgets, not split, not change what is there."""
    from limbeck.errors import BadInput
    from limbeck.vault.ledger.address import default_path, server_url
    from limbeck.vault.ledger.server import allow

    path = ledger or default_path()
    url = server_url(path)
    if url is None:
        raise BadInput(
            f"The ledger {path} is a file, which belongs to its owner alone. Roles are for a ledger on a server.",
            f"limbeck budget allow {role} --ledger postgresql://HOST/DATABASE",
        )
    allow(url, role, patience=30.0)
    emit(as_json, {"role": role, "ledger": url}, [f"Role {role!r} may book in {url}."])
