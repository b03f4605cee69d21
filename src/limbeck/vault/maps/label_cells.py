"""What is known of the label in every cell that a record lies in: the label itself, or what a public model expects of it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.vault.maps.base import Map, digest_of, in_blocks
from limbeck.vault.maps.bound import Bound, clip_rows
from limbeck.vault.maps.cells import MOST_CELLS, Cut


@dataclass(frozen=True, kw_only=True)
class LabelCells(Map):
    """For each column, in the cell that the record lies in, the chances of the classes less their mean.

    cuts     one for each column; its cells stand one after the other, each with a number for every class
    classes  how many there are, at least two
    terms    (1 + cells of all columns, classes): log odds of a public model, first its constant, then what each cell adds; the
             chances are those that it gives the record, whatever label that has. None: the label is sure of itself

    Guarantee: chances p of K classes have |p - 1/K|^2 = |p|^2 - 1/K <= 1 - 1/K. They stand once in the part of each of J
    columns, divided by sqrt(J (1 - 1/K)), so a record's row has norm 1 at most; and the vault clips it all the same. Terms are
    public, so a row depends on its record alone.
    """

    kind: ClassVar[str] = "label_cells"
    cuts: tuple[Cut, ...]
    classes: int
    terms: Tensor | None = None

    def __post_init__(self) -> None:
        if self.classes < 2 or not self.cuts:
            raise BadInput(f"Expected a column and two classes at least, got {len(self.cuts)} and {self.classes}.")
        if self.terms is not None and self.terms.shape != (1 + self.cells, self.classes):
            raise BadInput(f"Expected terms of shape {(1 + self.cells, self.classes)}, got {tuple(self.terms.shape)}.")
        if self.width > MOST_CELLS:
            raise BadInput(f"All cells and classes make {self.width} numbers; at most {MOST_CELLS} are added up.")

    @functools.cached_property
    def cells(self) -> int:
        return sum(cut.cells for cut in self.cuts)

    @property
    def width(self) -> int:
        return self.cells * self.classes

    @property
    def added(self) -> float:
        """What a chance is multiplied with."""
        return 1 / math.sqrt(len(self.cuts) * (1 - 1 / self.classes))

    def _places(self, x: Tensor) -> Tensor:
        """(records, columns): the place of each record's cells among all."""
        found, begin = [], 0
        for cut in self.cuts:
            found.append(cut.of(x.flatten(1)) + begin)
            begin += cut.cells
        return torch.stack(found, dim=1)

    def _beside(self, x: Tensor, y: Tensor) -> Tensor:
        """(records, columns x classes): the numbers of a row that are not 0, as they stand in the parts of the columns."""
        if self.terms is None:
            chances = (y.clamp(0, self.classes - 1)[:, None] == torch.arange(self.classes, device=y.device)).float()
        else:
            terms, places = self.terms.to(x.device), self._places(x) + 1
            odds = terms[0].expand(len(x), -1)
            for column in range(len(self.cuts)):
                odds = odds + terms[places[:, column]]
            chances = torch.softmax(odds, dim=1)
        return ((chances - 1 / self.classes) * self.added).repeat(1, len(self.cuts))

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return self._spread(self._beside(x, y), x)

    def _spread(self, beside: Tensor, x: Tensor) -> Tensor:
        """(records, width): the same numbers, each where its cell stands."""
        rows = beside.new_zeros(len(x), self.cells, self.classes)
        places = self._places(x)[:, :, None].expand(-1, -1, self.classes)
        return rows.scatter_(1, places, beside.view(len(x), -1, self.classes)).flatten(1)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([self._places(x).double(), clip_rows(self._beside(x, y), 1.0)], dim=1)

    def clipped_rows(self, x: Tensor, y: Tensor, bound: Bound, block: int) -> Tensor:
        return self._spread(in_blocks(self._beside, x, y, bound, block), x)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, bound: Bound, block: int | None = None
    ) -> Tensor:
        """Without a row of all cells for every record.

        Guarantee: that of every map. A row holds the clipped numbers once each, at places of their own, and zeros: its norm is
        theirs.
        """
        beside = in_blocks(self._beside, x, y, bound, block or self.block).view(-1, self.classes)
        places = (self._places(x) + row[:, None] * self.cells).flatten()
        total = torch.zeros(count * self.cells, self.classes, dtype=torch.float64, device=x.device)
        return total.index_add_(0, places, beside).view(count, self.width)

    def parameters(self) -> dict[str, Any]:
        cuts = [cut.parameters() for cut in self.cuts]
        return {"cuts": cuts, "classes": self.classes, "terms": None if self.terms is None else digest_of(self.terms)}
