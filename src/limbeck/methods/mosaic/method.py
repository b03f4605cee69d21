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
from limbeck.methods.base import MOST_PER_CLASS, Logbook, Method, SyntheticSet, TrainedGenerator
from limbeck.methods.mosaic.axes import Axis, bin_starts, fine_axes
from limbeck.methods.mosaic.coarse import Coarse, added, shaped_axes
from limbeck.methods.mosaic.inner import grouped
from limbeck.methods.mosaic.keeping import Drawn, kept_rows, most_unique, numbered
from limbeck.methods.mosaic.labels import balanced, fitted
from limbeck.methods.mosaic.measured import Measured, as_matrix, pairs_of
from limbeck.methods.mosaic.mixture import Mixture
from limbeck.methods.mosaic.model import Labels, TableModel
from limbeck.methods.mosaic.zeros import set_zeros
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.rules import Rules
from limbeck.privacy.schema import Schema
from limbeck.privacy.witness import witness
from limbeck.vault.api import Ask, Cells

MOST_CELLS = 1 << 22  # of all pairs and classes; more bins than that takes are not made
MOST_ASKED = 1 << 24  # cells of a query, as the map has it; found out before anything is booked
FEW_CLASSES = 10  # up to so many, pairs are asked for each class: what depends on two columns together is in there
MOST_ROWS = 10_000_000
MOST_FITTED = 1 << 15  # rows that the model of the label is fitted on
MANY = 64  # categories up to which each is a cell; of more, those with few records share one
WARM = 20  # steps until the step size is eta
LEAST_NOISE = 0.5  # records: what a mixture need not fit more closely, where there is hardly any noise


