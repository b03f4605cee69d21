"""Cells of a table: columns cut into cells, and for tuples of columns the cell that a record lies in (marginals)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.vault.maps.base import Map, digest_of
from limbeck.vault.maps.bound import SAFE, Bound

MOST_CELLS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How one column of an encoded record becomes a cell.

    start    the first of its numbers
    numbers  how many of them: of several the largest says which cell it is, one is cut at the edges
    edges    in encoded units; a number on an edge lies above it
    missing  whether one more number says that there is no value, which is the last cell
    groups   of several numbers: the cell of each, where some share one; every cell from 0 on has a number

    >>> column = Cut(start=0, numbers=1, edges=torch.tensor([-0.5, 0.5], dtype=torch.float64), missing=True)
    >>> column.cells, column.of(torch.tensor([[-1.0, 0.0], [0.5, 0.0], [0.9, 1.0]])).tolist()
    (4, [0, 2, 3])
    """

    start: int
    numbers: int
    edges: Tensor
    missing: bool = False
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.groups and (len(self.groups) != self.numbers or set(self.groups) != set(range(max(self.groups) + 1))):
            raise BadInput("Groups give each of a column's numbers its cell, and every cell has a number.")
        is_cut = self.numbers == 1 and self.edges.dim() == 1
        if self.start < 0 or self.numbers < 1 or not (is_cut or (self.edges.dim() == 1 and not len(self.edges))):
            raise BadInput("A column is cut at a list of edges, or it has a number for each of its cells.")

    @property
    def cells(self) -> int:
        if self.groups:
            return max(self.groups) + 1 + self.missing
        return (len(self.edges) + 1 if self.numbers == 1 else self.numbers) + self.missing

    @property
    def end(self) -> int:
        return self.start + self.numbers + self.missing

    def parameters(self) -> tuple[Any, ...]:
        """For a map's digest; without groups as it was before there were any."""
        grouped = (self.groups,) if self.groups else ()
        return (self.start, self.numbers, digest_of(self.edges.double()), self.missing, *grouped)

    def of(self, x: Tensor) -> Tensor:
        """The cell of each record. A function of the record alone, which every record has (rule 8)."""
        if self.numbers > 1:
            largest = x[:, self.start : self.end].argmax(1)
            cell_of = torch.tensor(
                [*self.groups, *([max(self.groups) + 1] if self.missing else [])] if self.groups else []
            )
            return cell_of.to(x.device)[largest] if self.groups else largest
        values = x[:, self.start].double().contiguous()
        cells = torch.searchsorted(self.edges.double().to(x.device), values, right=True)
        if not self.missing:
            return cells
        return torch.where(x[:, self.start + 1] > 0.5, self.cells - 1, cells)


