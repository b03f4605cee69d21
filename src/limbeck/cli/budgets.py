"""budget set, budget show, budget split, budget void."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.options import Data, Json, Label, LedgerPath, Root, SchemaPath, data_reference, epsilon_value
from limbeck.cli.output import emit, table
from limbeck.errors import BadInput
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.schema import ADD_REMOVE

Dataset = Annotated[str, typer.Argument(help="The data set's name: a named set, or the name in its schema.")]
budget = typer.Typer(help="Set and show the privacy budget of each data set.", pretty_exceptions_enable=False)


def register(app: typer.Typer) -> None:
    app.add_typer(budget, name="budget")


@budget.command("set")
def set_budget(
    dataset: Dataset,
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Total epsilon; 'inf' allows releases that are not private.")
    ],
    delta: Annotated[float, typer.Option("--delta", help="Total delta.")] = 1e-5,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Set what a data set may spend in all. Never below what it has spent; there is no reset."""
    from limbeck.vault.ledger import Ledger
    from limbeck.vault.ledger.commands import naming
    from limbeck.vault.ledger.faults import newly_made

    value = epsilon_value(epsilon)
    assert value is not None
    with naming(ledger), Ledger.open(ledger) as book:
        if book.created:
            print(newly_made(book.path), file=sys.stderr)
        account = book.set_budget(dataset, value, delta)
        answers = book.answers()
    emit(as_json, {**_values(account, answers), "ledger_created": book.created}, _lines([account], answers))


