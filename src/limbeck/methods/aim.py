"""AIM: an adaptive and iterative mechanism for synthetic data (McKenna, Mullins, Sheldon and Miklau 2022, Algorithm 2).

In every round the pair of columns that the model so far gets most wrong is chosen, in private; it is measured; the model is
fitted to all that was measured. The score of a tuple r is

    w_r (|counts_r - estimate_r|_1 - sqrt(2 / pi) sigma n_r)

with w_r from the workload, all tuples of up to `degree` columns: how much of each of them r tells. What noise alone would add to
the error of n_r cells is taken off.

Where we differ, and why:
- A plan lists all queries before, with their noise. So there are R choices of one noise, and M answers of one noise about
  marginals. A round takes 1, 4, 16, ... of them about the same tuple and uses their mean, which is one answer with 1/2, 1/4,
  ... of the noise at the same price. That is the paper's annealing: when a round changes the model by less than its noise, the
  next takes four times as many answers. Choices are not annealed. The last round takes what is left.
- Numeric columns are cut where the first answer, which is also the paper's first round, shows records.
- The price is that of Gaussians and choices by their privacy loss, not by zero-concentrated privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import ClassVar

import numpy as np
import torch

from limbeck.errors import BadSettings
from limbeck.methods.base import Chosen, Logbook, SyntheticSet, given
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

MOST_TUPLE = 20_000  # cells of a candidate
LAST = 300  # steps of the last fit


@dataclass(frozen=True, kw_only=True)
class AIMChosen(Chosen):
    R: int
    M: int


@dataclass(frozen=True, kw_only=True)
class AIM(MarginalMethod):
    """rows, per_class: as in mosaic. R: rounds; none: 5 for every two columns. M: answers about marginals; none: 16 for each
    column, as in the paper. columns, choices: shares of the budget for the first two answers and for all choices. bins: of a
    numeric column, about. degree: columns of a tuple. size: cells of the model, at most, in millions. T: steps of mirror descent
    in a round. sigma: noise std / sensitivity of all answers together."""

    name: ClassVar[str] = "aim"
    title: ClassVar[str] = "AIM: adaptive marginals and a graphical model"
    paper: ClassVar[str] = "McKenna, Mullins, Sheldon, Miklau: AIM: an adaptive and iterative mechanism (VLDB 2022)"
    needs: ClassVar[str] = "tables; minutes of one core"

    R: int | None = setting(None, least=1, most=10_000)
    M: int | None = setting(None, least=1, most=100_000)
    columns: float = setting(0.1, above=0, below=0.5)
    choices: float = setting(0.1, above=0, below=0.5)
    degree: int = setting(2, least=1, most=4)
    size: float = setting(0.3, above=0, most=100)
    T: int = setting(40, least=1)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> AIMChosen:
        columns = column_count(schema)
        rounds = given(self.R, max(5 * columns // 2, 1))
        return AIMChosen(R=rounds, M=given(self.M, max(16 * columns, rounds)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.R is not None and self.M is not None and self.M < self.R:
            raise BadSettings(f"Every round takes an answer, so M={self.M} must be at least R={self.R}.")

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        at = self.chosen(schema)
        chosen = shared_out(noise_multiplier, self.choices, at.R)
        told = shared_out(noise_multiplier, 1 - self.columns - self.choices, at.M)
        return (
            *columns_queries(noise_multiplier, self.columns),
            Choice(label="choices", map="marginal_errors", clip=1.0, noise_multiplier=chosen, count=at.R),
            ClippedSum(label="marginals", map="cells", clip=1.0, noise_multiplier=told, by_class=False, count=at.M),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        columns, at = ask_columns(schema, ask, self.bins, self.columns), self.chosen(schema)
        course = Course(self, columns, at.M, self._noise(columns, at.M))
        every = [part for part in _tuples(len(columns.sizes), self.degree) if course.cells_of(part) <= MOST_TUPLE]
        # All that a resumed run needs of earlier rounds: their answers are dropped from the ledger.
        widest = max(course.cells_of(part) for part in every)
        state = {
            "chosen": torch.zeros(at.R, dtype=torch.int64),
            "taken": torch.zeros(at.R, dtype=torch.int64),
            "counts": torch.zeros(at.R, widest, dtype=torch.float64),
        }
        for step in logbook.steps(at.R, state, "marginals"):
            course.catch_up(state, every, step)
            takes = course.takes(at.R - step)
            candidates = course.small_enough(every, takes)
            errors = course.errors(candidates, takes)
            places = candidates[int(ask("choices", step, errors).values[0])]
            answers = [ask("marginals", course.used + index, columns.cells([places])) for index in range(takes)]
            found = columns.measured(places, answers)
            state["chosen"][step], state["taken"][step] = every.index(places), takes
            state["counts"][step, : len(found.counts)] = found.counts
            course.take(found, takes)
        course.catch_up(state, every, at.R)
        model = fitted(course.model, course.measured, columns.total, LAST)
        return columns.drawn(model, schema, self.rows, self.per_class, np.random.default_rng(self.seed_at("rows")))

    def _noise(self, columns: Columns, answers: int) -> float:
        """The std of one answer about a marginal: the plan shares the budget out, and the first answer tells the noise."""
        return shared_out(columns.noise_std, 1 - self.columns - self.choices, answers)


class Course:
    """What the rounds so far have come to."""

    def __init__(self, method: AIM, columns: Columns, answers: int, noise: float) -> None:
        self._method, self._columns, self._answers, self._noise = method, columns, answers, noise
        self._level, self._rounds, self.used = 0, 0, 0
        self.measured: list[Measurement] = list(columns.single)
        start = GraphicalModel.even(JunctionTree.of(columns.sizes, []))
        self.model = fitted(start, self.measured, columns.total, method.T)

    def cells_of(self, places: Clique) -> int:
        return self.model.tree.cells_of(places)

    def takes(self, rounds_left: int) -> int:
        """How many answers the next round takes: one at least is left for each later one, and the last takes what is left."""
        left = self._answers - self.used
        return left if rounds_left == 1 else max(min(4**self._level, left - rounds_left + 1), 1)

    def small_enough(self, every: Sequence[Clique], takes: int) -> list[Clique]:
        """Candidates with which the model stays as small as the answers so far are worth. Single columns always do."""
        most = self._method.size * 1e6 * (self.used + takes) / self._answers
        tree = self.model.tree
        return [
            part
            for part in every
            if tree.holding(part) is not None or JunctionTree.of(tree.sizes, [*tree.cliques, part]).cells <= most
        ]

    def errors(self, candidates: Sequence[Clique], takes: int) -> MarginalErrors:
        total = self._columns.total
        estimates = torch.cat([self.model.marginal(part).flatten() * total for part in candidates])
        weights = torch.tensor([self._weight(part) for part in candidates], dtype=torch.float64)
        by_noise = math.sqrt(2 / math.pi) * self._noise / math.sqrt(takes)
        penalties = torch.tensor([by_noise * self.cells_of(part) for part in candidates], dtype=torch.float64)
        return MarginalErrors(
            cells=self._columns.cells(candidates),
            estimates=estimates,
            weights=weights / weights.max(),
            penalties=penalties,
        )

    def _weight(self, part: Clique) -> float:
        """How many columns it shares with each tuple of the workload, added up."""
        others, degree = len(self._columns.sizes) - 1, self._method.degree
        return len(part) * float(math.comb(others, min(degree, others + 1) - 1))

    def take(self, found: Measurement, takes: int) -> None:
        """Fit the model to one more marginal. If that changed less than the noise does, the next is measured more closely."""
        before = self.model.marginal(found.places).flatten()
        self.measured.append(found)
        self.used, self._rounds = self.used + takes, self._rounds + 1
        self.model = fitted(self.model, self.measured, self._columns.total, self._method.T)
        change = float((self.model.marginal(found.places).flatten() - before).abs().sum()) * self._columns.total
        if change <= math.sqrt(2 / math.pi) * self._noise / math.sqrt(takes) * len(before):
            self._level += 1

    def catch_up(self, state: dict[str, torch.Tensor], every: Sequence[Clique], rounds: int) -> None:
        """After an interruption: the rounds before, once more, from what is kept of them."""
        for step in range(self._rounds, rounds):
            places, takes = every[int(state["chosen"][step])], int(state["taken"][step])
            counts = state["counts"][step, : self.cells_of(places)].clone()
            self.take(measurement(places, counts, self._noise / math.sqrt(takes)), takes)


def _tuples(columns: int, degree: int) -> list[Clique]:
    """All tuples of up to so many columns: the workload, and what each of them tells (its downward closure)."""
    return list(chain.from_iterable(combinations(range(columns), count) for count in range(1, degree + 1)))
