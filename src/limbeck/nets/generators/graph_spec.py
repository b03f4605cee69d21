"""What a graphical model of a table is, as a value: tables of new columns given earlier ones (methods/graphical).

CONSTITUTION: `kind` "graph" means these fields and these weights for good. What is drawn otherwise gets another kind, or a field
whose absence means what it meant before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from limbeck.errors import BadInput

FIELDS = {"kind", "edges", "steps"}
Step = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class GraphSpec:
    """The form of the weights.

    edges  how many values each column is cut at; 0 for categories
    steps  columns by their places, the label after all others: which ones a step draws, and which earlier ones they depend on

    >>> GraphSpec.from_dict({"kind": "graph", "edges": [3, 0], "steps": [[[1], []], [[0], [1]]]}).steps
    (((1,), ()), ((0,), (1,)))
    """

    kind: ClassVar[str] = "graph"
    edges: tuple[int, ...]
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.edges or not all(_is_whole(count) for count in self.edges):
            raise BadInput("Expected edges to be a whole number of at least 0 for each column.")
        done: set[int] = set()
        for new, given in self.steps:
            places = [*new, *given]
            right = new and all(map(_is_whole, places)) and len(set(places)) == len(places)
            if not (right and set(given) <= done and not set(new) & done):
                raise BadInput("Every step draws columns that are not there yet, given columns that are.")
            done |= set(new)
        if done not in (set(range(len(self.edges))), set(range(len(self.edges) + 1))):
            raise BadInput(f"The steps draw {len(done)} columns of {len(self.edges)} and the label.")

    @property
    def has_label(self) -> bool:
        return any(len(self.edges) in new for new, _ in self.steps)

    def to_dict(self) -> dict[str, Any]:
        steps = [[list(new), list(given)] for new, given in self.steps]
        return {"kind": self.kind, "edges": list(self.edges), "steps": steps}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GraphSpec:
        if set(values) != FIELDS or values["kind"] != cls.kind or not _is_listed(values["edges"], values["steps"]):
            raise BadInput(f"Expected a model of a table with the fields {sorted(FIELDS)}, got {sorted(values)}.")
        steps = tuple((tuple(new), tuple(given)) for new, given in values["steps"])
        return cls(edges=tuple(values["edges"]), steps=steps)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_listed(edges: object, steps: object) -> bool:
    return (
        isinstance(edges, list)
        and isinstance(steps, list)
        and all(isinstance(step, list) and len(step) == 2 for step in steps)
        and all(isinstance(part, list) for step in steps for part in step)
    )
