"""A look at a private table, for its owner: its label, its columns, and who its rows are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from limbeck.data import csv_file, parquet, table
from limbeck.data.survey_column import Finding, look
from limbeck.data.survey_units import maybe_persons, tally
from limbeck.data.surveyed import Survey, Wanted
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, DataUnreadable

MOST_CLASSES = 100_000
# A label with more numbers than these is rather one to predict than a class: any numbers, and whole ones.
MANY_NUMBERS, MANY_WHOLE = 20, 100
OTHER_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # that spreadsheets put between cells


def parquet_columns(file: Any, path: Path) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """The columns of a table as texts, and the names of those with lists or records, which are left out."""
    fields = [file.schema_arrow.field(index) for index in range(len(file.schema_arrow.names))]
    nested = tuple(field.name for field in fields if parquet.is_nested(field))
    names = [field.name for field in fields if not parquet.is_nested(field)]
    if not names:
        raise DataUnreadable(f"{path} has no column with one value per row.")
    size = max(1, min(8192, table.CHUNK // len(names)))
    found = (
        [
            ["" if cell is None else str(cell) for cell in parquet.cells(batch.column(name), as_text=True)]
            for name in names
        ]
        for batch in parquet.batches(file, names, path, None, size)
    )
    return csv_file.gather(names, found, path), nested


def survey_table(
    columns: dict[str, list[str]], wanted: Wanted, where: Path | str, unfit: Mapping[str, str] | None = None
) -> Survey:
    """columns: all cells as texts, by name. unfit: other columns, and why they are left out."""
    _require_named(columns, wanted, where)
    order, remarks = list(columns), []
    label, targets = wanted.label, wanted.targets
    if label is not None and (why := _is_number_to_predict(columns[label])):
        if wanted.ask is not None and wanted.ask(
            f"The label '{label}' has {why}. Is it a number to predict (regression)?"
        ):
            targets, label = (*targets, label), None
        else:
            remarks.append(_proposal(label, why))
    cells = None if label is None else columns.pop(label)
    if cells is not None and (empty := sum(not cell for cell in cells)):
        remarks.append(
            f"{empty} of {len(cells)} rows have no label, and a run refuses such a table: take them out, or give them a class."
        )
    persons = None if wanted.unit is None else tally(wanted.unit, unit_codes(columns.pop(wanted.unit), str(where)))
    found = {name: look(name, each) for name, each in columns.items()}
    _require_targets(found, targets, where)
    kept = tuple(each.column for each in found.values() if each.column is not None)
    return Survey(
        shape=(sum(column.width for column in kept),),
        low=-1,
        high=1,
        sizes={} if cells is None else class_sizes(Counter(cells)),
        columns=kept,
        label=label or "",
        label_at=None if label is None else _place([column.name for column in kept], order, label),
        says={name: each.says for name, each in found.items() if each.column is not None},
        left_out={name: each.says for name, each in found.items() if each.column is None} | dict(unfit or {}),
        persons=persons,
        maybe_persons=maybe_persons(columns) if wanted.unit is None else (),
        rows=max(map(len, columns.values()), default=0),
        targets=targets,
        remarks=tuple(remarks),
    )


def _require_named(columns: Mapping[str, Any], wanted: Wanted, where: Path | str) -> None:
    """The names are not listed: in a table without a header line they are the first record."""
    if wanted.label is not None and wanted.unlabelled:
        raise BadInput(f"--label {wanted.label} and --no-label say the opposite; leave one of them out.")
    if wanted.label is None and not wanted.unlabelled and not wanted.targets:
        raise BadInput(
            f"{where}: say which column is the label among its {len(columns)} columns, by --label; or that there is none, by "
            "--no-label; or which columns models are to predict, by --target. Their names must stand in its first line.",
            f"limbeck schema draft {where} --label COLUMN",
        )
    for name, what in ((wanted.label, "the label"), *((target, "a target") for target in wanted.targets)):
        if name is not None and name not in columns:
            raise BadInput(
                f"{where}: there is no column '{name}' for {what} among its {len(columns)} columns; their names must stand in "
                f"its first line{_separated_otherwise(columns)}.",
                f"limbeck schema draft {where} --label COLUMN",
            )
    if wanted.unit is not None and wanted.unit not in columns:
        raise no_person_column(where, wanted.unit, len(columns))
    if wanted.unit in wanted.targets or wanted.label in wanted.targets:
        raise BadInput("A column cannot be a target and also the label, or who a record is about.")


def _separated_otherwise(columns: Mapping[str, Any]) -> str:
    """Said without a name: a table whose cells no comma separates has one column."""
    marks = [word for mark, word in OTHER_MARKS.items() if len(columns) == 1 and mark in next(iter(columns))]
    return f", with a comma between them, and this one has {marks[0]}; save it with commas" if marks else ""


def _is_number_to_predict(cells: list[str]) -> str | None:
    """Why a label looks like a number to predict rather than a class; None if it does not."""
    values = {cell.strip() for cell in cells if cell.strip()}
    if len(values) <= MANY_NUMBERS:
        return None
    try:
        numbers = {table.number(value) for value in values}
    except ValueError:
        return None
    whole = all(number == number and abs(number) < 1e15 and number == int(number) for number in numbers)
    return f"{len(values)} different numbers" if not whole or len(values) > MANY_WHOLE else None


def _place(kept: list[str], order: list[str], label: str) -> int | None:
    """How many of the columns that are kept stand before the label; None if all do."""
    before = sum(order.index(name) < order.index(label) for name in kept)
    return before if before < len(kept) else None


def _proposal(label: str, why: str) -> str:
    return (
        f"The label '{label}' has {why}. If it is a number to predict, and not a class, draft again with --target {label} in "
        f'place of --label: then it is a column, named under targets = ["{label}"], and models are judged by regression.'
    )


def _require_targets(found: Mapping[str, Finding], targets: tuple[str, ...], where: Path | str) -> None:
    for name in targets:
        if found[name].column is None:
            raise BadInput(f"{where}: column '{name}' cannot be a target, because it {found[name].says}.")


def no_person_column(where: Path | str, unit: str, count: int) -> BadInput:
    return BadInput(
        f"{where}: there is no column '{unit}' with one value per row for the persons among its {count} columns; their names "
        "must stand in its first line."
    )


def _require_names(labels: Iterable[Any]) -> None:
    """Labels that no run would take are refused in the draft, too."""
    for kind, what in ((bool, "truth values"), (float, "numbers with a point"), (int, "negative numbers")):
        if any(isinstance(label, kind) for label in labels):
            raise BadInput(
                f"The labels are {what}; they must be class indices, which are whole numbers that count from 0, or class names."
            )


def class_sizes(counts: Mapping[Any, int], names: tuple[str, ...] = ()) -> dict[str, int]:
    """Class sizes; whole numbers are class indices, so the classes are 0 to the largest."""
    if all(type(value) is int and value >= 0 for value in counts) and counts:
        top = max(max(counts) + 1, len(names))
        if top > MOST_CLASSES:
            raise BadInput(f"The labels go beyond {MOST_CLASSES}; they must be class indices that count from 0.")
        return {names[i] if i < len(names) else str(i): counts.get(i, 0) for i in range(top)}
    _require_names(counts)
    texts = [name for name in counts if isinstance(name, str) and name]
    digits = all(name.isdecimal() and len(name) < 20 for name in texts)
    return {name: counts[name] for name in sorted(texts, key=lambda name: (int(name) if digits else 0, name))}
