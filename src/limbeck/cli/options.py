"""Options that several commands share, with the help that each shows."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.errors import BadInput

if TYPE_CHECKING:
    from limbeck.runs.request import DataReference

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
LedgerPath = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="The file that keeps the budgets, or a server's address. Default: $LIMBECK_LEDGER, else one in your data folder.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        help="Your data: a folder of images, a .npz, Parquet, CSV or IDX file; or a named set, see 'limbeck data list'."
    ),
]
DataOrVault = Annotated[
    str | None,
    typer.Argument(
        help="Your data: a folder of images, a .npz, Parquet, CSV or IDX file; or a named set, see 'limbeck data list'. Leave it "
        "out with --vault.",
    ),
]
VaultPath = Annotated[
    Path | None,
    typer.Option(
        "--vault",
        readable=False,
        help="The socket of a vault that holds the records in another process, see 'limbeck vault serve'.",
    ),
]
SchemaPath = Annotated[
    Path | None,
    typer.Option(
        "--schema", help="The file that says what is public about your data. 'limbeck schema draft' writes a first one."
    ),
]
Label = Annotated[str | None, typer.Option("--label", help="The label column of a CSV file.")]
Root = Annotated[
    Path | None, typer.Option("--root", help="A folder that holds the named sets. Default: $LIMBECK_DATA.")
]
MethodOrDefault = Annotated[
    str | None,
    typer.Option(
        "--method", help="How the set is made; see 'limbeck methods'. Default: elixir for images, mosaic for tables."
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        help="How much may be learnt about any one record (or person, where the schema says so), at most. Smaller is more "
        "private, 1 is common, 'inf' is no privacy.",
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta", help="The chance that epsilon does not hold. Must be below 1 / number of records (or persons)."
    ),
]
PerClass = Annotated[int | None, typer.Option("--per-class", help="How many synthetic records to make of each class.")]
Rows = Annotated[
    int | None,
    typer.Option("--rows", help="How many rows to make of a table, in its own shares of the classes (method mosaic)."),
]
RealAccuracy = Annotated[
    float | None,
    typer.Option(
        "--real-accuracy",
        help="For the forecast alone: the percentage that a usual model reaches on real records of this kind, as published or "
        "tried on public ones.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method as key=value, see 'limbeck methods'. May be repeated."),
]

SetOfMethod = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of one method as METHOD.key=value. May be repeated."),
]
TestRecords = Annotated[
    str | None, typer.Option("--test", help="Real test records. Default: the test split of the data.")
]
Models = Annotated[str | None, typer.Option("--models", help="What to train on each set, as in 'limbeck evaluate'.")]
PresetName = Annotated[str | None, typer.Option("--preset", help="How to train it, as in 'limbeck evaluate'.")]
Networks = Annotated[
    int | None, typer.Option("--networks", help="How many networks of each kind see a set. Default: the preset's.")
]
SeenSize = Annotated[
    int | None,
    typer.Option(
        "--size",
        help="Average pictures, of the set and the test records, down to so many pixels of the longer side; 0: as they are. "
        "Default: the size at which the release says that its pictures were made.",
    ),
]
OnlyPrice = Annotated[bool, typer.Option("--price", help="Show what all sets cost, and stop there.")]


def data_reference(
    data: str | None,
    schema: Path | str | None,
    label: str | None,
    root: Path | str | None,
    vault: Path | None = None,
) -> DataReference:
    """What the options --schema, --label, --root and --vault say about where the records are."""
    from limbeck.runs.request import DataReference

    if vault is not None:
        return DataReference(data=data, schema=text_of(schema), label=label, root=text_of(root), vault=str(vault))
    if data is None:
        raise BadInput("Give DATA, or the socket of a vault that holds the records with --vault.")
    named = root or os.environ.get("LIMBECK_DATA")
    return DataReference(data=data, schema=text_of(schema), label=label, root=text_of(named))


def require_own_ledger(vault: Path | None, what: str, verb: str) -> None:
    """Whoever prices many sets before the first one is booked has to see the budget."""
    if vault is not None:
        raise BadInput(
            f"A {what} checks first that the budget covers all of its sets, and a vault in another process does not show its "
            f"budget. Make the sets one by one with 'limbeck condense --vault', or {verb} where the ledger is."
        )


def text_of(path: Path | str | None) -> str | None:
    return None if path is None else str(path)


def epsilon_value(text: str | None) -> float | None:
    """A positive number, or infinity in words; anything else is refused by name."""
    if text is None:
        return None
    if text.lower() in ("inf", "infinity"):
        return math.inf
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"epsilon must be a positive number or 'inf', got --epsilon {text}.") from None
    if not value > 0 or math.isinf(value):
        raise BadInput(f"epsilon must be a positive number, got --epsilon {text}.")
    return value


def settings_from(pairs: list[str] | None, per_class: int | None) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BadInput(f"--set takes key=value, got '{pair}'.", "limbeck methods")
        settings[key.strip()] = value.strip()
    if per_class is not None:
        settings["per_class"] = per_class
    return settings


def names_in(text: str) -> tuple[str, ...]:
    """
    >>> names_in("elixir, ldpdc,")
    ('elixir', 'ldpdc')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def settings_by_method(methods: str, pairs: list[str] | None) -> dict[str, dict[str, Any]]:
    """
    >>> settings_by_method("psg,dpsgd", ["psg.R=20"])
    {'psg': {'R': '20'}, 'dpsgd': {}}
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in names_in(methods)}
    for pair in pairs or []:
        place, equals, value = pair.partition("=")
        name, dot, key = place.strip().partition(".")
        if not equals or not dot or not key:
            raise BadInput(f"--set takes METHOD.key=value here, got '{pair}'.", "limbeck methods")
        if name not in found:
            raise BadInput(f"--set {pair} is for the method '{name}', which is not among --methods {methods}.")
        found[name][key] = value.strip()
    return found
