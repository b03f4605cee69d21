"""A fitted model as tables of new columns given earlier ones: what a release carries, and rows are drawn from at no price.

A junction tree is such a network, clique after clique, and so is one of Bayes. Conditions on columns are exact where the
network fits into a small junction tree; otherwise rows are drawn and those that break them are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.methods.graphical.junction_tree import Clique, JunctionTree
from limbeck.methods.graphical.model import GraphicalModel
from limbeck.methods.graphical.rows import Cells, cells_given, rows_of
from limbeck.methods.mosaic.axes import NO_LIMIT, Axis, Numbers, axes_cut_at, columns_of
from limbeck.methods.mosaic.insides import require_edges
from limbeck.methods.mosaic.limits import Limit
from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.privacy.schema import Schema

MOST_EXACT = 1 << 22  # cells of a junction tree in which conditions are worked out
LOOKED_AT = 100_000  # rows that stand for the marginals of a larger one
LEAST = 1e-300  # a chance that is none
Drawn = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Factor:
    """table: (cells of the given columns, cells of the new ones), chances; the last column of either counts fastest."""

    new: Clique
    given: Clique
    table: Numbers


def factors_of(model: GraphicalModel) -> tuple[Factor, ...]:
    """Clique after clique, each given what stands before it."""
    found: list[Factor] = []
    done: set[int] = set()
    for clique, shares in zip(model.tree.cliques, model.shares(), strict=True):
        given, new = tuple(p for p in clique if p in done), tuple(p for p in clique if p not in done)
        table = shares.numpy().transpose([clique.index(place) for place in (*given, *new)])
        found.append(Factor(new, given, lines(table.reshape(-1, model.tree.cells_of(new)))))
        done.update(new)
    return tuple(found)


def lines(table: Numbers) -> Numbers:
    """Every line adds up to 1; one without anything is even."""
    table = np.maximum(table, 0) + LEAST
    found: Numbers = table / table.sum(1, keepdims=True)
    return found


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """axes: the columns and where they are cut. The label, if there is one, is a column at the place after them."""

    axes: tuple[Axis, ...]
    factors: tuple[Factor, ...]
    schema: Schema

    # Classes come in the model's own shares, however many of each a set has.
    says_classes = True

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return (*(axis.cells for axis in self.axes), *([len(self.schema.classes)] if self.schema.has_label else []))

    @property
    def spec(self) -> GraphSpec:
        steps = tuple((factor.new, factor.given) for factor in self.factors)
        return GraphSpec(edges=tuple(len(axis.edges) for axis in self.axes), steps=steps)

    def weights(self) -> dict[str, Tensor]:
        """Everything that the spec does not say. Edges stand one column after the other, tables one step after the other."""
        tables = np.concatenate([factor.table.flatten() for factor in self.factors])
        edges = np.concatenate([axis.edges for axis in self.axes])
        return {"edges": torch.from_numpy(edges), "tables": torch.from_numpy(tables.astype(np.float32))}

    @staticmethod
    def of(spec: GraphSpec, weights: Mapping[str, Tensor], schema: Schema) -> NetworkModel:
        """Put together again, for the public columns of the schema.

        Guarantee: raises BadInput unless all weights are there, have the form that spec and schema ask for, and are chances.
        """
        if schema.is_image or len(columns_of(schema)) != len(spec.edges) or spec.has_label != schema.has_label:
            raise BadInput(f"The model has {len(spec.edges)} columns, which are not those of the schema.")
        if set(weights) != {"edges", "tables"}:
            raise BadInput(f"Expected the weights ['edges', 'tables'], got {sorted(weights)}.")
        edges = _checked(weights["edges"], sum(spec.edges), torch.float64)
        axes = axes_cut_at(schema, np.split(edges, list(accumulate(spec.edges))[:-1]))
        for axis in axes:
            require_edges(axis)
        sizes = NetworkModel(tuple(axes), (), schema).sizes
        cells = [math.prod(sizes[place] for place in (*new, *given)) for new, given in spec.steps]
        tables = np.split(_checked(weights["tables"], sum(cells), torch.float32), list(accumulate(cells))[:-1])
        factors = []
        for (new, given), table in zip(spec.steps, tables, strict=True):
            shaped = table.reshape(-1, math.prod(sizes[place] for place in new)).astype(np.float64)
            if not (bool((shaped >= 0).all()) and np.allclose(shaped.sum(1), 1, atol=1e-3)):
                raise BadInput("The lines of a table do not add up.")
            factors.append(Factor(new, given, lines(shaped)))
        return NetworkModel(tuple(axes), tuple(factors), schema)

    def rows(self, limits: Mapping[int, Limit], classes: Numbers) -> NetworkRows:
        """What rows are drawn from if they are to keep to the limits, by the place of their column. classes: 0 for those that
        may not come."""
        kept = {place: self.axes[place].kept(limit) for place, limit in limits.items()}
        if self.schema.has_label and not (classes > 0).all():
            kept[len(self.axes)] = (classes > 0).astype(np.float64)
        model, mass = (self._exact if kept else None), 1.0
        for place, left in kept.items():
            if model is not None and mass > 0:
                mass *= float(model.marginal((place,)).numpy() @ left)
                model = model.given(place, torch.from_numpy(left))
        return NetworkRows(self, dict(limits), kept, model, mass)

    @cached_property
    def _exact(self) -> GraphicalModel | None:
        tree = JunctionTree.of(self.sizes, [tuple(sorted((*each.new, *each.given))) for each in self.factors])
        if tree.cells > MOST_EXACT:
            return None
        tables = {}
        for factor in self.factors:
            places = (*factor.given, *factor.new)
            shaped = torch.from_numpy(factor.table).log().reshape([self.sizes[place] for place in places])
            order = sorted(range(len(places)), key=places.__getitem__)
            tables[tuple(places[at] for at in order)] = shaped.permute(order)
        return GraphicalModel.even(tree).moved(tables)

    def cells(self, count: int, rng: np.random.Generator) -> Cells:
        """(rows, columns), the label last."""
        rows = np.zeros((count, len(self.sizes)), dtype=np.int64)
        for factor in self.factors:
            groups = np.zeros(count, dtype=np.int64)
            for place in factor.given:
                groups = groups * self.sizes[place] + rows[:, place]
            found = cells_given(factor.table, groups, rng)
            for place in reversed(factor.new):
                found, rows[:, place] = np.divmod(found, self.sizes[place])
        return rng.permutation(rows)

    def column_shares(self) -> dict[str, Numbers]:
        """Of each column the share of each of its cells."""
        if self._exact is not None:
            parts = [self._exact.marginal((place,)).numpy() for place in range(len(self.axes))]
        else:
            rows = self.cells(LOOKED_AT, np.random.default_rng(0))
            parts = [np.bincount(rows[:, p], minlength=self.sizes[p]) / len(rows) for p in range(len(self.axes))]
        return {axis.column.name: part for axis, part in zip(self.axes, parts, strict=True)}


@dataclass(frozen=True, eq=False)
class NetworkRows:
    """A model under limits. kept: of every limited column how much of each cell may come. exact: the model under them; None:
    there are none, or rows that break them are dropped. mass: the share of all rows that keep to them, as far as it is known."""

    model: NetworkModel
    limits: Mapping[int, Limit]
    kept: Mapping[int, Numbers]
    exact: GraphicalModel | None
    mass: float

    def drawn(self, count: int, rng: np.random.Generator, balance: bool = True) -> Drawn:
        """Up to `count` rows, encoded, and their classes, in an order that says nothing."""
        if self.exact is not None:
            return self._encoded(rows_of(self.exact, count, rng), rng)
        cells = self.model.cells(count, rng)
        chance = np.ones(count)
        for place, left in self.kept.items():
            chance = chance * left[cells[:, place]]
        return self._encoded(cells[rng.random(count) < chance], rng)

    def _encoded(self, cells: Cells, rng: np.random.Generator) -> Drawn:
        return encoded_rows(self.model.axes, cells, rng, self.limits)


def encoded_rows(
    axes: Sequence[Axis], cells: Cells, rng: np.random.Generator, limits: Mapping[int, Limit] | None = None
) -> Drawn:
    """Values are drawn evenly inside of their cells, in what the limits leave of them."""
    limits = limits or {}
    parts = [axis.encoded(cells[:, place], rng, limits.get(place, NO_LIMIT)) for place, axis in enumerate(axes)]
    labels = cells[:, len(axes)] if cells.shape[1] > len(axes) else np.zeros(len(cells), dtype=np.int64)
    return np.concatenate(parts, axis=1), labels


def _checked(values: Tensor, count: int, dtype: torch.dtype) -> Numbers:
    if tuple(values.shape) != (count,) or values.dtype != dtype or not bool(values.isfinite().all()):
        raise BadInput(f"Expected {count} finite weights of {dtype}, got {tuple(values.shape)} of {values.dtype}.")
    found: Numbers = values.numpy()
    return found
