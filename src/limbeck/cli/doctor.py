"""doctor: is this machine ready?"""

from __future__ import annotations

import typer

from limbeck.cli.options import Json, LedgerPath
from limbeck.cli.output import emit, fail, table


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(ledger: LedgerPath = None, as_json: Json = False) -> None:
    """Look whether this machine is ready: versions, threads, device, kernels, ledger, extras, memory. Changes nothing.

    Ends with 0 if nothing is wrong, with 5 if the ledger cannot be read, with 1 if a kernel computes wrongly.
    """
    from limbeck.runs.doctor import examine

    found, fault = examine(ledger)
    rows = [(_mark(each.ok), each.name, each.value) for each in found]
    advice = [f"  {each.name}: {each.advice}" for each in found if each.advice]
    lines = [
        *table(rows),
        *(["to do, or to know:", *advice] if advice else []),
        "ready" if fault is None else "NOT READY",
    ]
    emit(as_json, {"ready": fault is None, "findings": [each.to_dict() for each in found]}, lines)
    if fault is not None:
        raise typer.Exit(fail(fault, False))  # the one object is out already


def _mark(ok: bool | None) -> str:
    return {True: "ok", False: "WRONG", None: ""}[ok]
