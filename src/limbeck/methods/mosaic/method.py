"""Mosaic: a whole table from noised marginals (our own).

Two or three answers are asked, each over all records at once, so that their price is that of as many Gaussians, exactly:

    columns   how many records of each class lie in each fine cell of each column, and in wider ones (levels.py)
    pairs     the same for each pair of columns, cut into bins that the first answer has shown to be worth it
    labels    what the model of the label, as far as it is known by then, expects of the records in each bin (expected.py)

A mixture of products is fitted to the first two (mixture.py); rows are drawn from it so that pairs of cells add up (even.py);
their labels are drawn from a model of the label whose terms stray as far as was measured (labels.py); values are drawn inside
their bins. All of that is post-processing.

Where we differ from AIM (McKenna et al. 2022), and why:
- Nothing is chosen: every pair is asked once. At epsilon 1 on Adult, asking again about the pairs that stand out made the rows
  worse, because these are the ones that need it least. So there is no selection to pay for, and Gaussians compose exactly,
  where AIM converts zero-concentrated privacy, which at epsilon 1 and delta 1e-5 costs it 15 per cent of its rho.
- Numbers are cut where the first answer shows that the classes change (bins.py), not evenly.
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
from limbeck.methods.mosaic.aimed import parts_of
from limbeck.methods.mosaic.asking import LEAST_NOISE, ask_pairs
from limbeck.methods.mosaic.axes import Axis, fine_axes
from limbeck.methods.mosaic.coarse import Coarse
from limbeck.methods.mosaic.condensed import MOST, Large, Small, steps_for
from limbeck.methods.mosaic.drawing import drawn_by_class, drawn_table, kept
from limbeck.methods.mosaic.expected import Expected, ask_labels
from limbeck.methods.mosaic.fit import MOST_FITTED, Fit
from limbeck.methods.mosaic.keeping import Drawn, most_unique
from limbeck.methods.mosaic.levels import Column, counted, nodes_of, question, total
from limbeck.methods.mosaic.measured import Measured
from limbeck.methods.mosaic.mixture import Mixture
from limbeck.methods.mosaic.model import TableModel
from limbeck.methods.mosaic.owners import MANY, owner_of
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.privacy.witness import witness
from limbeck.vault.api import Ask

MOST_CELLS = 1 << 22  # of all pairs and classes; more bins than that takes are not made
MOST_ASKED = 1 << 24  # cells of a query, as the map has it; found out before anything is booked
FEW_CLASSES = 10  # up to so many, pairs are asked for each class: what depends on two columns together is in there
MOST_ROWS = 10_000_000
WARM = 20  # steps until the step size is eta
SEARCH = 4000  # steps towards a small set
PARTS = 3  # of a target, where there is no label
FORM = 3  # of the questions; 1 is that of version 0.6 and before, 2 of 0.7
LABELS = 0.1  # of the budget, for the third question


@dataclass(frozen=True, kw_only=True)
class MosaicChoice(Chosen):
    """The settings of Mosaic that may be left open, all of them set."""

    search: int
    form: int
    parts: int


@dataclass(frozen=True, kw_only=True)
class Mosaic(Method):
    """rows: how many, in the classes' own shares; none: as many as there are records. per_class: so many of each class in
    place of that; 0: their own shares. share: of the budget for the columns, the rest is for the pairs. bins: of a numeric
    column, about. components: of the mixture, over all classes. T, eta: steps and step size of Adam. pull: of components towards
    their mean. search: steps towards a small set that models learn well from; 0: its rows are drawn like those of a large one;
    none: 4000 for sets of up to 1000 rows that `rows` or `per_class` asks for. form: of the questions, by the version that asked
    them first. sigma: noise std / sensitivity of all answers together."""

    name: ClassVar[str] = "mosaic"
    title: ClassVar[str] = "A whole table from noised marginals (our own)"
    paper: ClassVar[str] = "Limbeck, docs/tables.md"
    needs: ClassVar[str] = "tables; seconds to minutes of one core; any number of rows at the same price"
    sized_by_rows: ClassVar[bool] = True

    per_class: int = setting(0, least=0, most=MOST_PER_CLASS)
    rows: int | None = setting(None, least=1, most=MOST_ROWS)
    share: float = setting(0.5, above=0, below=1)
    bins: int = setting(40, least=2, most=1000)
    components: int = setting(500, least=1, most=100_000)
    T: int = setting(800, least=1)
    eta: float = setting(0.1, above=0)
    pull: float = setting(50.0, least=0)
    search: int | None = setting(None, least=0)
    form: int | None = setting(None, least=1, most=FORM)
    parts: int | None = setting(None, least=1, most=FEW_CLASSES)
    sigma: float | None = setting(None, above=0)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> MosaicChoice:
        search = SEARCH if 0 < self._asked_for(schema) <= MOST else 0
        parts = PARTS if schema.targets and not schema.has_label else 1
        return MosaicChoice(
            search=given(self.search, search), form=given(self.form, FORM), parts=given(self.parts, parts)
        )

    def _asked_for(self, schema: Schema) -> int:
        """Rows that a setting asks for; 0: none does."""
        return self.per_class * len(schema.classes) or self.rows or 0

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
        if self.search and not 0 < self._asked_for(schema) <= MOST:
            raise BadSettings(f"search={self.search} is for small sets. Choose rows of {MOST} at most, or search=0.")
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
        rows, most = self._asked_for(schema) or schema.records, most_unique(schema)
        if most is not None and rows > most:
            raise BadSettings(
                f"{rows} rows cannot have different values: a unique column has {most}. Choose --rows {most}."
            )

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        if len(fine_axes(schema)) == 1:
            return (_counts("columns", noise_multiplier),)
        rest = 1 - LABELS if self._asks_labels(schema) else 1.0
        both = (
            _counts("columns", noise_multiplier / math.sqrt(self.share * rest)),
            _counts("pairs", noise_multiplier / math.sqrt((1 - self.share) * rest), by_class=_few_classes(schema)),
        )
        if rest == 1:
            return both
        return (*both, replace(_counts("labels", noise_multiplier / math.sqrt(1 - rest), False), map="label_cells"))

    def _asks_labels(self, schema: Schema) -> bool:
        """Whether labels are drawn from a model of them, and pairs say for each class whether its terms are enough. A small set
        that is searched for learns from a teacher, which has the two answers."""
        is_drawn = not self.per_class and not self.search
        return (self.form or 1) > 2 and is_drawn and len(schema.classes) > 1 and _few_classes(schema)

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        columns, records, single, variance = self._columns(schema, ask)
        axes = [column.axis for column in columns]
        sizes = tuple(axis.cells for axis in axes)
        parts = parts_of(schema, axes, single, self.parts or 1, MOST_ASKED)
        whole = None
        if parts is not None:
            whole = (single[0], variance)
            single, variance = parts.spread(single, variance, sizes)
        groups = len(single) if parts is not None or _few_classes(schema) else 1
        # Answers are part of the state: a checkpoint drops them from the ledger.
        pairs, precision = torch.zeros(groups, sum(sizes), sum(sizes)), torch.zeros(sum(sizes), sum(sizes))
        mixture = Mixture(sizes, single, max(self.components // len(single), 1), self.rng("components"))
        adam = Adam([mixture.logits, mixture.weights], self.eta)
        labelled = None
        if schema.has_label and groups == 1 and len(axes) > 1 and (self.form or 1) > 1:
            labelled = (torch.zeros_like(single), torch.zeros_like(variance))
        measured = Measured(sizes, single, variance, pairs, precision, whole, labelled)
        small, search = self._small(schema, axes)
        asks = self._asks_labels(schema) and len(axes) > 1
        said = Expected.none(len(single), sum(sizes)) if asks else None
        state = adam.state | measured.state | (small.state if small else {}) | (said.state if said else {})
        fit = Fit(mixture, measured, columns, schema, records, (self.form or 1) > 1, said)
        target: Measured | None = None
        large: Large | None = None
        # The columns are asked about before the loop, also when a run is resumed, so their answer stays.
        for step in logbook.steps(self.T + asks + search, state, "pairs" if len(axes) > 1 else ""):
            if said and step == self.T:
                self._ask_labels(fit, ask, said)
                continue
            if small and step >= self.T:
                large = large or self._large(fit)
                small.step(large, step - self.T, np.random.default_rng(self.seed_at("search", step)))
                continue
            if step == 0 and len(axes) > 1:
                ask_pairs(axes, records, ask, measured, schema.rules, parts)
            target = fit.target() if target is None else target
            adam.eta = self.eta * min(1.0, (step + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * step / self.T))
            adam.move(torch.autograd.grad(mixture.loss(target, self.pull), adam.parameters))
        if small:
            model, rng = (large or self._large(fit)).model, np.random.default_rng(self.seed_at("small"))
            return _with_model(model, kept(model, small.x.numpy(), small.y.numpy(), rng, by_class=self.per_class > 0))
        return self._drawn(fit)

    def _ask_labels(self, fit: Fit, ask: Ask, said: Expected) -> None:
        cells, _ = fit.cells(MOST_FITTED, np.random.default_rng(self.seed_at("labels")), MOST_FITTED)
        ask_labels(fit.label_model(cells), fit.axes, fit.measured, fit.records, ask, said)

    def _columns(self, schema: Schema, ask: Ask) -> tuple[list[Coarse], float, Tensor, Tensor]:
        """The bins of each column, how many records there are, and for each class their shares in each bin, with its variance."""
        fine = fine_axes(schema)
        cells = question(fine, self.form or 1, alone=not _few_classes(schema))
        found = counted(fine, cells, ask("columns", 0, cells))
        records = total(found)
        columns, single, variance = [], [], []
        for column, owner in zip(found, self._owners(found, records, schema), strict=True):
            columns.append(Coarse(column, owner[: column.levels.cells]))
            counts, spread = column.added(owner)
            single.append(counts)
            variance.append(np.maximum(spread, LEAST_NOISE**2))
        shares = np.concatenate(single, axis=1) / records
        scale = np.concatenate(variance) / records**2
        return columns, records, torch.from_numpy(shares).float(), torch.from_numpy(scale).float()

    def _owners(self, found: list[Column], records: float, schema: Schema) -> list[NDArray[np.int64]]:
        """For each column the cell that each of its fine ones lies in.

        Guarantee: pairs of them are no more than may be asked for. By now the columns are paid, so nothing may fail.
        """
        groups = len(schema.classes) if _few_classes(schema) else 1
        most = max(min(self.bins, math.isqrt(MOST_CELLS // max(len(found) * (len(found) - 1) // 2 * groups, 1))), 2)
        while True:
            owners = [owner_of(column, records, most, _few_classes(schema), (self.form or 1) > 1) for column in found]
            if most == 1 or _pair_cells([int(owner.max()) + 1 for owner in owners]) <= MOST_ASKED:
                return owners
            most //= 2

    def _small(self, schema: Schema, axes: list[Axis]) -> tuple[Small | None, int]:
        """The small set that is asked for, if any, and the steps of its search."""
        if not self.search:
            return None, 0
        rows, classes = self._asked_for(schema), len(schema.classes)
        fixed = np.repeat(np.arange(classes), self.per_class) if self.per_class else None
        steps = steps_for(self.search, rows, axes, classes)
        return Small(rows, schema.numbers, steps, fixed), steps

    def _large(self, fit: Fit) -> Large:
        return Large.drawn(fit, np.random.default_rng(self.seed_at("large")))

    def _drawn(self, fit: Fit) -> SyntheticSet:
        rng = np.random.default_rng(self.seed_at("rows"))
        if self.per_class:
            return _with_model(*drawn_by_class(fit, self.per_class, rng))
        return _with_model(*drawn_table(fit, self.rows or fit.schema.records, rng))


def _with_model(model: TableModel, rows: Drawn) -> SyntheticSet:
    x, y = rows
    generator = TrainedGenerator(model.spec, model.weights())
    return SyntheticSet(x.reshape(len(x), *model.schema.shape), y, generator=generator)


def _counts(label: str, noise_multiplier: float, by_class: bool = True) -> ClippedSum:
    return ClippedSum(label=label, map="cells", clip=1.0, noise_multiplier=noise_multiplier, by_class=by_class)


def _least_cells(schema: Schema) -> int:
    """Of the larger query: columns as fine as they are, or pairs of columns that are cut into two, or as few as can be."""
    axes = fine_axes(schema)
    sizes = [
        min(max(len(axis.fewest()), 2) + axis.column.missing, axis.cells) if _may_join(axis) else axis.cells
        for axis in axes
    ]
    return max(sum(map(nodes_of, axes)), _pair_cells(sizes))


def _may_join(axis: Axis) -> bool:
    """Whether fine cells may become one: of numbers, and of many categories."""
    return axis.is_cut or len(axis.column.categories) > MANY


def _pair_cells(sizes: list[int]) -> int:
    """How many cells all pairs of columns have."""
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def _few_classes(schema: Schema) -> bool:
    return len(schema.classes) <= FEW_CLASSES