@dataclass(frozen=True, kw_only=True)
class Mosaic(Method):
    """rows: how many, in the classes' own shares; none: as many as there are records. per_class: so many of each class in
    place of that; 0: their own shares. share: of the budget for the columns, the rest is for the pairs. bins: of a numeric
    column, about. components: of the mixture, over all classes. T, eta: steps and step size of Adam. pull: of components towards
    their mean. sigma: noise std / sensitivity of both answers together."""

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
    sigma: float | None = setting(None, above=0)

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def check(self, schema: Schema) -> None:
        if schema.is_image:
            raise BadSettings("Method 'mosaic' makes tables, and this data set holds images.", "limbeck methods")
        if self.per_class and not schema.has_label:
            raise BadSettings(
                f"per_class={self.per_class} is for classes, and '{schema.name}' has no label. Choose --rows {self.per_class}."
            )
        if self.per_class and self.rows is not None:
            raise BadSettings(f"Choose rows={self.rows} or per_class={self.per_class}, not both.")
        self._check_constraints(schema)
        cells = _least_cells(schema)
        if cells > MOST_ASKED:
            raise BadSettings(
                f"Method 'mosaic' asks about every pair of columns, and for '{schema.name}' that makes at least {cells} cells; "
                f"the limit is {MOST_ASKED}. Choose --method elixir, or merge columns and categories.",
                "limbeck methods",
            )

    def _check_constraints(self, schema: Schema) -> None:
        """Guarantee: some row keeps to all constraints, of each class where each gets its rows, before anything is booked."""
        if not schema.rules:
            return
        for label in range(len(schema.classes)) if self.per_class else [None]:
            witness(schema, label)
        rows, most = self.per_class * len(schema.classes) or self.rows or schema.records, most_unique(schema)
        if most is not None and rows > most:
            raise BadSettings(
                f"{rows} rows cannot have different values: a unique column has {most}. Choose --rows {most}."
            )

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        if len(fine_axes(schema)) == 1:
            return (_counts("columns", noise_multiplier),)
        return (
            _counts("columns", noise_multiplier / math.sqrt(self.share)),
            _counts("pairs", noise_multiplier / math.sqrt(1 - self.share), by_class=_few_classes(schema)),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        columns, records, single, variance = self._columns(schema, ask)
        axes = [column.axis for column in columns]
        sizes = tuple(axis.cells for axis in axes)
        groups = len(schema.classes) if _few_classes(schema) else 1
        # Answers are part of the state: a checkpoint drops them from the ledger.
        pairs, precision = torch.zeros(groups, sum(sizes), sum(sizes)), torch.zeros(sum(sizes), sum(sizes))
        mixture = Mixture(sizes, single, max(self.components // len(schema.classes), 1), self.rng("components"))
        adam = Adam([mixture.logits, mixture.weights], self.eta)
        state = adam.state | {"pairs": pairs, "precision": precision}
        measured = Measured(sizes, single, variance, pairs, precision)
        target: Measured | None = None
        for step in logbook.steps(self.T, state, "pairs" if len(axes) > 1 else "columns"):
            if step == 0 and len(axes) > 1:
                self._ask_pairs(axes, records, ask, measured, schema.rules)
            target = measured.bettered() if target is None else target
            adam.eta = self.eta * min(1.0, (step + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * step / self.T))
            adam.move(torch.autograd.grad(mixture.loss(target, self.pull), adam.parameters))
        return self._drawn(mixture, measured, shaped_axes(columns, measured, records), schema)

    def _columns(self, schema: Schema, ask: Ask) -> tuple[list[Coarse], float, Tensor, Tensor]:
        """The bins of each column, how many records there are, and for each class their shares in each bin, with its variance."""
        fine = fine_axes(schema)
        cells = Cells(cuts=tuple(axis.cut() for axis in fine), tuples=tuple((place,) for place in range(len(fine))))
        answer = ask("columns", 0, cells)
        noise = answer.noise_std / cells.weight
        counts = np.split(answer.values / cells.weight, np.cumsum([axis.cells for axis in fine])[:-1], axis=1)
        records = _records(counts, noise)
        columns, single, variance = [], [], []
        for axis, found, owner in zip(fine, counts, self._owners(fine, counts, noise, records, schema), strict=True):
            there = axis.cells - axis.column.missing
            in_all = found[:, :there].sum(0, dtype=np.float64)
            columns.append(Coarse(axis, owner[:there], in_all, noise * math.sqrt(len(found))))
            single.append(added(found, owner))
            variance.append(np.bincount(owner) * max(noise, LEAST_NOISE) ** 2)
        shares = np.concatenate(single, axis=1) / records
        scale = np.concatenate(variance) / records**2
        return columns, records, torch.from_numpy(shares).float(), torch.from_numpy(scale).float()

    def _owners(
        self, fine: list[Axis], counts: list[NDArray[np.float32]], noise: float, records: float, schema: Schema
    ) -> list[NDArray[np.int64]]:
        """For each column the cell that each of its fine ones lies in.

        Guarantee: pairs of them are no more than may be asked for. By now the columns are paid, so nothing may fail.
        """
        groups = len(schema.classes) if _few_classes(schema) else 1
        most = max(min(self.bins, math.isqrt(MOST_CELLS // max(len(fine) * (len(fine) - 1) // 2 * groups, 1))), 2)
        while True:
            owners = [
                _owner(axis, found, noise * math.sqrt(len(found)), records, most)
                for axis, found in zip(fine, counts, strict=True)
            ]
            if most == 1 or _pair_cells([int(owner.max()) + 1 for owner in owners]) <= MOST_ASKED:
                return owners
            most //= 2

    def _ask_pairs(self, axes: list[Axis], records: float, ask: Ask, measured: Measured, rules: Rules) -> None:
        cells = Cells(cuts=tuple(axis.cut() for axis in axes), tuples=pairs_of(len(axes)))
        answer = ask("pairs", 0, cells)
        values = torch.from_numpy(np.atleast_2d(answer.values) / (cells.weight * records)).float()
        measured.pairs.copy_(as_matrix(values, measured.sizes))
        noise = max(answer.noise_std / cells.weight, LEAST_NOISE) / records
        measured.precision.copy_(as_matrix(torch.full((1, cells.width), noise**-2), measured.sizes)[0])
        set_zeros(measured, rules, axes)

    def _drawn(self, mixture: Mixture, measured: Measured, axes: list[Axis], schema: Schema) -> SyntheticSet:
        rng = np.random.default_rng(self.seed_at("rows"))
        model = TableModel(tuple(axes), mixture, None, schema)
        if self.per_class:
            parts = [mixture.drawn(self.per_class, rng, label) for label in range(len(schema.classes))]
            cells, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
        else:
            cells, labels = mixture.drawn(self.rows or schema.records, rng)
            if len(axes) > 1 and schema.has_label:
                model = replace(model, labels=self._label_model(mixture, measured, axes, cells))
                places = cells + np.array(measured.starts[:-1])
                labels = balanced(model.label_chances(cells), places, measured.starts[-1], rng)
        x = model.rows({}, np.ones(len(schema.classes))).encoded(cells, labels, rng)
        if schema.rules:
            x, labels = kept_rows(x, labels, schema, lambda y: self._redrawn(model, y, rng), rng, bool(self.per_class))
            x = numbered(x, schema, rng)
        generator = TrainedGenerator(model.spec, model.weights())
        return SyntheticSet(x.reshape(len(x), *schema.shape), labels, generator=generator)

    def _redrawn(self, model: TableModel, labels: NDArray[np.int64], rng: np.random.Generator) -> Drawn:
        """As many rows as there are labels; of the same classes where the set has so many of each."""
        counts = np.bincount(labels, minlength=len(model.schema.classes))
        if not self.per_class:
            return model.rows({}, np.ones(len(counts))).drawn(len(labels), rng, balance=False)
        order = np.argsort(labels, kind="stable")
        x = np.empty((len(labels), model.schema.numbers), dtype=np.float32)
        only = np.eye(len(counts))
        x[order] = np.concatenate(
            [model.rows({}, only[c]).drawn(n, rng, balance=False)[0] for c, n in enumerate(counts.tolist()) if n]
        )
        return x, labels

    def _label_model(self, mixture: Mixture, measured: Measured, axes: list[Axis], cells: NDArray[np.int64]) -> Labels:
        """Fitted on some of the rows: it has a number for each cell, and a million rows would say no more about them."""
        places = torch.from_numpy(cells[:MOST_FITTED] + np.array(measured.starts[:-1]))
        hot = torch.zeros(len(places), measured.starts[-1]).scatter_(1, places, 1.0)
        ordered = [
            slice(block.start, block.stop - axis.column.missing)
            for axis, block in zip(axes, measured.blocks(), strict=True)
            if axis.is_cut
        ]
        found = fitted(measured, ordered, hot, mixture.log_chances(hot))
        return Labels((found.terms + found.smooth).detach(), found.constant.detach(), found.opinion)


def _counts(label: str, noise_multiplier: float, by_class: bool = True) -> ClippedSum:
    return ClippedSum(label=label, map="cells", clip=1.0, noise_multiplier=noise_multiplier, by_class=by_class)


def _owner(axis: Axis, counts: NDArray[np.float32], noise: float, records: float, most: int) -> NDArray[np.int64]:
    """The cell that each fine one lies in; "missing" has the last one."""
    there = counts[:, : axis.cells - axis.column.missing].sum(0).astype(np.float64)
    owner = np.arange(len(there))
    if axis.is_cut:
        begin = bin_starts(there, noise, records, most, axis.alone) if most > 1 else axis.fewest()
        owner = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(there)))
    elif len(there) > MANY:
        owner = grouped(there, noise, records, most)
    return np.append(owner, [owner.max() + 1] * axis.column.missing).astype(np.int64)


def _records(counts: list[NDArray[np.float32]], noise: float) -> float:
    """How many records there are: every column says it, the better the fewer cells it has. The schema's number may be rough."""
    precision = np.array([1 / found.size for found in counts])
    totals = np.array([float(found.sum(dtype=np.float64)) for found in counts])
    return max(float(totals @ precision / precision.sum()), noise, 1.0)


def _least_cells(schema: Schema) -> int:
    """Of the larger query: columns as fine as they are, or pairs of columns that are cut into two, or as few as can be."""
    axes = fine_axes(schema)
    sizes = [
        min(max(len(axis.fewest()), 2) + axis.column.missing, axis.cells) if _may_join(axis) else axis.cells
        for axis in axes
    ]
    return max(sum(axis.cells for axis in axes), _pair_cells(sizes))


def _may_join(axis: Axis) -> bool:
    """Whether fine cells may become one: of numbers, and of many categories."""
    return axis.is_cut or len(axis.column.categories) > MANY


def _pair_cells(sizes: list[int]) -> int:
    """How many cells all pairs of columns have."""
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def _few_classes(schema: Schema) -> bool:
    return len(schema.classes) <= FEW_CLASSES
