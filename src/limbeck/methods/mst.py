"""MST: a tree of pairs of columns (McKenna, Miklau and Sheldon 2021, the winner of the NIST challenge of 2018).

    columns     every column by itself
    choices     a spanning tree of the columns, edge by edge: of all pairs that join two parts, one that independent columns get
                most wrong is chosen, in private. Its score is |counts - estimate|_1, which one record moves by 1
    marginals   the pairs of the tree, all in one answer

The model that agrees best with both answers is a tree, so it is fitted and drawn from exactly. Each of the three has a third of
the budget, as in the paper.

Where we differ, and why: numeric columns are cut where the first answer shows records, in place of the paper's merging of rare
values; the price is that of Gaussians and choices by their privacy loss. The label, where there is one, is one more column.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import torch

from limbeck.methods.base import Logbook, SyntheticSet
from limbeck.methods.graphical.columns import (
    Columns,
    ask_columns,
    column_count,
    columns_queries,
    measurement,
    shared_out,
)
from limbeck.methods.graphical.fitting import Measurement, fitted
from limbeck.methods.graphical.junction_tree import Clique, JunctionTree
from limbeck.methods.graphical.method import MarginalMethod
from limbeck.methods.graphical.model import GraphicalModel
from limbeck.methods.settings import setting
from limbeck.privacy.queries import Choice, ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, MarginalErrors

THIRD = 1 / 3


@dataclass(frozen=True, kw_only=True)
class MST(MarginalMethod):
    """rows, per_class: as in mosaic. bins: of a numeric column, about. T: steps of mirror descent. sigma: noise std /
    sensitivity of all answers together."""

    name: ClassVar[str] = "mst"
    title: ClassVar[str] = "MST: a tree of noised pairs"
    paper: ClassVar[str] = "McKenna, Miklau, Sheldon: Winning the NIST contest (JPC 2021)"
    needs: ClassVar[str] = "tables; seconds to a minute of one core"

    T: int = setting(1000, least=1)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        edges = column_count(schema) - 1
        if not edges:
            return columns_queries(noise_multiplier, 1.0)
        chosen = shared_out(noise_multiplier, THIRD, edges)
        once = shared_out(noise_multiplier, THIRD)
        return (
            *columns_queries(noise_multiplier, THIRD),
            Choice(label="choices", map="marginal_errors", clip=1.0, noise_multiplier=chosen, count=edges),
            ClippedSum(label="marginals", map="cells", clip=1.0, noise_multiplier=once, by_class=False),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        count = column_count(schema) - 1
        columns = ask_columns(schema, ask, self.bins, THIRD if count else 1.0)
        alone = fitted(GraphicalModel.even(JunctionTree.of(columns.sizes, [])), columns.single, columns.total, self.T)
        edges = torch.zeros(count, 2, dtype=torch.int64)
        for step in logbook.steps(len(edges), {"edges": edges}, "choices" if count else ""):
            candidates = _joining(len(columns.sizes), [tuple(edge) for edge in edges[:step].tolist()])
            place = int(ask("choices", step, _errors(alone, columns, candidates)).values[0])
            edges[step] = torch.tensor(candidates[place])
        tree = [tuple(edge) for edge in edges.tolist()]
        model = fitted(alone, [*columns.single, *self._pairs(columns, tree, ask)], columns.total, self.T)
        return columns.drawn(model, schema, self.rows, self.per_class, np.random.default_rng(self.seed_at("rows")))

    def _pairs(self, columns: Columns, tree: list[Clique], ask: Ask) -> list[Measurement]:
        if not tree:
            return []
        cells = columns.cells(tree)
        answer = ask("marginals", 0, cells)
        counts = torch.split(answer.tensor().double() / cells.weight, list(cells.sizes))
        noise = answer.noise_std / cells.weight
        return [measurement(edge, found, noise) for edge, found in zip(tree, counts, strict=True)]


def _joining(columns: int, edges: list[Clique]) -> list[Clique]:
    """All pairs of columns that lie in different parts so far (Kruskal's algorithm)."""
    part = list(range(columns))
    for first, second in edges:
        old, new = part[second], part[first]
        part = [new if each == old else each for each in part]
    return [(first, second) for first, second in combinations(range(columns), 2) if part[first] != part[second]]


def _errors(alone: GraphicalModel, columns: Columns, candidates: list[Clique]) -> MarginalErrors:
    estimates = [alone.marginal(pair).flatten() * columns.total for pair in candidates]
    return MarginalErrors(
        cells=columns.cells(candidates),
        estimates=torch.cat(estimates),
        weights=torch.ones(len(candidates), dtype=torch.float64),
        penalties=torch.zeros(len(candidates), dtype=torch.float64),
    )
