"""Cells of a table: columns cut into cells, and for tuples of columns the cell that a record lies in (marginals)."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.vault.maps.base import Map
from limbeck.vault.maps.bound import SAFE, Bound

MOST_CELLS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How one column of an encoded record becomes a cell.

    start    the first of its numbers
    numbers  how many of them: of several the largest says which cell it is, one is cut at the edges
    edges    in encoded units; a number on an edge lies above it
    missing  whether one more number says that there is no value, which is the last cell

    >>> column = Cut(start=0, numbers=1, edges=torch.tensor([-0.5, 0.5], dtype=torch.float64), missing=True)
    >>> column.cells, column.of(torch.tensor([[-1.0, 0.0], [0.5, 0.0], [0.9, 1.0]])).tolist()
    (4, [0, 2, 3])
    """

    start: int
    numbers: int
    edges: Tensor
    missing: bool = False

    def __post_init__(self) -> None:
        is_cut = self.numbers == 1 and self.edges.dim() == 1
        if self.start < 0 or self.numbers < 1 or not (is_cut or (self.edges.dim() == 1 and not len(self.edges))):
            raise BadInput("A column is cut at a list of edges, or it has a number for each of its cells.")

    @property
    def cells(self) -> int:
        return (len(self.edges) + 1 if self.numbers == 1 else self.numbers) + self.missing

    @property
    def end(self) -> int:
        return self.start + self.numbers + self.missing

    def of(self, x: Tensor) -> Tensor:
        """The cell of each record. A function of the record alone, which every record has (rule 8)."""
        if self.numbers > 1:
            return x[:, self.start : self.end].argmax(1)
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
    """

    kind: ClassVar[str] = "cells"
    chunk: ClassVar[int] = 1 << 15
    cuts: tuple[Cut, ...]
    tuples: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        places = range(len(self.cuts))
        if not self.tuples or not all(part and all(place in places for place in part) for part in self.tuples):
            raise BadInput(f"Every tuple has to name some of the {len(self.cuts)} columns.")
        if self.weights and not (
            len(self.weights) == len(self.tuples) and all(0 < each < math.inf for each in self.weights)
        ):
            raise BadInput(f"Expected a weight above 0 for each of the {len(self.tuples)} tuples.")
        if sum(self._sizes) > MOST_CELLS:
            raise BadInput(f"The tuples have {sum(self._sizes)} cells together; at most {MOST_CELLS} are added up.")

    @functools.cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(self.cuts[place].cells for place in part) for part in self.tuples)

    @property
    def width(self) -> int:
        return sum(self._sizes)

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

    def _columns(self, x: Tensor) -> list[Tensor]:
        """For each column the cells of all records."""
        return [cut.of(x.flatten(1)) for cut in self.cuts]

    def _tuples(self, columns: list[Tensor], row: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """For each tuple its places in a row of the sum, and for each record its cell, counted on from those of its row."""
        begin = 0
        for part, size in zip(self.tuples, self._sizes, strict=True):
            cell = row
            for place in part:
                cell = cell * self.cuts[place].cells + columns[place]
            yield slice(begin, begin + size), cell
            begin += size

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        rows = torch.zeros(len(x), self.width, device=x.device)
        for (places, cell), added in zip(self._tuples(self._columns(x), torch.zeros_like(y)), self.added, strict=True):
            rows[:, places].scatter_(1, cell[:, None], added)
        return rows

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack(self._columns(x), dim=1).double()

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, bound: Bound, block: int | None = None
    ) -> Tensor:
        """Records are counted by cell; what each of them adds to a tuple is the same whole number.

        Guarantee: a record adds q_t to one cell of tuple t, so its norm is that of (q_1, ..., q_T): the clip times weights of
        norm 1, each rounded down, so at most the clip. Which cells these are depends on the record alone.
        """
        total = torch.zeros(count, self.width, dtype=torch.float64, device=x.device)
        for (places, cell), added in zip(self._tuples(self._columns(x), row), self.added, strict=True):
            size = places.stop - places.start
            counts = torch.bincount(cell, minlength=count * size).view(count, size).double()
            total[:, places] = counts * _within(bound, added)
        return total

    def parameters(self) -> dict[str, Any]:
        cuts = [(cut.start, cut.numbers, _hash(cut.edges), cut.missing) for cut in self.cuts]
        # Without weights as it always was: a stored answer is found by its digest.
        return {"cuts": cuts, "tuples": self.tuples, **({"weights": self.weights} if self.weights else {})}


def _within(bound: Bound, added: float) -> float:
    if math.isinf(bound.clip):
        return added
    most = min(bound.clip, 1.0) * SAFE * added
    return math.floor(most / bound.step) if bound.step else most


def _hash(edges: Tensor) -> str:
    return hashlib.sha256(edges.double().cpu().contiguous().numpy().tobytes()).hexdigest()
