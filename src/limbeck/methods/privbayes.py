"""PrivBayes: a Bayesian network of columns (Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017).

Columns are added one after the other. For each, a pair of a new column X and up to k parents, from those that are there, is
chosen in private: the one that goes together most. Its table is measured, and rows are extended by X given its parents.

Where we differ, and why:
- The paper scores a pair by R, half the distance between the records' joint distribution and the product of their own
  marginals. It divides by n, and its sensitivity 3/n + 2/n^2 holds if records are exchanged: where one is added or removed, n
  itself is private, and in counts R moves by up to 2. (The authors' code has that sensitivity and replaces records. Other
  implementations use mutual information with a sensitivity that holds for binary columns only, or read n and the columns'
  ranges off the records.) Here a pair is scored by the distance of its counts from what the rows so far and the first answer
  predict of it if X were independent, |counts - total P(X) P(parents)|_1. The prediction is public, so one record moves the
  score by 1.
- Each table is measured right after it is chosen, because the prediction needs it.
- Gaussian noise in place of Laplace noise; columns are cut by a first answer; the first column is the label, where there is one.
- A table has to hold `theta` times as many records as its noise has std, on average (the paper's usefulness).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, combinations
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.methods.base import Logbook, SyntheticSet
from limbeck.methods.graphical.columns import (
    LEAST_NOISE,
    Columns,
    ask_columns,
    column_count,
    columns_queries,
    shared_out,
)
from limbeck.methods.graphical.junction_tree import Clique
from limbeck.methods.graphical.method import MarginalMethod
from limbeck.methods.graphical.network import Factor, lines
from limbeck.methods.graphical.rows import Cells, cells_given
from limbeck.methods.settings import setting
from limbeck.privacy.queries import Choice, ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, MarginalErrors

FIRST, STRUCTURE = 0.2, 0.25  # shares of the budget for the first answer and for choices
MOST_CANDIDATES = 1 << 23  # cells of all candidates of a choice; of more, those with more parents are left out


@dataclass(frozen=True, kw_only=True)
class PrivBayes(MarginalMethod):
    """rows, per_class: as in mosaic. k: parents of a column, at most. theta: records of a cell / std of its noise, at least.
    bins: of a numeric column, about. sigma: noise std / sensitivity of all answers together."""

    name: ClassVar[str] = "privbayes"
    title: ClassVar[str] = "PrivBayes: a network of noised conditional tables"
    paper: ClassVar[str] = "Zhang, Cormode, Procopiuc, Srivastava, Xiao: PrivBayes (TODS 2017)"
    needs: ClassVar[str] = "tables; seconds to a minute of one core"

    k: int = setting(3, least=1, most=4)
    theta: float = setting(4.0, above=0)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        steps = column_count(schema) - 1
        if not steps:
            return columns_queries(noise_multiplier, 1.0)
        chosen = shared_out(noise_multiplier, STRUCTURE, steps)
        tables = shared_out(noise_multiplier, 1 - FIRST - STRUCTURE, steps)
        return (
            *columns_queries(noise_multiplier, FIRST),
            Choice(label="choices", map="marginal_errors", clip=1.0, noise_multiplier=chosen, count=steps),
            ClippedSum(label="tables", map="cells", clip=1.0, noise_multiplier=tables, by_class=False, count=steps),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        steps = column_count(schema) - 1
        columns = ask_columns(schema, ask, self.bins, FIRST if steps else 1.0)
        first = columns.label if columns.classes else self.seed_at("first") % len(columns.axes)
        network = Network(self, columns, first, self._begun(columns, first, schema))
        widest = max(network.most, max(columns.sizes) * columns.sizes[first])
        # All that a resumed run needs of earlier steps: X, its parents (-1: none), and the table.
        state = {
            "chosen": torch.full((steps, self.k + 1), -1, dtype=torch.int64),
            "tables": torch.zeros(steps, widest, dtype=torch.float64),
        }
        for step in logbook.steps(steps, state, "tables" if steps else ""):
            network.catch_up(state, step)
            candidates = network.candidates()
            errors = network.errors(candidates)
            chosen = candidates[int(ask("choices", step, errors).values[0])]
            table = ask("tables", step, columns.cells([chosen])).tensor().double()
            state["chosen"][step, : len(chosen)] = torch.tensor(chosen)
            state["tables"][step, : len(table)] = table
        network.catch_up(state, steps)
        rng = np.random.default_rng(self.seed_at("values"))
        return columns.encoded(network.rows, tuple(network.factors), schema, rng)

    def _begun(self, columns: Columns, first: int, schema: Schema) -> Cells:
        """The first column of all rows: the label, or without one any."""
        if self.per_class:
            return np.repeat(np.arange(columns.classes), self.per_class)
        rng = np.random.default_rng(self.seed_at("labels"))
        shares = columns.shares(first).reshape(1, -1)
        return cells_given(shares, np.zeros(self.rows or schema.records, dtype=np.int64), rng)


class Network:
    """The columns that rows have so far; X stands before its parents in what is chosen."""

    def __init__(self, method: PrivBayes, columns: Columns, first: int, begun: Cells) -> None:
        self._method, self._columns, self._there, self._first = method, columns, [first], first
        self.rows = np.zeros((len(begun), len(columns.sizes)), dtype=np.int64)
        self.rows[:, first] = begun
        self.factors = [Factor((first,), (), lines(columns.shares(first).reshape(1, -1)))]
        noise = shared_out(columns.noise_std, 1 - FIRST - STRUCTURE, max(len(columns.sizes) - 1, 1))
        self.most = max(int(columns.total / (method.theta * max(noise, LEAST_NOISE))), 1)

    def _cells(self, places: Clique) -> int:
        return math.prod(self._columns.sizes[place] for place in places)

    def candidates(self) -> list[Clique]:
        """Every new column with parents whose table is useful; with the first column alone in any case, so that one is left."""
        new = [place for place in range(len(self._columns.sizes)) if place not in self._there]
        found: list[Clique] = []
        cells = 0
        counts = range(1, min(self._method.k, len(self._there)) + 1)
        for parents in chain.from_iterable(combinations(sorted(self._there), count) for count in counts):
            for place in new:
                part = (place, *parents)
                if self._cells(part) <= self.most or parents == (self._first,):
                    cells += self._cells(part)
                    if cells > MOST_CANDIDATES and found:
                        return found
                    found.append(part)
        return found

    def errors(self, candidates: list[Clique]) -> MarginalErrors:
        total = self._columns.total
        estimates = [
            total * np.outer(self._columns.shares(place), self._counts(parents) / len(self.rows)).ravel()
            for place, *parents in candidates
        ]
        return MarginalErrors(
            cells=self._columns.cells(candidates),
            estimates=torch.from_numpy(np.concatenate(estimates)),
            weights=torch.ones(len(candidates), dtype=torch.float64),
            penalties=torch.zeros(len(candidates), dtype=torch.float64),
        )

    def _groups(self, parents: list[int]) -> Cells:
        groups = np.zeros(len(self.rows), dtype=np.int64)
        for place in parents:
            groups = groups * self._columns.sizes[place] + self.rows[:, place]
        return groups

    def _counts(self, parents: list[int]) -> NDArray[np.int64]:
        return np.bincount(self._groups(parents), minlength=self._cells(tuple(parents)))

    def catch_up(self, state: dict[str, Tensor], steps: int) -> None:
        """Extend rows by the columns that were measured and are not there yet."""
        for step in range(len(self._there) - 1, steps):
            place, *parents = [each for each in state["chosen"][step].tolist() if each >= 0]
            size = self._columns.sizes[place]
            counts = state["tables"][step, : size * self._cells(tuple(parents))].numpy().reshape(size, -1)
            # What noise has pushed below 0 is nothing; where nothing is left of a line, the column goes by itself.
            table = np.maximum(counts, 0).T
            table = np.where(table.sum(1, keepdims=True) > 0, table, self._columns.shares(place))
            self.factors.append(Factor((place,), tuple(parents), lines(table)))
            rng = np.random.default_rng(self._method.seed_at("column", step))
            self.rows[:, place] = cells_given(table, self._groups(parents), rng)
            self._there.append(place)
