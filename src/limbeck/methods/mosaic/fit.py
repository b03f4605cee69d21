"""What both answers have become: the fitted mixture, what was measured, and where columns are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.coarse import Coarse, shaped_axes
from limbeck.methods.mosaic.even import even_cells
from limbeck.methods.mosaic.expected import Expected
from limbeck.methods.mosaic.follow import Follow, folded, followed, seen_follows
from limbeck.methods.mosaic.labels import LabelModel, Rows, fitted
from limbeck.methods.mosaic.measured import Measured
from limbeck.methods.mosaic.mixture import Mixture
from limbeck.methods.mosaic.model import Labels, TableModel
from limbeck.privacy.schema import Schema

MOST_FITTED = 1 << 15  # rows that the model of the label is fitted on
MOST_FITTED_CELLS = 1 << 24  # and rows x cells: of a wide table fewer rows, which have more cells each


@dataclass(frozen=True, eq=False)
class Fit:
    """To be read when the mixture is fitted. records: how many there are, by the answers. may_follow: whether columns that others
    decide follow them. said: what the third answer says of the label, where there is one."""

    mixture: Mixture
    measured: Measured
    columns: Sequence[Coarse]
    schema: Schema
    records: float
    may_follow: bool = True
    said: Expected | None = None

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(shaped_axes(self.columns, self.measured, self.records))

    @cached_property
    def follows(self) -> tuple[Follow, ...]:
        return seen_follows(self.measured) if self.may_follow else ()

    def target(self) -> Measured:
        """What the mixture is fitted to."""
        return folded(self.measured.bettered(), self.follows)

    def cells(self, count: int, rng: np.random.Generator, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """So many of all rows: (rows, columns), and their classes as far as the mixture says them, else 0."""
        if len(self.columns) == 1:
            return self.mixture.drawn(count, rng)
        return even_cells(self.mixture, count, rng, rows, self.follows), np.zeros(count, dtype=np.int64)

    def cells_of(self, label: int, count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """So many rows of one class, and their classes."""
        cells, labels = self.mixture.drawn(count, rng, label)
        return followed(cells, self.follows), labels

    def plain_model(self) -> TableModel:
        """In which a row is of the class of its component."""
        return TableModel(self.axes, self.mixture.of_classes(len(self.schema.classes)), None, self.schema, self.follows)

    def model(self, cells: NDArray[np.int64]) -> TableModel:
        """With a model of the label, which is fitted on these rows, if there is one to be had."""
        if len(self.columns) == 1 or not self.schema.has_label:
            return self.plain_model()
        found = self.label_model(cells)
        labels = Labels(torch.from_numpy(found.terms).float(), torch.from_numpy(found.constant).float(), found.opinion)
        return replace(self.plain_model(), labels=labels)

    def label_model(self, cells: NDArray[np.int64]) -> LabelModel:
        """Fitted on some of the rows: it has a number for each cell, and a million rows would say no more about them."""
        starts = self.measured.starts
        cells = cells[: min(MOST_FITTED, max(MOST_FITTED_CELLS // starts[-1], 1))]
        places = torch.from_numpy(cells + np.array(starts[:-1]))
        hot = torch.zeros(len(places), starts[-1]).scatter_(1, places, 1.0)
        ordered = tuple(axis.is_cut * (axis.cells - axis.column.missing) for axis in self.axes)
        rows = Rows(cells, self.mixture.log_chances(hot).double().numpy(), ordered)
        said = self.said if self.said is not None and self.said.is_there else None
        return fitted(self.measured, rows, self.records, said)