@budget.command("show")
def show_budget(
    dataset: Annotated[str | None, typer.Argument(help="One data set; all if left out.")] = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Show budgets, what is spent and what is left, and the bookings that are still open. Changes nothing."""
    from limbeck.errors import DataNotFound
    from limbeck.vault.ledger import Ledger
    from limbeck.vault.ledger.commands import on_ledger

    accounts, answers, path = [], {}, _not_yet_made(ledger)
    is_there = path is None
    if path is None:
        with Ledger.open_to_read(ledger) as book:
            accounts, answers, path = book.accounts(), book.answers(), book.path
            chosen = [] if dataset is None else _with_parts(book.account(dataset), accounts)
    if dataset is None:
        missing = f"There is no ledger yet at {path}. The first run, or 'limbeck budget set', makes one."
        values = [_values(account, answers) for account in accounts]
        emit(
            as_json,
            {"ledger": str(path), "ledger_exists": is_there, "accounts": values},
            [*([] if is_there else [missing]), *_lines(accounts, answers)],
        )
        return
    if not is_there or not chosen:
        raise DataNotFound(
            f"The ledger has no budget for '{dataset}'."
            if is_there
            else f"There is no ledger yet at {path}: no budget.",
            on_ledger(f"limbeck budget set {shlex.quote(dataset)} --epsilon 1 --delta 1e-5", path),
        )
    parts = [_values(part, answers) for part in chosen[1:]]
    emit(as_json, {**_values(chosen[0], answers), "parts": parts}, _lines(chosen, answers))


@budget.command("split")
def split_dataset(
    data: Data,
    name: Annotated[str, typer.Argument(help="A name for the split. Its parts are NAME/1, NAME/2 and so on.")],
    classes: Annotated[
        str | None,
        typer.Option("--classes", help="Split by class: indices of classes, parts with semicolons, as in '0,1;2,3'."),
    ] = None,
    by_hash: Annotated[
        int | None, typer.Option("--hash", help="Split into so many parts by a secret keyed hash of each record.")
    ] = None,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Declare how a data set is taken apart. Reads no record, sets no budget: parts spend from that of the whole.

    Then run on one part with: limbeck condense DATA --part NAME/1. Disjoint parts cost the whole what the dearest costs.
    """
    from limbeck.vault.ledger import Ledger
    from limbeck.vault.ledger.faults import newly_made

    reference = data_reference(data, schema, label, root)
    described = reference.source().schema
    listed = None if classes is None else class_lists(classes, len(described.classes))
    with Ledger.open(ledger) as book:
        if book.created:
            print(newly_made(book.path), file=sys.stderr)
        made = book.declare_split(described.name, name, classes=listed, parts=by_hash, unit=described.unit)
    values = {
        "dataset": made.dataset,
        "split": made.name,
        "kind": made.kind,
        "disjoint": made.disjoint,
        "parts": list(made.accounts),
        "classes": [list(part) for part in made.parts] if made.kind == "classes" else None,
        "ledger_created": book.created,
    }
    counted = "the dearest part counts" if made.disjoint else "parts add up: a person may have records in several"
    emit(
        as_json,
        values,
        [
            f"split     {made.name} of {made.dataset}: {len(made.parts)} parts by {_by(made.kind)}; {counted}",
            f"next      limbeck condense {reference.words} --part {made.name}/1 --out OUT --epsilon 1"
            + ("" if ledger is None else f" --ledger {shlex.quote(str(ledger))}"),
        ],
    )


def class_lists(text: str, classes: int) -> list[list[int]]:
    """
    >>> class_lists("0,1; 2", 3)
    [[0, 1], [2]]
    """
    try:
        found = [[int(index) for index in part.split(",")] for part in text.split(";")]
    except ValueError:
        raise BadInput(f"--classes takes indices of classes, as in '0,1;2,3', got '{text}'.") from None
    if any(index >= classes for part in found for index in part):
        raise BadInput(f"--classes names a class that is not there: they are numbered from 0 to {classes - 1}.")
    return found


def _by(kind: str) -> str:
    return {"classes": "class", "hash": "keyed hash", "stages": "stage of an earlier version"}[kind]


@budget.command("void")
def void_booking(
    dataset: Dataset,
    booking: Annotated[str, typer.Argument(help="The booking, as 'limbeck budget show' lists it.")],
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Give back an open booking of which nothing was ever answered, such as one whose run folder is lost.

    A booking with an answer, or a finished one, is refused: it stays spent. A run that is still at work on the booking
    ends without a result. The booking stays on record, as void.
    """
    from limbeck.vault.ledger import Ledger
    from limbeck.vault.ledger.commands import naming

    with naming(ledger), Ledger.open(ledger, create=False) as book:
        book.give_back(dataset, booking)
        account, answers = book.account(dataset), book.answers()
    values = None if account is None else _values(account, answers)
    emit(
        as_json,
        {"dataset": dataset, "booking": booking, "state": "void", "account": values},
        [
            f"Booking {booking} was given back; nothing had been answered.",
            *(_lines([account], answers) if account else []),
        ],
    )


def _with_parts(account: Any, accounts: list[Any]) -> list[Any]:
    """An account and the accounts of its parts."""
    if account is None:
        return []
    below = {account.dataset}
    for other in accounts:  # a whole comes before its parts
        if other.parent in below:
            below.add(other.dataset)
    return [account, *(other for other in accounts if other.dataset in below and other.dataset != account.dataset)]


def _not_yet_made(ledger: Path | None) -> Path | None:
    """The default place if there is no ledger yet; None if there is one, or one was named that has to be there."""
    from limbeck.vault.ledger.address import default_path, may_exist

    path = default_path()
    if ledger is not None or may_exist(path) or ("LIMBECK_LEDGER" in os.environ and not path.parent.is_dir()):
        return None
    return path


def _values(account: Any, answers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "dataset": account.dataset,
        "epsilon": finite_or_word(account.epsilon),
        "delta": account.delta,
        "adjacency": ADD_REMOVE,
        "spent_epsilon": finite_or_word(account.spent_epsilon),
        "spent_delta": account.spent_delta,
        "spent_epsilon_sum": finite_or_word(account.spent_epsilon_sum),
        "spent_delta_sum": account.spent_delta_sum,
        "rule": account.rule,
        "order": account.order,
        "parent": account.parent,
        "own_budget": account.own_budget,
        "splits": [
            {**dataclasses.asdict(split), "spent_epsilon": finite_or_word(split.spent_epsilon)}
            for split in account.splits
        ],
        "remaining_epsilon": finite_or_word(account.remaining_epsilon),
        "remaining_delta": account.remaining_delta,
        "bookings": [
            {
                "grant": b.grant,
                "method": b.method,
                "epsilon": finite_or_word(b.epsilon),
                "delta": b.delta,
                "created": b.created,
                "state": b.state,
                "answers": answers.get(b.grant, 0),
            }
            for b in account.bookings
        ],
    }


def _lines(accounts: list[Any], answers: Mapping[str, int]) -> list[str]:
    if not accounts:
        return ["No data set has a budget yet. Set one with: limbeck budget set DATA --epsilon 1 --delta 1e-5"]
    rows: list[tuple[object, ...]] = [("data set", "epsilon", "spent", "left", "delta", "delta spent", "runs")]
    waiting: list[tuple[object, ...]] = [("open booking", "data set", "method", "epsilon", "answers", "booked at")]
    depths: dict[str, int] = {}
    for account in accounts:
        values = _values(account, answers)
        depth = depths[account.dataset] = depths.get(account.parent or "", -1) + 1
        rows.append(_row(values, depth))
        for b in values["bookings"]:
            if b["state"] == "open":
                waiting.append((b["grant"], values["dataset"], b["method"], b["epsilon"], b["answers"], b["created"]))
    lines = [
        *table(rows),
        f"adjacency of every epsilon: {ADD_REMOVE}, of one record or one person as the schema of the data set says",
    ]
    lines += [line for account in accounts for line in _explained(account)]
    if len(waiting) > 1:
        lines += table(waiting)
        if any(not row[4] for row in waiting[1:]):
            lines.append("An open booking without answers whose run is lost: limbeck budget void DATA BOOKING")
    return lines


def _row(values: Mapping[str, Any], depth: int) -> tuple[object, ...]:
    own = values["own_budget"] or values["parent"] is None
    return (
        "  " * depth + values["dataset"],
        values["epsilon"] if own else "of the whole",
        values["spent_epsilon"],
        values["remaining_epsilon"],
        values["delta"] if own else "",
        values["spent_delta"],
        len(values["bookings"]),
    )


def _explained(account: Any) -> list[str]:
    """What the figures of an account mean, where they are not plain sums of its own bookings."""
    lines = []
    if account.rule == "renyi":
        lines.append(
            f"{account.dataset}: composed by a Renyi filter of order {account.order}, at delta {account.delta:g}; the plain "
            f"sums are epsilon {account.spent_epsilon_sum} and delta {account.spent_delta_sum}. What is left is for a plan of "
            "Gaussian answers."
        )
    for split in account.splits:
        how = "the dearest of its disjoint parts" if split.disjoint else "the sum of its parts, which may overlap"
        lines.append(
            f"{account.dataset}: split '{split.name}' ({split.parts} parts by {_by(split.kind)}) costs it epsilon "
            f"{finite_or_word(split.spent_epsilon)}, delta {split.spent_delta}: {how}"
        )
    return lines
