"""What is public about a data set: the only thing that a method, a plan or a reader may know before a query is paid.

Nothing in a schema may be computed from the private records unless the owner says that it is public. A drafted schema
lists such entries under `unconfirmed`; while one is left, no plan is made from it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from limbeck.errors import BadInput
from limbeck.privacy.column import LEAST_APART, Column
from limbeck.privacy.constraint import Constraint
from limbeck.privacy.declared_range import ABSENT, UNSAID, filled
from limbeck.privacy.entries import (
    MOST_NUMBERS,
    MOST_RECORDS,
    is_range,
    is_texts,
    is_whole,
    plain_value,
    plainly,
    require,
    shown,
    whole_number,
)
from limbeck.privacy.picture_entries import require_resize, with_shape
from limbeck.privacy.rule_reading import rules_of
from limbeck.privacy.rules import Rules
from limbeck.privacy.toml_file import read_toml
from limbeck.privacy.unit import ADD_REMOVE, UNIT_RECORD, require_unit, unit_words

__all__ = ["ADD_REMOVE", "LEAST_APART", "Column", "Schema"]

NO_CLASSES = ("all records",)  # the one class of a table without a label: all of its records
_LATER = ("units", "unit_records", "targets", "label_at", "constraints", "resize")  # absent from the first certificates


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public description of a data set.

    `shape` is the shape of one encoded record: (channels, height, width) of an image, (numbers,) of a table.
    Encoded values lie in [-1, 1]; `low` and `high` are the public range of the raw values that map there; only a
    table with columns may leave them out.
    `class_sizes` is given only where it is public; otherwise methods buy the counts. `records` is the public
    (approximate) number of records, which rates and the limit on delta are taken from.

    `unit` is what neighbours differ by: "record", or all records of a person, and then the text names the column, the array or
    the level of folders that says who a record is about. `units` is the public number of persons, which the limit on delta is
    then taken from; of one person at most `unit_records` records are used in an answer, where it is given.

    A table with columns may have no label: then `classes` and `label` are left out, and all records are of one class. `targets`
    are columns that models are to predict, where there is no label or besides it: a number by regression. `label_at` is how many
    columns stand before the label in the data; left out: all. `constraints` are what every row keeps to. `resize` (fit, fill or
    crop) is how pictures of another size are brought to the shape; without it all have that size.

    >>> schema = Schema(name="scans", shape=(1, 28, 28), classes=("benign", "malignant"), records=5000, low=0, high=255)
    >>> schema.is_image, schema.numbers
    (True, 784)
    >>> replaced = dataclasses.replace(schema, unit="patient", units=700)
    >>> schema.unit_words, replaced.unit_words, replaced.privacy_units
    ('one record', 'one person (patient)', 700)
    """

    name: str
    shape: tuple[int, ...]
    classes: tuple[str, ...] = NO_CLASSES
    records: int
    low: float = UNSAID
    high: float = UNSAID
    class_sizes: tuple[int, ...] | None = None
    columns: tuple[Column, ...] = ()
    label: str = "label"
    augmentation: tuple[str, ...] = ("color", "crop", "cutout", "flip", "scale", "rotate")
    adjacency: str = ADD_REMOVE
    unit: str = UNIT_RECORD
    unconfirmed: tuple[str, ...] = ()
    units: int | None = None
    unit_records: int | None = None
    targets: tuple[str, ...] = ()
    label_at: int | None = None
    constraints: tuple[Constraint, ...] = ()
    resize: str | None = None

    def __post_init__(self) -> None:
        require("name", self.name, isinstance(self.name, str), "a text")
        require("label", self.label, isinstance(self.label, str), "a text")
        for entry in ("classes", "augmentation", "unconfirmed", "targets"):
            require(entry, getattr(self, entry), is_texts(getattr(self, entry)), "a list of texts")
        if not self.name or any(ord(letter) < 32 for letter in self.name):
            raise BadInput(f"A schema needs a printable name, got {shown(self.name)}.")
        for entry, end in filled(self.name, self.low, self.high, bool(self.columns)).items():
            object.__setattr__(self, entry, end)
        self._check_form()
        require_resize(self.resize, self.is_image)
        self._check_label()
        self._check_sizes()
        if self.adjacency != ADD_REMOVE:
            raise BadInput(f"Only adjacency '{ADD_REMOVE}' is supported so far, got {shown(self.adjacency)}.")
        names = [column.name for column in self.columns]
        require_unit(self.unit, self.units, self.unit_records, self.records, names, self.label)
        listed = isinstance(self.constraints, tuple) and all(isinstance(each, Constraint) for each in self.constraints)
        require("constraints", self.constraints, listed, "a list of constraints")
        assert self.rules is not None  # what they say of columns is looked at now

    def _check_form(self) -> None:
        sides = self.shape if isinstance(self.shape, tuple) else ()
        if len(sides) not in (1, 3) or not all(is_whole(side) and 1 <= side <= MOST_NUMBERS for side in sides):
            raise BadInput(
                f"shape must be (channels, height, width) or (numbers,) with sides >= 1, got {shown(self.shape)}."
            )
        if self.numbers > MOST_NUMBERS:
            raise BadInput(f"shape {shown(self.shape)} makes records of more than {MOST_NUMBERS} numbers.")
        if not is_range(self.low, self.high):
            raise BadInput(f"The value range needs low < high, got low={shown(self.low)}, high={shown(self.high)}.")
        listed = isinstance(self.columns, tuple) and all(isinstance(column, Column) for column in self.columns)
        require("columns", self.columns, listed, "a list of columns")
        if self.columns and self.shape != (self._encoded_width(),):
            raise BadInput(f"shape {self.shape} does not fit the columns, which take {self._encoded_width()} numbers.")

    def _check_label(self) -> None:
        """Guarantee: without a label there is one class and no name of a label, so nothing can be read as one."""
        names = [column.name for column in self.columns]
        if self.classes == NO_CLASSES:
            if not self.columns:
                raise BadInput("The schema has no entry classes; only a table with columns may have no label.")
            if self.label not in ("", "label"):
                raise BadInput(
                    f"The schema of '{self.name}' names the label {shown(self.label)} but no classes. List them; or, if it is a "
                    "number, describe it as a column, name that in targets and leave label out."
                )
            object.__setattr__(self, "label", "")
        elif len(self.classes) < 2:
            raise BadInput(f"A set needs at least 2 classes, the schema of '{self.name}' lists {len(self.classes)}.")
        if len(set(self.classes)) != len(self.classes):
            raise BadInput(f"The schema of '{self.name}' lists a class twice.")
        unknown = [name for name in self.targets if name not in names]
        if unknown or len(set(self.targets)) != len(self.targets):
            raise BadInput(
                f"targets must list names of columns, each once, got {shown(unknown[0] if unknown else self.targets)}."
            )
        right = is_whole(self.label_at) and self.has_label and 0 <= self.label_at <= len(names)  # type: ignore[operator]
        form = f"a whole number of columns before the label, at most {len(names)}, or left out"
        require("label_at", self.label_at, self.label_at is None or right, form)

    def _check_sizes(self) -> None:
        """Guarantee: `records` is a whole number, so the limit on delta that is taken from it holds."""
        if not is_whole(self.records) or not 1 <= self.records <= MOST_RECORDS:
            raise BadInput(
                f"records must be at least 1, a whole number and at most {MOST_RECORDS}, got {shown(self.records)}."
            )
        sizes = self.class_sizes
        if sizes is not None and not self.has_label:
            raise BadInput(f"class_sizes={shown(sizes)} is for classes, and the schema of '{self.name}' lists none.")
        if sizes is not None and (
            not isinstance(sizes, tuple)
            or len(sizes) != len(self.classes)
            or not all(is_whole(size) and 1 <= size <= MOST_RECORDS for size in sizes)
        ):
            raise BadInput(f"class_sizes must give a size >= 1 for each of the {len(self.classes)} classes.")

    def _encoded_width(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def has_label(self) -> bool:
        """Whether records have a class; without, all are of one."""
        return self.classes != NO_CLASSES

    @cached_property
    def rules(self) -> Rules:
        """The constraints, for whoever makes or checks rows."""
        columns = {column.name: column for column in self.columns}
        label = Column(name=self.label, categories=self.classes) if self.has_label and self.constraints else None
        return rules_of(self.constraints, columns, label)

    @property
    def order(self) -> tuple[str, ...]:
        """The names of columns and label as they stand in the data."""
        names = [column.name for column in self.columns]
        if self.has_label:
            names.insert(len(names) if self.label_at is None else self.label_at, self.label)
        return tuple(names)

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 3

    @property
    def numbers(self) -> int:
        """How many numbers one encoded record has."""
        return math.prod(self.shape)

    @property
    def by_person(self) -> bool:
        """Whether the unit of privacy is a person with all of their records."""
        return self.unit != UNIT_RECORD

    @property
    def privacy_units(self) -> int:
        """The N of the limit on delta: how many records there are, or how many persons where the unit is a person."""
        return self.units if self.by_person and self.units is not None else self.records

    @property
    def reach(self) -> float:
        """How much longer than the clip of one record the clip of a unit is.

        A person's records that have nothing in common add up like steps in different directions, as the root of their number.
        So with a declared `unit_records` it is the root of that, and else a person has the clip of a single record.
        """
        return math.sqrt(self.unit_records) if self.unit_records is not None else 1.0

    @property
    def unit_words(self) -> str:
        return unit_words(self.unit)

    def require_confirmed(self) -> None:
        """Refuse to plan while an entry that was read off the private records is not declared public (rule 6)."""
        if self.unconfirmed:
            raise BadInput(
                f"The schema of '{self.name}' was drafted from the data; these entries are not confirmed as public: "
                f"{', '.join(self.unconfirmed)}. Check each, then remove it from 'unconfirmed' in the file (Python: confirmed())."
            )

    @property
    def to_confirm(self) -> str:
        """The entries under `unconfirmed`, one in a line with its value: what `confirmed` declares public."""
        columns = {f"columns.{column.name}": column.words for column in self.columns}
        return "\n".join(f"{entry}: {plainly({**vars(self), **columns}.get(entry))}" for entry in self.unconfirmed)

    def confirmed(self, *entries: str) -> Schema:
        """With these entries, or all, declared public by whoever calls this: they will be on every certificate. What is only
        known from the records is not public: widen ranges, round numbers, list all values first. `to_confirm` shows them."""
        for entry in entries:
            require(
                f"What is confirmed in '{self.name}'", entry, entry in self.unconfirmed, "an entry under unconfirmed"
            )
        return dataclasses.replace(self, unconfirmed=tuple(e for e in self.unconfirmed if entries and e not in entries))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the certificate lists them as public assumptions.

        What came after the first certificates is written only where it says something (article 2 of their constitution).
        """
        values = dataclasses.asdict(self) | {
            "columns": [column.to_dict() for column in self.columns],
            "constraints": [each.to_dict() for each in self.constraints],
        }
        silent = {key for key in _LATER if values[key] in (None, (), [])}
        if not self.has_label:
            silent |= {"classes", "label"}
        return {key: value for key, value in values.items() if key not in silent}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Schema:
        require("A schema", values, isinstance(values, dict), "a table of entries")
        values = with_shape(values)
        columns = values.get("columns", ())
        listed = isinstance(columns, (list, tuple)) and all(isinstance(column, dict) for column in columns)
        require("columns", columns, listed, "a list of tables")
        whole = ("records", "shape", "class_sizes", "units", "unit_records")
        tidy = {key: whole_number(value) if key in whole else value for key, value in values.items()}
        constraints = values.get("constraints", ())
        listed = isinstance(constraints, (list, tuple)) and all(isinstance(each, dict) for each in constraints)
        require("constraints", constraints, listed, "a list of tables")
        made = {
            "columns": tuple(_made(Column, column, "column ") for column in columns),
            "constraints": tuple(Constraint.from_dict(each) for each in constraints),
        }
        return _made(Schema, {**ABSENT, **tidy, **{key: value for key, value in made.items() if key in values}})

    @staticmethod
    def read(path: Path) -> Schema:
        """Read a schema from a TOML file."""
        return Schema.from_dict(read_toml(path))


_Made = TypeVar("_Made", Schema, Column)


def _made(kind: type[_Made], values: dict[str, Any], what: str = "") -> _Made:
    """Build a schema or a column, with a sentence for entries that are not known or missing."""
    fields = dataclasses.fields(kind)
    known = sorted(field.name for field in fields)
    unknown = sorted(set(values) - set(known))
    if unknown:
        listed = ", ".join(shown(name)[1:-1] for name in unknown[:10]) + (", ..." if len(unknown) > 10 else "")
        raise BadInput(f"Unknown schema {what}entries: {listed}. Known are: {', '.join(known)}.")
    missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in values]
    if missing:
        raise BadInput(f"The schema has no {what}entry {', '.join(missing)}.")
    build: Callable[..., _Made] = kind
    return build(**{key: plain_value(value) for key, value in values.items()})
