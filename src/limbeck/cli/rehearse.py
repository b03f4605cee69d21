"""rehearse: the very same plan on stand-in records that cost nothing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.options import (
    DataOrVault,
    Delta,
    Epsilon,
    Json,
    Label,
    MethodOrDefault,
    PerClass,
    Root,
    Rows,
    SchemaPath,
    Set,
    VaultPath,
    data_reference,
    epsilon_value,
    names_in,
    settings_from,
)
from limbeck.cli.output import emit, reporter, table
from limbeck.errors import BadInput


def register(app: typer.Typer) -> None:
    app.command()(rehearse)


def rehearse(
    out: Annotated[
        Path, typer.Option("--out", help="Where the rehearsal goes: a folder that is empty or not there yet.")
    ],
    data: DataOrVault = None,
    vault: VaultPath = None,
    method: MethodOrDefault = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Several methods side by side, with commas, such as elixir,ldpdc.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary", help="Several values side by side, as key=value,value: epsilon or a setting. May be repeated."
        ),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    rows: Rows = None,
    settings: Set = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Try a plan on stand-in records of the same shape, size and classes. Opens no record of yours, books nothing.

    For example: limbeck rehearse scans/ --epsilon 1 --methods elixir,ldpdc --out rehearsal
    """
    from limbeck.experiments.rehearse import Attempt
    from limbeck.experiments.rehearse import rehearse as run
    from limbeck.runs.planning import source_of

    if method is not None and methods is not None:
        raise BadInput("Give --method or --methods, not both.")
    reference = data_reference(data, schema, label, root, vault)
    names: list[str | None] = list(names_in(methods)) if methods else [method]
    chosen, attempts = settings_from(settings, per_class), []
    for name, values in itertools.product(names, _combinations(vary)):
        own = dict(values)
        at = own.pop("epsilon", epsilon)
        attempts.append(Attempt(method=name, settings={**chosen, **own}, epsilon=epsilon_value(at), rows=rows))
    with reporter() as shown:
        result = run(source_of(reference).schema, attempts, delta, out, shown, root)
    emit(as_json, result, _lines(result))


def _combinations(vary: list[str] | None) -> list[dict[str, str]]:
    axes = []
    for pair in vary or []:
        key, equals, values = (part.strip() for part in pair.partition("="))
        if not equals or not key or not values:
            raise BadInput(f"--vary takes key=value,value, got '{pair}'.", "limbeck rehearse --help")
        axes.append([(key, value.strip()) for value in values.split(",") if value.strip()])
    return [dict(each) for each in itertools.product(*axes)]


def _lines(result: dict[str, Any]) -> list[str]:
    rows: list[tuple[object, ...]] = [("method", "epsilon", "set", "accuracy", "seconds", "folder")]
    for each in result["attempts"]:
        said = " ".join(f"{key}={value}" for key, value in each["given"].items()) or "-"
        accuracy = "-" if each["accuracy"] is None else f"{each['accuracy']:.1f}"
        rows.append((each["method"], each["epsilon"], said, accuracy, f"{each['seconds']:.0f}", each["folder"]))
    return [*table(rows), f"stand-in  {result['stand_in']}", "booked    0", result["what"]]
