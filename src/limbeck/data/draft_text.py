"""A surveyed data set as the TOML text of a schema, with comments for the owner who checks it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from limbeck.data.named import ALL_FAMILIES
from limbeck.data.rounding import round_count
from limbeck.data.surveyed import Survey
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema

NOT_UTF8 = "some names or values are no UTF-8 and have a \ufffd in place of their letters; save the file as UTF-8 and draft again"
ASKED = ("flip", "color")  # changes that may make another picture of what is medical or written


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The TOML text of a schema; the columns that are left out, each with the reason; and what else its owner should know."""

    text: str
    left_out: Mapping[str, str]
    remarks: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        return Schema.from_dict(tomllib.loads(self.text))

    @property
    def aloud(self) -> list[str]:
        """What must not go unnoticed, in sentences."""
        return [*(f"left out: column {name} {why}" for name, why in self.left_out.items()), *self.remarks]


def written(found: Survey, name: str, where: str) -> Draft:
    text = "\n".join(_lines(found, name, where)) + "\n"
    try:  # a draft that cannot be read back says so now, not in the next command
        Schema.from_dict(tomllib.loads(text))
    except (BadInput, ValueError):  # without the reason, which may quote the records
        raise BadInput(
            f"The records of {where} have names or values that no schema can hold; write one by hand."
        ) from None
    remarks = (*found.remarks, *found.picture_remarks, *([NOT_UTF8] if "\ufffd" in text else []))
    return Draft(text=text, left_out=found.left_out, remarks=remarks)


