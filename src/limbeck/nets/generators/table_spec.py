"""What a model of a table is, as a value: a mixture over cells of columns, and a model of the label (methods/mosaic).

CONSTITUTION: `kind` "mosaic" means these fields and these weights for good. What is drawn otherwise gets another kind, or a field
whose absence means what it meant before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from limbeck.errors import BadInput

FIELDS = {"kind", "components", "edges", "opinion"}
LATER = ("inner", "groups", "leaders")


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """The form of the weights.

    components  of the mixture, for each class
    edges       how many values each column is cut at; 0 for categories
    opinion     how much of the mixture's log odds the labels keep; None: a row is of the class of its component
    inner       how many finer cells are known of each column; 0, or left out for all: values are even in their cell
    groups      how many cells the categories of each column share; 0, or left out for all: each has its own
    leaders     of each column the place, from 1 on, of the one that decides its cell; 0, or left out for all: none does

    >>> TableSpec.from_dict({"kind": "mosaic", "components": 250, "edges": [12, 0], "opinion": 0.25}).edges
    (12, 0)
    """

    kind: ClassVar[str] = "mosaic"
    components: int
    edges: tuple[int, ...]
    opinion: float | None = None
    inner: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    leaders: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not _is_whole(self.components, 1):
            raise BadInput(f"Expected components={self.components!r:.40} to be a whole number of at least 1.")
        if not self.edges or not all(_is_whole(count, 0) for count in self.edges):
            raise BadInput("Expected edges to be a whole number of at least 0 for each column.")
        for entry in LATER:
            counts = getattr(self, entry)
            if counts and (len(counts) != len(self.edges) or not all(_is_whole(count, 0) for count in counts)):
                raise BadInput(f"Expected {entry} to be a whole number of at least 0 for each column, or left out.")
        is_number = isinstance(self.opinion, int | float) and not isinstance(self.opinion, bool)
        if self.opinion is not None and not (is_number and 0 <= self.opinion <= 1 and math.isfinite(self.opinion)):
            raise BadInput(f"Expected opinion={self.opinion!r:.40} to lie in 0 ... 1.")

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "components": self.components,
            "edges": list(self.edges),
            "opinion": self.opinion,
            **{entry: list(counts) for entry in LATER if (counts := getattr(self, entry))},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableSpec:
        listed = all(isinstance(values[entry], list) for entry in ("edges", *LATER) if entry in values)
        if set(values) - set(LATER) != FIELDS or values["kind"] != cls.kind or not listed:
            raise BadInput(f"Expected a model of a table with the fields {sorted(FIELDS)}, got {sorted(values)}.")
        later = {entry: tuple(values[entry]) for entry in LATER if entry in values}
        return cls(components=values["components"], edges=tuple(values["edges"]), opinion=values["opinion"], **later)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