@dataclass(frozen=True, kw_only=True)
class Cells(Map):
    """For each tuple of columns its weight in the cell that the record lies in: a vector of norm 1.

    cuts     one for each column; a column may be cut in several ways
    tuples   of their places. The cells of a tuple stand in the order of their columns, the last one fastest
    weights  how much each tuple counts beside the others; none: all count the same
    classes  if above 0, the label is one more column, at the place after the others, with so many cells
    """

    kind: ClassVar[str] = "cells"
    chunk: ClassVar[int] = 1 << 15
    cuts: tuple[Cut, ...]
    tuples: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...] = ()
    classes: int = 0

    def __post_init__(self) -> None:
        if self.classes < 0:
            raise BadInput(f"classes must be at least 0, got classes={self.classes}.")
        places = range(len(self._each))
        if not self.tuples or not all(part and all(place in places for place in part) for part in self.tuples):
            raise BadInput(f"Every tuple has to name some of the {len(places)} columns.")
        if self.weights and not (
            len(self.weights) == len(self.tuples) and all(0 < each < math.inf for each in self.weights)
        ):
            raise BadInput(f"Expected a weight above 0 for each of the {len(self.tuples)} tuples.")
        if self.width > MOST_CELLS:
            raise BadInput(f"The tuples have {self.width} cells together; at most {MOST_CELLS} are added up.")

    @functools.cached_property
    def _each(self) -> tuple[int, ...]:
        """The cells of each column."""
        return tuple(cut.cells for cut in self.cuts) + ((self.classes,) if self.classes else ())

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The cells of each tuple."""
        return tuple(math.prod(self._each[place] for place in part) for part in self.tuples)

    @property
    def width(self) -> int:
        return sum(self.sizes)

    @property
    def weight(self) -> float:
        """What a record adds to each of its cells, where all tuples count the same."""
        return 1 / math.sqrt(len(self.tuples))

    @functools.cached_property
    def added(self) -> tuple[float, ...]:
        """What a record adds to its cell of each tuple. Guarantee: the squares add up to 1."""
        if not self.weights:
            return (self.weight,) * len(self.tuples)
        return tuple(each / math.hypot(*self.weights) for each in self.weights)

    def _columns(self, x: Tensor, y: Tensor) -> list[Tensor]:
        """For each column the cells of all records. A label that there should not be counts as the last one (rule 8)."""
        label = [y.clamp(0, self.classes - 1)] if self.classes else []
        return [cut.of(x.flatten(1)) for cut in self.cuts] + label

    def _tuples(self, columns: list[Tensor], row: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """For each tuple its places in a row of the sum, and for each record its cell, counted on from those of its row."""
        begin = 0
        for part, size in zip(self.tuples, self.sizes, strict=True):
            cell = row
            for place in part:
                cell = cell * self._each[place] + columns[place]
            yield slice(begin, begin + size), cell
            begin += size

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        rows = torch.zeros(len(x), self.width, device=x.device)
        parts = self._tuples(self._columns(x, y), torch.zeros_like(y))
        for (places, cell), added in zip(parts, self.added, strict=True):
            rows[:, places].scatter_(1, cell[:, None], added)
        return rows

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack(self._columns(x, y), dim=1).double()

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, bound: Bound, block: int | None = None
    ) -> Tensor:
        """Records are counted by cell; what each of them adds to a tuple is the same whole number.

        Guarantee: a record adds q_t to one cell of tuple t, so its norm is that of (q_1, ..., q_T): the clip times weights of
        norm 1, each rounded down, so at most the clip. Which cells these are depends on the record alone.
        """
        total = torch.zeros(count, self.width, dtype=torch.float64, device=x.device)
        for (places, cell), added in zip(self._tuples(self._columns(x, y), row), self.added, strict=True):
            size = places.stop - places.start
            counts = torch.bincount(cell, minlength=count * size).view(count, size).double()
            total[:, places] = counts * _within(bound, added)
        return total

    def counts(self, x: Tensor, y: Tensor, worth: Tensor) -> Tensor:
        """(cells of all tuples,): what the records in each cell are worth together, for choices that are made by counts.

        worth: whole numbers in double precision, one for each record. Guarantee: a record adds its worth to one cell of each
        tuple. The sums are exact, and in any order the same, while they stay below 2^53.
        """
        parts = self._tuples(self._columns(x, y), torch.zeros_like(y))
        sums = [torch.bincount(cell, worth, minlength=places.stop - places.start) for places, cell in parts]
        return torch.cat(sums)

    def parameters(self) -> dict[str, Any]:
        # Without weights and classes as it always was: a stored answer is found by its digest.
        cuts = [cut.parameters() for cut in self.cuts]
        later = {name: value for name in ("weights", "classes") if (value := getattr(self, name))}
        return {"cuts": cuts, "tuples": self.tuples, **later}


def _within(bound: Bound, added: float) -> float:
    if math.isinf(bound.clip):
        return added
    most = min(bound.clip, 1.0) * SAFE * added
    return math.floor(most / bound.step) if bound.step else most