def _text(value: str) -> str:
    """A TOML string; JSON escapes all that TOML wants escaped but the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(values: Sequence[str]) -> str:
    line = "[" + ", ".join(_text(value) for value in values) + "]"
    return line if len(line) <= 100 else "[\n" + "".join(f"    {_text(value)},\n" for value in values) + "]"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _value(value: float | str) -> str:
    return _text(value) if isinstance(value, str) else _number(value)


def _lines(found: Survey, name: str, where: str) -> list[str]:
    if found.label and len(found.sizes) < 2:
        classes = "1 class" if len(found.sizes) == 1 else "no label that could be a class"
        raise BadInput(f"{where} has {classes}; a labelled set needs at least 2 classes.")
    if (found.left_out or not found.label) and not found.columns:
        raise BadInput(
            f"{where}: no column is left beside the label; the {len(found.left_out)} others look like identifiers or free text, "
            "or have no value. Write a schema by hand."
        )
    total = found.records
    taken = "rates" if found.persons else "rates and the limit on delta"
    lines = [
        "# Draft of a schema: what may be publicly known about the data. Read off the records; check every entry",
        "# named under 'unconfirmed', change it to what is public anyway, and take its name off that list.",
        "# An entry that is only known from the records is not public: give a wider range, a rounder number.",
        f"unconfirmed = {_list(_unconfirmed(found))}",
        "",
        "# The name stands for the data in the privacy ledger: one name, one budget.",
        f"name = {_text(name)}",
        "",
        *_label_lines(found),
        "",
        f"# About how many records there are, rounded; {taken} are taken from it.",
        f"records = {round_count(total)}",
        "",
        *_person_lines(found, round_count(total)),
        *_form(found),
        *_size_lines(found),
    ]
    for name, why in found.left_out.items():
        comment = name.encode("unicode_escape").decode()
        lines += ["", f"# Left out: column {comment} {why}. Add it if it is wanted."]
    for column in found.columns:
        lines += ["", *_column_lines(column, found.says.get(column.name, ""))]
    return lines


def _label_lines(found: Survey) -> list[str]:
    """Classes, label and targets; whichever there are."""
    targets = [
        "# Columns that models are to predict; a number by regression.",
        f"targets = {_list(found.targets)}",
    ]
    if not found.label:
        return targets if found.targets else ["# There is no label: classes and label are left out."]
    remarks = [f"# {remark}" for remark in found.remarks]
    place = (
        [] if found.label_at is None else ["# Columns before the label in the data.", f"label_at = {found.label_at}"]
    )
    return [
        "# One class per label. Is the list public, also the rare ones?",
        *(comment.encode("unicode_escape").decode() for comment in remarks),
        f"classes = {_list(list(found.sizes))}",
        f"label = {_text(found.label)}",
        *place,
        *(targets if found.targets else []),
    ]


def _size_lines(found: Survey) -> list[str]:
    if not found.label:
        return []
    return [
        "",
        "# Class sizes, only if they are public; without them a method buys the counts from its budget.",
        f"# class_sizes = [{', '.join(str(size) for size in found.sizes.values())}]",
    ]


def _person_lines(found: Survey, records: int) -> list[str]:
    """The entries about persons; or, as a comment, what may say who a record is about."""
    lines = []
    for name in found.maybe_persons:
        comment = name.encode("unicode_escape").decode()
        lines += [
            f"# Does {comment} say who a record is about? Then one person may have several records, and the promise is for",
            "# one record only. To protect a person with all of their records, draft again with --unit and this name.",
            "",
        ]
    if found.persons is None:
        return lines
    persons = found.persons
    return [
        "# Who a record is about: neighbours differ by all records of one person. And about how many persons there are,",
        "# rounded; the limit on delta is taken from it.",
        f"unit = {_text(persons.unit)}",
        f"units = {max(1, min(round_count(persons.count), records))}",
        "# At most so many records of one person are used in an answer. Without it all are, and add no more than one record may.",
        f"# Records that half of the persons have at most: {persons.usual}. That one person has at most: {persons.most}.",
        "# unit_records = 10",
        "",
    ]


def _unconfirmed(found: Survey) -> list[str]:
    persons = [] if found.persons is None else ["units"]
    classes = ["classes"] if found.label else []
    if found.columns:
        return [*classes, "records", *persons, *(f"columns.{column.name}" for column in found.columns)]
    resize = ["resize"] if found.resize else []
    asked = ["augmentation"] if found.asks_of_changes else []
    return [*classes, "records", *persons, "shape", *resize, "low", "high", *asked]


def _form(found: Survey) -> list[str]:
    shape = f"shape = [{', '.join(str(side) for side in found.shape)}]"
    bounds = [f"low = {_number(found.low)}", f"high = {_number(found.high)}"]
    if found.columns:
        note = (
            "# Numbers per encoded row (one per numeric column, one per category, one more where cells may be missing)."
        )
        return [note, shape, *bounds, "augmentation = []"]
    if len(found.shape) == 1:
        note = "# Numbers per record, and the range that all values lie in; values outside are clamped."
        return [note, shape, *bounds, "augmentation = []"]
    return [
        *(f"# {remark}" for remark in found.picture_remarks),
        "# Channels, height, width; and the range that all values lie in (0 to 255 for ordinary images).",
        shape,
        *([f"resize = {_text(found.resize)}"] if found.resize else []),
        *bounds,
        "",
        *_change_lines(found),
    ]


def _change_lines(found: Survey) -> list[str]:
    if not found.asks_of_changes:
        return [
            "# Changes of an image that keep its class. Take out flip where a mirrored image means something else.",
            f"augmentation = {_list(ALL_FAMILIES)}",
        ]
    return [
        "# Changes of an image that keep its class. Does a mirrored one mean the same? In scans and in writing it seldom does;",
        '# if so here, add "flip". And "color", if brightness and contrast may change.',
        f"augmentation = {_list([family for family in ALL_FAMILIES if family not in ASKED])}",
    ]


def _column_lines(column: Column, says: str) -> list[str]:
    lines = ["[[columns]]", f"name = {_text(column.name)}", *([f"# {says}"] if says else [])]
    if column.numeric:
        lines += _range_lines(column)
    else:
        lines += [
            "# All values that are publicly known to be possible; others are read as none of them.",
            f"categories = {_list(column.categories)}",
        ]
    if column.missing:
        lines += [
            "# Some cells have no value. That is a value of its own, and takes one more number.",
            "missing = true",
        ]
    return lines


def _range_lines(column: Column) -> list[str]:
    assert column.low is not None and column.high is not None
    lines = [
        *([f"kind = {_text(column.kind)}"] if column.kind else []),
        *([f"format = {_text(column.format)}"] if column.format else []),
        "# A public range, rounded outwards; values outside are clamped.",
        f"low = {_value(column.low)}",
        f"high = {_value(column.high)}",
        *([] if column.kind else [f"integer = {'true' if column.integer else 'false'}"]),
    ]
    if column.digits is not None:
        lines += ["# Digits after the point.", f"digits = {column.digits}"]
    if column.special:
        listed = ", ".join(_value(value) for value in column.special)
        lines += ["# Values that many records have and that come back exactly.", f"special = [{listed}]"]
    return lines
