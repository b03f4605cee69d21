"""Columns of a table as graphical models have them: cut into bins by a bought answer, and the label one more of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import SyntheticSet, TrainedGenerator, require_no_constraints
from limbeck.methods.graphical.bins import bin_starts
from limbeck.methods.graphical.fitting import Measurement, combined
from limbeck.methods.graphical.junction_tree import Clique
from limbeck.methods.graphical.model import GraphicalModel
from limbeck.methods.graphical.network import Factor, NetworkModel, encoded_rows, factors_of
from limbeck.methods.graphical.rows import rows_of
from limbeck.methods.mosaic.axes import Axis, columns_of, fine_axes
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Answer, Ask, Cells

COLUMNS, SINGLES = "columns", "singles"
MOST_ASKED = 1 << 24  # cells of a query, as the map has it
MOST_ROWS = 10_000_000
LEAST_NOISE = 0.5  # records: what need not be fitted more closely, where there is hardly any noise


def label_cells(schema: Schema) -> int:
    """How many the label has; 0: there is no label."""
    return len(schema.classes) if schema.has_label else 0


def column_count(schema: Schema) -> int:
    """Columns of the model: the label is one more of them."""
    return len(columns_of(schema)) + schema.has_label


def shared_out(noise_multiplier: float, share: float, count: int = 1) -> float:
    """The noise of each of so many answers that have a share of the budget together."""
    return noise_multiplier * math.sqrt(count / share)


@dataclass(frozen=True, eq=False)
class Columns:
    """axes: the columns and where they are cut. classes: of the label, which stands at the place after them; 0: there is none.
    total: how many records there are, about. single: what was measured of each column by itself. noise_std: of one answer that
    had the whole budget, by which that of every other is known."""

    axes: tuple[Axis, ...]
    classes: int
    total: float
    single: tuple[Measurement, ...]
    noise_std: float

    @property
    def sizes(self) -> tuple[int, ...]:
        return (*(axis.cells for axis in self.axes), *([self.classes] if self.classes else []))

    @property
    def label(self) -> int:
        """Its place, where there is one."""
        return len(self.axes)

    def cells(self, tuples: Sequence[Clique]) -> Cells:
        return Cells(cuts=tuple(axis.cut() for axis in self.axes), tuples=tuple(tuples), classes=self.classes)

    def measured(self, places: Clique, answers: Sequence[Answer]) -> Measurement:
        """The mean of answers about one tuple."""
        mean = np.mean([answer.values.astype(np.float64) for answer in answers], axis=0)
        return measurement(places, torch.from_numpy(mean), answers[0].noise_std / math.sqrt(len(answers)))

    def shares(self, place: int) -> NDArray[np.float64]:
        """Of the cells of one column, by itself: what noise has pushed below 0 is nothing."""
        counts = self.single[place].counts.clamp_min(0).numpy() + 1e-9
        shares: NDArray[np.float64] = counts / counts.sum()
        return shares

    def drawn(
        self, model: GraphicalModel, schema: Schema, rows: int | None, per_class: int, rng: np.random.Generator
    ) -> SyntheticSet:
        """Rows in the classes' own shares, or so many of each class."""
        if per_class:
            hot = torch.eye(self.classes, dtype=torch.float64)
            parts = [rows_of(model.given(self.label, hot[label]), per_class, rng) for label in range(self.classes)]
            cells = np.concatenate(parts)
        else:
            cells = rows_of(model, rows or schema.records, rng)
        return self.encoded(cells, factors_of(model), schema, rng)

    def encoded(
        self, cells: NDArray[np.int64], factors: tuple[Factor, ...], schema: Schema, rng: np.random.Generator
    ) -> SyntheticSet:
        """These rows, and the model that more are drawn from."""
        x, y = encoded_rows(self.axes, cells, rng)
        model = NetworkModel(self.axes, factors, schema)
        return SyntheticSet(
            x.reshape(len(x), *schema.shape), y, generator=TrainedGenerator(model.spec, model.weights())
        )


def measurement(places: Clique, counts: Tensor, noise: float) -> Measurement:
    """With the same noise on every cell."""
    return Measurement(places, counts, torch.full_like(counts, max(noise, LEAST_NOISE)))


def columns_queries(noise_multiplier: float, share: float) -> tuple[ClippedSum, ClippedSum]:
    """Half of the share is for fine cells, to see where bins are worth it; half for the bins."""
    noise = shared_out(noise_multiplier, share / 2)
    fine = ClippedSum(label=COLUMNS, map="cells", clip=1.0, noise_multiplier=noise, by_class=False)
    return fine, replace(fine, label=SINGLES)


def ask_columns(schema: Schema, ask: Ask, bins: int, share: float) -> Columns:
    """How many records lie in each fine cell of each column, bins that this has shown to be worth it, and how many are in those.

    Guarantee: a function of the schema and of two answers.
    """
    fine, classes = fine_axes(schema), label_cells(schema)
    every = tuple((place,) for place in range(column_count(schema)))
    cells = Cells(cuts=tuple(axis.cut() for axis in fine), tuples=every, classes=classes)
    answer = ask(COLUMNS, 0, cells)
    noise = answer.noise_std / cells.weight
    counts = np.split(answer.values.astype(np.float64) / cells.weight, np.cumsum(cells.sizes)[:-1])
    # Every column says how many records there are, the better the fewer cells it has.
    precision = np.array([1 / len(found) for found in counts])
    total = max(float(np.array([found.sum() for found in counts]) @ precision / precision.sum()), noise, 1.0)
    axes, first = [], []
    for place, found in enumerate(counts):
        starts = list(range(len(found)))
        if place < len(fine):
            axis = fine[place]
            if axis.is_cut:
                there = found[: axis.cells - axis.column.missing]
                starts = bin_starts(there, noise, total, bins, axis.alone)
                axis = axis.coarser(starts)
                starts += [fine[place].cells - 1] * axis.column.missing
            axes.append(axis)
        # Cells that were joined have the noise of all their parts.
        parts = np.diff(starts, append=len(found)).astype(np.float64)
        joined = torch.from_numpy(max(noise, LEAST_NOISE) * np.sqrt(parts))
        first.append(Measurement((place,), torch.from_numpy(np.add.reduceat(found, starts)), joined))
    columns = Columns(tuple(axes), classes, total, (), answer.noise_std * math.sqrt(share / 2))
    singles = columns.cells(every)
    again = ask(SINGLES, 0, singles)
    split = torch.split(again.tensor().double() / singles.weight, list(singles.sizes))
    second = [
        measurement(part, each, again.noise_std / singles.weight) for part, each in zip(every, split, strict=True)
    ]
    return replace(columns, single=tuple(combined([*first, *second]).values()))


def check_table(name: str, schema: Schema, rows: int | None, per_class: int) -> None:
    """Refuse what makes no sense, before anything is planned."""
    if schema.is_image:
        raise BadSettings(f"Method '{name}' makes tables, and this data set holds images.", "limbeck methods")
    require_no_constraints(name, schema)
    if per_class and not schema.has_label:
        raise BadSettings(
            f"per_class={per_class} is for classes, and '{schema.name}' has no label. Choose --rows {per_class}."
        )
    if per_class and rows is not None:
        raise BadSettings(f"Choose rows={rows} or per_class={per_class}, not both.")
    cells = sum(axis.cells for axis in fine_axes(schema)) + label_cells(schema)
    if cells > MOST_ASKED:
        raise BadSettings(
            f"Method '{name}' counts records in {cells} fine cells of '{schema.name}'; the limit is {MOST_ASKED}. "
            "Choose --method elixir, or merge categories.",
            "limbeck methods",
        )
