"""The model of a table: what rows and their labels are drawn from. It is made of answers, so drawing from it is free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.methods.mosaic.axes import Axis, Numbers, asked_columns, axes_cut_at
from limbeck.methods.mosaic.follow import (
    Follow,
    follow_forms,
    followed,
    follows_of,
    leaders_of,
    stored_follows,
    together,
)
from limbeck.methods.mosaic.insides import inside_forms, require_edges, stored_counts, stored_insides, with_insides
from limbeck.methods.mosaic.keeping import broken_columns, encoded_rows
from limbeck.methods.mosaic.labels import balanced
from limbeck.methods.mosaic.limits import Limit
from limbeck.methods.mosaic.mixture import Mixture, drawn_cells, edges_of
from limbeck.methods.mosaic.redrawing import redrawn_cells
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Schema

MENDED = 20  # how often the cells of a broken constraint are drawn again
LABELLED_AT_ONCE = 1 << 14  # rows; fixed, because the last bits of a sum may depend on it


@dataclass(frozen=True, eq=False)
class Labels:
    """Log odds of the classes: a constant, a term for each cell, (cells, classes), and a share of the mixture's opinion."""

    terms: Tensor
    constant: Tensor
    opinion: float


@dataclass(frozen=True, eq=False)
class TableModel:
    """axes: the columns and where they are cut. labels: None if a row is of the class of its component. schema: of its rows.
    follows: columns that others decide."""

    axes: tuple[Axis, ...]
    mixture: Mixture
    labels: Labels | None
    schema: Schema
    follows: tuple[Follow, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.cells for axis in self.axes)

    @property
    def says_classes(self) -> bool:
        """Whether classes come in its own shares, not in those of a set."""
        return self.labels is not None

    def column_shares(self) -> dict[str, Numbers]:
        """Of each column the share of each of its cells, over all components."""
        chances, shares = self._tables
        total = (chances.double() * shares.double()[:, :, None]).sum((0, 1)).numpy()
        parts = np.split(total, np.cumsum(self.sizes)[:-1])
        for each in self.follows:
            parts[each.column] = np.bincount(each.cells, parts[each.leader], minlength=self.sizes[each.column])
        return {axis.column.name: part / part.sum() for axis, part in zip(self.axes, parts, strict=True)}

    @property
    def spec(self) -> TableSpec:
        return TableSpec(
            components=self.mixture.weights.shape[1],
            edges=tuple(len(axis.edges) for axis in self.axes),
            opinion=None if self.labels is None else self.labels.opinion,
            **stored_counts(self.axes),
            **leaders_of(self.follows, len(self.axes)),
        )

    def weights(self) -> dict[str, Tensor]:
        """Everything that the spec does not say, by name. Edges stand one column after the other."""
        named = {
            "logits": self.mixture.logits.detach(),
            "weights": self.mixture.weights.detach(),
            "edges": torch.from_numpy(np.concatenate([axis.edges for axis in self.axes])),
        }
        if self.labels is not None:
            named |= {"terms": self.labels.terms, "constant": self.labels.constant}
        return named | stored_insides(self.axes) | stored_follows(self.follows)

    @staticmethod
    def of(spec: TableSpec, weights: Mapping[str, Tensor], schema: Schema) -> TableModel:
        """Put together again, for the public columns of the schema.

        Guarantee: raises BadInput unless all weights are there, are finite and have the form that spec and schema ask for.
        """
        columns = asked_columns(schema)
        if schema.is_image or len(columns) != len(spec.edges):
            raise BadInput(f"The model has {len(spec.edges)} columns, the schema {len(columns)}.")
        _require(weights, {"edges": ((sum(spec.edges),), torch.float64)}, exactly=False)
        cuts = np.split(weights["edges"].numpy(), list(accumulate(spec.edges))[:-1])
        axes = axes_cut_at(schema, cuts)
        for axis in axes:
            require_edges(axis)
        inside = {name: weights[name] for name in inside_forms(spec, columns) if name in weights}
        _require(inside, inside_forms(spec, columns))
        axes = with_insides(axes, spec, inside)
        sizes, classes = tuple(axis.cells for axis in axes), len(schema.classes)
        forms = _forms(spec, sum(sizes), classes) | inside_forms(spec, columns) | follow_forms(spec, sizes)
        _require(weights, forms)
        labels = None
        if spec.opinion is not None:
            labels = Labels(weights["terms"], weights["constant"], float(spec.opinion))
        mixture = Mixture.of(sizes, weights["logits"], weights["weights"])
        return TableModel(tuple(axes), mixture, labels, schema, follows_of(spec, sizes, weights))

    def rows(self, limits: Mapping[int, Limit], classes: NDArray[np.float64]) -> Rows:
        """What rows are drawn from if they are to keep to the limits, by the place of their column.

        classes: how much a class counts, 0: none of it. Of a model with labels all that are not 0 count the same.
        """
        chances, shares = (part.double().numpy() for part in self._tables)
        if self.labels is None:
            by_class = classes / classes.sum()
            shares = shares / shares.sum(1, keepdims=True) * by_class[:, None]
        chances = chances.reshape(shares.size, -1)
        starts = np.cumsum([0, *self.sizes])
        shares = shares.copy()
        for place, kept in self._kept(limits).items():
            part = slice(starts[place], starts[place + 1])
            chances[:, part] *= kept
            shares *= chances[:, part].sum(1).reshape(shares.shape)
        return Rows(self, dict(limits), classes > 0, edges_of(chances, self.sizes), shares)

    def _kept(self, limits: Mapping[int, Limit]) -> dict[int, Numbers]:
        """How much of each cell the limits leave, by the place of a column that is drawn: one that follows limits its leader."""
        kept = {place: self.axes[place].kept(limit) for place, limit in limits.items()}
        for each in self.follows:
            if each.column in kept:
                kept[each.leader] = kept.get(each.leader, 1.0) * kept.pop(each.column)[each.cells]
        return kept

    @cached_property
    def _tables(self) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            chances, shares = self.mixture()
        return chances, shares

    @cached_property
    def _log_chances(self) -> list[tuple[Tensor, Tensor]]:
        """For each class (cells, components) and (components,)."""
        return [
            (part.clamp_min(1e-12).log().T.contiguous(), share.clamp_min(1e-30).log())
            for part, share in zip(*self._tables, strict=True)
        ]

    def label_chances(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """(rows, classes) for rows of cells."""
        assert self.labels is not None
        places = torch.from_numpy(cells + np.cumsum([0, *self.sizes[:-1]]))
        parts = [self._log_odds(self.labels, part) for part in torch.split(places, LABELLED_AT_ONCE)]
        return torch.softmax(torch.cat(parts), 1).double().numpy()

    @torch.no_grad()
    def _log_odds(self, labels: Labels, places: Tensor) -> Tensor:
        odds = F.embedding_bag(places, labels.terms, mode="sum") + labels.constant
        if labels.opinion:
            opinions = [
                torch.logsumexp(F.embedding_bag(places, table, mode="sum") + share, 1)
                for table, share in self._log_chances
            ]
            odds = odds + labels.opinion * torch.stack(opinions, 1)
        return odds


@dataclass(frozen=True, eq=False)
class Rows:
    """A model under limits. Within a component columns are independent, so limits on columns are kept exactly: components count
    by how much of them is left, and cells, too. Labels depend on the whole row; rows of other classes are drawn and dropped.

    wanted: (classes,) which may come. edges: for each column (components, cells), chances added up. shares: of components.
    """

    model: TableModel
    limits: Mapping[int, Limit]
    wanted: NDArray[np.bool_]
    edges: list[Numbers]
    shares: Numbers

    @property
    def mass(self) -> float:
        """The share of all rows that keep to the limits on columns."""
        return float(self.shares.sum())

    def drawn(
        self, count: int, rng: np.random.Generator, balance: bool = True
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Up to `count` rows, encoded, and their classes, in an order that says nothing.

        balance: labels add up in every cell, as those of the set do. It takes most of the time; among very many rows they do by
        themselves, up to less than was measured.
        """
        cells, chosen = drawn_cells(self.edges, self.shares, count, rng)
        followed(cells, self.model.follows)
        if self.model.labels is None:
            labels = chosen // self.shares.shape[1]
        else:
            cells, labels = self._labelled(cells, rng, balance)
        return self.encoded(cells, labels, rng), labels

    def encoded(
        self, cells: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Values for rows of cells, with all that can be mended of a row that breaks a constraint mended (keeping.py)."""
        schema, cells = self.model.schema, cells.copy()
        x = encoded_rows(self.model.axes, schema, cells, labels, rng, self.limits)
        for _ in range(MENDED if schema.rules.names else 0):
            wrong, columns = broken_columns(x, labels, schema, self.model.axes)
            if not len(wrong):
                break
            own = labels[wrong] if self.model.labels is None else None
            columns = together(columns, self.model.follows)
            fresh = redrawn_cells(self.edges, self.shares, cells[wrong], columns, own, rng)
            cells[wrong] = followed(fresh, self.model.follows)
            x[wrong] = encoded_rows(self.model.axes, schema, cells[wrong], labels[wrong], rng, self.limits)
        return x

    def _labelled(
        self, cells: NDArray[np.int64], rng: np.random.Generator, balance: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        chances = self.model.label_chances(cells)
        if not self.wanted.all():
            chances = chances * self.wanted
            total = chances.sum(1)
            keeps = rng.random(len(total)) < total
            cells, chances = cells[keeps], chances[keeps] / total[keeps, None]
        if self.wanted.sum() == 1:
            return cells, np.full(len(cells), int(self.wanted.argmax()), dtype=np.int64)
        if not balance:
            below = chances.cumsum(1)[:, :-1] < rng.random((len(cells), 1))
            return cells, below.sum(1)
        starts = np.cumsum([0, *self.model.sizes])
        return cells, balanced(chances, cells + starts[:-1], int(starts[-1]), rng)


def _forms(spec: TableSpec, cells: int, classes: int) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    forms: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
        "logits": ((classes, spec.components, cells), torch.float32),
        "weights": ((classes, spec.components), torch.float32),
        "edges": ((sum(spec.edges),), torch.float64),
    }
    if spec.opinion is not None:
        forms |= {"terms": ((cells, classes), torch.float32), "constant": ((classes,), torch.float32)}
    return forms


def _require(
    weights: Mapping[str, Tensor], forms: Mapping[str, tuple[tuple[int, ...], torch.dtype]], exactly: bool = True
) -> None:
    if set(forms) - set(weights) or (exactly and set(weights) - set(forms)):
        raise BadInput(f"Expected the weights {sorted(forms)}, got {sorted(weights)}.")
    for name, (shape, dtype) in forms.items():
        found = weights[name]
        if tuple(found.shape) != shape or found.dtype != dtype:
            raise BadInput(f"Expected {name} of shape {shape} and {dtype}, got {tuple(found.shape)} and {found.dtype}.")
        if not bool(found.isfinite().all()):
            raise BadInput(f"Not all of {name} is finite.")
