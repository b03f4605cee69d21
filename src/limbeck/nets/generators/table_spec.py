"""What a model of a table is, as a value: a mixture over cells of columns, and a model of the label (methods/mosaic).

CONSTITUTION: `kind` "mosaic" means these fields and these weights for good. What is drawn otherwise gets another kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from limbeck.errors import BadInput

FIELDS = {"kind", "components", "edges", "opinion"}


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """The form of the weights.

    components  of the mixture, for each class
    edges       how many values each column is cut at; 0 for categories
    opinion     how much of the mixture's log odds the labels keep; None: a row is of the class of its component

    >>> TableSpec.from_dict({"kind": "mosaic", "components": 250, "edges": [12, 0], "opinion": 0.25}).edges
    (12, 0)
    """

    kind: ClassVar[str] = "mosaic"
    components: int
    edges: tuple[int, ...]
    opinion: float | None = None

    def __post_init__(self) -> None:
        if not _is_whole(self.components, 1):
            raise BadInput(f"Expected components={self.components!r:.40} to be a whole number of at least 1.")
        if not self.edges or not all(_is_whole(count, 0) for count in self.edges):
            raise BadInput("Expected edges to be a whole number of at least 0 for each column.")
        is_number = isinstance(self.opinion, int | float) and not isinstance(self.opinion, bool)
        if self.opinion is not None and not (is_number and 0 <= self.opinion <= 1 and math.isfinite(self.opinion)):
            raise BadInput(f"Expected opinion={self.opinion!r:.40} to lie in 0 ... 1.")

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "components": self.components,
            "edges": list(self.edges),
            "opinion": self.opinion,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableSpec:
        if set(values) != FIELDS or values["kind"] != cls.kind or not isinstance(values["edges"], list):
            raise BadInput(f"Expected a model of a table with the fields {sorted(FIELDS)}, got {sorted(values)}.")
        return cls(components=values["components"], edges=tuple(values["edges"]), opinion=values["opinion"])


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
