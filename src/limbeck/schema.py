"""What is public about a data set: the only thing that a method, a plan or a reader may know before a query is paid.

Nothing in a schema may be computed from the private records unless the owner says that it is public. A drafted schema
lists such entries under `unconfirmed`; while one is left, no plan is made from it.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, DataNotFound

ADD_REMOVE = "add_remove"
UNIT_RECORD = "record"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: numeric with a public range, or categorical with a public list of values.

    A categorical column is encoded as one number per category, or as one number (its place in the list) when `ordinal`.
    A numeric column that is `integer` is rounded to whole numbers when a synthetic record is decoded.
    """

    name: str
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] = ()
    ordinal: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        if self.categories:
            if len(set(self.categories)) != len(self.categories):
                raise BadInput(f"Column '{self.name}' lists a category twice; every category must stand once.")
        elif self.low is None or self.high is None or not (-math.inf < self.low < self.high < math.inf):
            raise BadInput(
                f"Column '{self.name}' needs a finite range low < high or a list of categories, "
                f"got low={self.low}, high={self.high}."
            )

    @property
    def numeric(self) -> bool:
        return not self.categories

    @property
    def width(self) -> int:
        """How many numbers the column takes in an encoded record."""
        return 1 if self.numeric or self.ordinal else len(self.categories)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public description of a labelled data set.

    `shape` is the shape of one encoded record: (channels, height, width) of an image, (numbers,) of a table.
    Encoded values lie in [-1, 1]; `low` and `high` are the public range of the raw values that map there.
    `class_sizes` is given only where it is public; otherwise methods buy the counts. `records` is the public
    (approximate) number of records, which rates and the limit on delta are taken from.
    """

    name: str
    shape: tuple[int, ...]
    classes: tuple[str, ...]
    records: int
    low: float = 0.0
    high: float = 255.0
    class_sizes: tuple[int, ...] | None = None
    columns: tuple[Column, ...] = ()
    label: str = "label"
    augmentation: tuple[str, ...] = ("color", "crop", "cutout", "flip", "scale", "rotate")
    adjacency: str = ADD_REMOVE
    unit: str = UNIT_RECORD
    unconfirmed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or any(ord(letter) < 32 for letter in self.name):
            raise BadInput(f"A schema needs a printable name, got {self.name!r}.")
        if len(self.classes) < 2:
            raise BadInput(f"A set needs at least 2 classes, the schema of '{self.name}' lists {len(self.classes)}.")
        if len(set(self.classes)) != len(self.classes):
            raise BadInput(f"The schema of '{self.name}' lists a class twice.")
        if len(self.shape) not in (1, 3) or any(side < 1 for side in self.shape):
            raise BadInput(f"shape must be (channels, height, width) or (numbers,) with sides >= 1, got {self.shape}.")
        if self.records < 1:
            raise BadInput(f"records must be at least 1, got {self.records}.")
        if not (-math.inf < self.low < self.high < math.inf):
            raise BadInput(f"The value range needs low < high, got low={self.low}, high={self.high}.")
        if self.class_sizes is not None and (
            len(self.class_sizes) != len(self.classes) or any(size < 1 for size in self.class_sizes)
        ):
            raise BadInput(f"class_sizes must give a size >= 1 for each of the {len(self.classes)} classes.")
        if self.columns and self.shape != (sum(column.width for column in self.columns),):
            raise BadInput(f"shape {self.shape} does not fit the columns, which take {self._encoded_width()} numbers.")
        if self.adjacency != ADD_REMOVE or self.unit != UNIT_RECORD:
            raise BadInput(f"Only adjacency '{ADD_REMOVE}' with unit '{UNIT_RECORD}' is supported so far.")

    def _encoded_width(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def is_image(self) -> bool:
        return len(self.shape) == 3

    @property
    def numbers(self) -> int:
        """How many numbers one encoded record has."""
        return math.prod(self.shape)

    def require_confirmed(self) -> None:
        """Refuse to plan while an entry that was read off the private records is not declared public (rule 6)."""
        if self.unconfirmed:
            raise BadInput(
                f"The schema of '{self.name}' was drafted from the data; these entries are not confirmed as public: "
                f"{', '.join(self.unconfirmed)}. Check each, then remove it from 'unconfirmed' in the schema file."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the certificate lists them as public assumptions."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Schema:
        known = {field.name for field in dataclasses.fields(Schema)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise BadInput(f"Unknown schema entries: {', '.join(unknown)}. Known are: {', '.join(sorted(known))}.")
        try:
            tidy = _tuples(values)
            tidy["columns"] = tuple(Column(**_tuples(column)) for column in values.get("columns", ()))
            return Schema(**tidy)
        except (TypeError, AttributeError) as error:
            raise BadInput(f"The schema does not have the right form: {error}.") from None

    @staticmethod
    def read(path: Path) -> Schema:
        """Read a schema from a TOML file."""
        try:
            return Schema.from_dict(tomllib.loads(path.read_text(encoding="utf-8")))
        except OSError:
            raise DataNotFound(f"There is no readable schema file at {path}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path} is not a valid TOML file: {error}.") from None


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Lists, which TOML and JSON give, as the tuples that frozen values hold."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
