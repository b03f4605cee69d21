"""Mosaic: a whole table from noised marginals (our own).

Two answers are asked, both over all records at once, so that their price is that of two Gaussians, exactly:

    columns   how many records of each class lie in each fine cell of each column
    pairs     the same for each pair of columns, cut into bins that the first answer has shown to be worth it

A mixture of products is fitted to both (mixture.py); rows are drawn from it; their labels are drawn from a model of the label
that is held back by the known noise (labels.py); values are drawn inside their bins. All of that is post-processing.

Where we differ from AIM (McKenna et al. 2022), and why:
- Nothing is chosen: every pair is asked once. At epsilon 1 on Adult, asking again about the pairs that stand out made the rows
  worse, because these are the ones that need it least. So there is no selection to pay for, and Gaussians compose exactly,
  where AIM converts zero-concentrated privacy, which at epsilon 1 and delta 1e-5 costs it 15 per cent of its rho.
- Numbers are cut where the first answer shows records, not evenly; a value that stands out is a bin of its own.
- A mixture takes all pairs at once. A graphical model has to stay a thin tree of cliques, or it does not fit into memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import MOST_PER_CLASS, Chosen, Logbook, Method, SyntheticSet, TrainedGenerator, given
from limbeck.methods.mosaic.axes import Axis, bin_starts, fine_axes
from limbeck.methods.mosaic.condensed import LARGE, MOST, Large, Small, steps_for
from limbeck.methods.mosaic.drawing import AT_ONCE, drawn_table, encoded, labelled
from limbeck.methods.mosaic.judge import Rows
from limbeck.methods.mosaic.labels import fitted
from limbeck.methods.mosaic.measured import Measured, as_matrix, pairs_of
from limbeck.methods.mosaic.mixture import Mixture
from limbeck.methods.mosaic.model import Labels, TableModel
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, Cells

MOST_CELLS = 1 << 22  # of all pairs and classes; more bins than that takes are not made
MOST_ASKED = 1 << 24  # cells of a query, as the map has it; found out before anything is booked
FEW_CLASSES = 10  # up to so many, pairs are asked for each class: what depends on two columns together is in there
MOST_ROWS = 10_000_000
MOST_FITTED = 1 << 15  # rows that the model of the label is fitted on
MOST_FITTED_CELLS = 1 << 24  # and rows x cells: of a wide table fewer rows, which have more cells each
MOST_BALANCED = (
    100_000  # rows whose labels are made to add up; among more of them they do, up to less than was measured
)
WARM = 20  # steps until the step size is eta
SEARCH = 4000  # steps
LEAST_NOISE = 0.5  # records: what a mixture need not fit more closely, where there is hardly any noise


@dataclass(frozen=True, kw_only=True)
class MosaicChoice(Chosen):
    """The settings of Mosaic that may be left open, all of them set."""

    search: int


@dataclass(frozen=True, kw_only=True)
class Mosaic(Method):
    """rows: how many, in the classes' own shares; none: as many as there are records. per_class: so many of each class in
    place of that; 0: their own shares. share: of the budget for the columns, the rest is for the pairs. bins: of a numeric
    column, about. components: of the mixture, over all classes. T, eta: steps and step size of Adam. pull: of components towards
    their mean. search: steps towards a small set that models learn well from; 0: its rows are drawn like those of a large one;
    none: 4000 for sets of up to 1000 rows that `rows` or `per_class` asks for. sigma: noise std / sensitivity of both answers
    together."""

    name: ClassVar[str] = "mosaic"
    title: ClassVar[str] = "A whole table from noised marginals (our own)"
    paper: ClassVar[str] = "Limbeck, docs/tables.md"
    needs: ClassVar[str] = "tables; seconds to minutes of one core; any number of rows at the same price"
    sized_by_rows: ClassVar[bool] = True

    per_class: int = setting(0, least=0, most=MOST_PER_CLASS)
    rows: int | None = setting(None, least=1, most=MOST_ROWS)
    share: float = setting(0.3, above=0, below=1)
    bins: int = setting(40, least=2, most=1000)
    components: int = setting(500, least=1, most=100_000)
    T: int = setting(800, least=1)
    eta: float = setting(0.1, above=0)
    pull: float = setting(50.0, least=0)
    search: int | None = setting(None, least=0)
    sigma: float | None = setting(None, above=0)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> MosaicChoice:
        small = 0 < self._asked_for(schema) <= MOST
        return MosaicChoice(search=given(self.search, SEARCH if small else 0))

    def _asked_for(self, schema: Schema) -> int:
        """Rows that a setting asks for; 0: none does."""
        return self.per_class * len(schema.classes) or self.rows or 0

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def check(self, schema: Schema) -> None:
        if schema.is_image:
            raise BadSettings("Method 'mosaic' makes tables, and this data set holds images.", "limbeck methods")
        if self.per_class and self.rows is not None:
            raise BadSettings(f"Choose rows={self.rows} or per_class={self.per_class}, not both.")
        if self.search and not 0 < self._asked_for(schema) <= MOST:
            raise BadSettings(f"search={self.search} is for small sets. Choose rows of {MOST} at most, or search=0.")
        cells = _least_cells(schema)
        if cells > MOST_ASKED:
            raise BadSettings(
                f"Method 'mosaic' asks about every pair of columns, and for '{schema.name}' that makes at least {cells} cells; "
                f"the limit is {MOST_ASKED}. Choose --method elixir, or merge columns and categories.",
                "limbeck methods",
            )

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        if len(fine_axes(schema)) == 1:
            return (_counts("columns", noise_multiplier),)
        return (
            _counts("columns", noise_multiplier / math.sqrt(self.share)),
            _counts("pairs", noise_multiplier / math.sqrt(1 - self.share), by_class=_few_classes(schema)),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        axes, records, single, variance = self._columns(schema, ask)
        sizes = tuple(axis.cells for axis in axes)
        groups = len(schema.classes) if _few_classes(schema) else 1
        # Answers are part of the state: a checkpoint drops them from the ledger.
        pairs, precision = torch.zeros(groups, sum(sizes), sum(sizes)), torch.zeros(sum(sizes), sum(sizes))
        mixture = Mixture(sizes, single, max(self.components // len(schema.classes), 1), self.rng("components"))
        adam = Adam([mixture.logits, mixture.weights], self.eta)
        measured = Measured(sizes, single, variance, pairs, precision)
        small, search = self._small(schema, axes)
        state = adam.state | {"pairs": pairs, "precision": precision} | (small.state if small else {})
        large = None
        # The columns are asked about before the loop, also when a run is resumed, so their answer stays.
        for step in logbook.steps(self.T + search, state, "pairs" if len(axes) > 1 else ""):
            if small and step >= self.T:
                large = large or self._large(mixture, measured, axes, schema)
                rng = np.random.default_rng(self.seed_at("search", step))
                small.step(large, step - self.T, rng)
                continue
            if step == 0 and len(axes) > 1:
                self._ask_pairs(axes, records, ask, measured)
            adam.eta = self.eta * min(1.0, (step + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * step / self.T))
            adam.move(torch.autograd.grad(mixture.loss(measured, self.pull), adam.parameters))
        if small:
            large = large or self._large(mixture, measured, axes, schema)
            return _with_model(large.model, small.x.numpy(), small.y.numpy(), schema)
        return self._drawn(mixture, measured, axes, schema)

    def _columns(self, schema: Schema, ask: Ask) -> tuple[list[Axis], float, Tensor, Tensor]:
        """The bins of each column, how many records there are, and for each class their shares in each bin, with its variance."""
        fine = fine_axes(schema)
        cells = Cells(cuts=tuple(axis.cut() for axis in fine), tuples=tuple((place,) for place in range(len(fine))))
        answer = ask("columns", 0, cells)
        noise = answer.noise_std / cells.weight
        counts = np.split(answer.values / cells.weight, np.cumsum([axis.cells for axis in fine])[:-1], axis=1)
        records = _records(counts, noise)
        starts = self._starts(fine, counts, noise, records, schema)
        axes, single, variance = [], [], []
        for axis, found, begin in zip(fine, counts, starts, strict=True):
            axes.append(axis.coarser(begin[: len(begin) - axis.column.missing]) if axis.is_cut else axis)
            single.append(np.add.reduceat(found, begin, axis=1))
            variance.append(np.diff(begin, append=axis.cells) * max(noise, LEAST_NOISE) ** 2)
        shares = np.concatenate(single, axis=1) / records
        scale = np.concatenate(variance) / records**2
        return axes, records, torch.from_numpy(shares).float(), torch.from_numpy(scale).float()

    def _starts(
        self, fine: list[Axis], counts: list[NDArray[np.float32]], noise: float, records: float, schema: Schema
    ) -> list[list[int]]:
        """Where the cells of each column begin among its fine ones.

        Guarantee: pairs of them are no more than may be asked for. By now the columns are paid, so nothing may fail.
        """
        groups = len(schema.classes) if _few_classes(schema) else 1
        most = max(min(self.bins, math.isqrt(MOST_CELLS // max(len(fine) * (len(fine) - 1) // 2 * groups, 1))), 2)
        while True:
            starts = []
            for axis, found in zip(fine, counts, strict=True):
                begin = list(range(axis.cells))
                if axis.is_cut:
                    there = found[:, : axis.cells - axis.column.missing].sum(0).astype(np.float64)
                    noise_there = noise * math.sqrt(len(found))
                    begin = bin_starts(there, noise_there, records, most, axis.alone) if most > 1 else axis.fewest()
                    begin += [axis.cells - 1] * axis.column.missing
                starts.append(begin)
            if most == 1 or _pair_cells([len(begin) for begin in starts]) <= MOST_ASKED:
                return starts
            most //= 2

    def _ask_pairs(self, axes: list[Axis], records: float, ask: Ask, measured: Measured) -> None:
        cells = Cells(cuts=tuple(axis.cut() for axis in axes), tuples=pairs_of(len(axes)))
        answer = ask("pairs", 0, cells)
        values = torch.from_numpy(np.atleast_2d(answer.values) / (cells.weight * records)).float()
        measured.pairs.copy_(as_matrix(values, measured.sizes))
        noise = max(answer.noise_std / cells.weight, LEAST_NOISE) / records
        measured.precision.copy_(as_matrix(torch.full((1, cells.width), noise**-2), measured.sizes)[0])

    def _small(self, schema: Schema, axes: list[Axis]) -> tuple[Small | None, int]:
        """The small set that is asked for, if any, and the steps of its search."""
        if not self.search:
            return None, 0
        rows, classes = self._asked_for(schema), len(schema.classes)
        fixed = np.repeat(np.arange(classes), self.per_class) if self.per_class else None
        return Small(rows, schema.numbers, fixed), steps_for(self.search, rows, axes, classes)

    def _large(self, mixture: Mixture, measured: Measured, axes: list[Axis], schema: Schema) -> Large:
        """The table that a small set stands for."""
        rng = np.random.default_rng(self.seed_at("large"))
        cells, labels = mixture.drawn(LARGE, rng)
        model = self._model(mixture, measured, axes, cells)
        labels = labelled(model, cells, labels, rng, balance=True)
        return Large.of(model, Rows(encoded(model.axes, cells, rng), cells, labels), len(schema.classes))

    def _drawn(self, mixture: Mixture, measured: Measured, axes: list[Axis], schema: Schema) -> SyntheticSet:
        rng = np.random.default_rng(self.seed_at("rows"))
        if self.per_class:
            model = TableModel(tuple(axes), mixture, None)
            parts = [mixture.drawn(self.per_class, rng, label) for label in range(len(schema.classes))]
            cells, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
            return _with_model(model, encoded(model.axes, cells, rng), labels, schema)
        rows = self.rows or schema.records
        cells, labels = mixture.drawn(min(rows, AT_ONCE), rng)
        model = self._model(mixture, measured, axes, cells)
        return _with_model(model, *drawn_table(model, rows, cells, labels, rng), schema)

    def _model(self, mixture: Mixture, measured: Measured, axes: list[Axis], cells: NDArray[np.int64]) -> TableModel:
        model = TableModel(tuple(axes), mixture, None)
        return replace(model, labels=self._label_model(mixture, measured, axes, cells)) if len(axes) > 1 else model

    def _label_model(self, mixture: Mixture, measured: Measured, axes: list[Axis], cells: NDArray[np.int64]) -> Labels:
        """Fitted on some of the rows: it has a number for each cell, and a million rows would say no more about them."""
        most = min(MOST_FITTED, max(MOST_FITTED_CELLS // measured.starts[-1], 1))
        places = torch.from_numpy(cells[:most] + np.array(measured.starts[:-1]))
        hot = torch.zeros(len(places), measured.starts[-1]).scatter_(1, places, 1.0)
        ordered = [
            slice(block.start, block.stop - axis.column.missing)
            for axis, block in zip(axes, measured.blocks(), strict=True)
            if axis.is_cut
        ]
        found = fitted(measured, ordered, hot, mixture.log_chances(hot))
        return Labels((found.terms + found.smooth).detach(), found.constant.detach(), found.opinion)


def _with_model(model: TableModel, x: NDArray[np.float32], y: NDArray[np.int64], schema: Schema) -> SyntheticSet:
    generator = TrainedGenerator(model.spec, model.weights())
    return SyntheticSet(x.reshape(len(x), *schema.shape), y, generator=generator)


def _counts(label: str, noise_multiplier: float, by_class: bool = True) -> ClippedSum:
    return ClippedSum(label=label, map="cells", clip=1.0, noise_multiplier=noise_multiplier, by_class=by_class)


def _records(counts: list[NDArray[np.float32]], noise: float) -> float:
    """How many records there are: every column says it, the better the fewer cells it has. The schema's number may be rough."""
    precision = np.array([1 / found.size for found in counts])
    totals = np.array([float(found.sum(dtype=np.float64)) for found in counts])
    return max(float(totals @ precision / precision.sum()), noise, 1.0)


def _least_cells(schema: Schema) -> int:
    """Of the larger query: columns as fine as they are, or pairs of columns that are cut into two, or as few as can be."""
    axes = fine_axes(schema)
    sizes = [
        min(max(len(axis.fewest()), 2) + axis.column.missing, axis.cells) if axis.is_cut else axis.cells
        for axis in axes
    ]
    return max(sum(axis.cells for axis in axes), _pair_cells(sizes))


def _pair_cells(sizes: list[int]) -> int:
    """How many cells all pairs of columns have."""
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def _few_classes(schema: Schema) -> bool:
    return len(schema.classes) <= FEW_CLASSES
