"""A graphical model over cells of columns: log potentials on the cliques of a junction tree, and every marginal of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from limbeck.methods.graphical.junction_tree import Clique, JunctionTree

NEVER = -1e4  # a log potential of what cannot be


def spread(values: Tensor, places: Sequence[int], clique: Sequence[int]) -> Tensor:
    """A table over some columns of a clique with an axis for each of its columns."""
    sizes = dict(zip(places, values.shape, strict=True))
    return values.reshape([sizes.get(place, 1) for place in clique])


def summed(values: Tensor, clique: Sequence[int], places: Iterable[int]) -> Tensor:
    """Added up over all columns of a clique but these."""
    kept = set(places)
    axes = [axis for axis, place in enumerate(clique) if place not in kept]
    return values.sum(axes) if axes else values


def _log_summed(values: Tensor, clique: Sequence[int], places: Iterable[int]) -> Tensor:
    kept = set(places)
    axes = [axis for axis, place in enumerate(clique) if place not in kept]
    return values.logsumexp(axes) if axes else values


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """potentials: a table for each clique of the tree, in double precision."""

    tree: JunctionTree
    potentials: tuple[Tensor, ...]
    _known: dict[tuple[int, Clique], Tensor] = field(default_factory=dict)

    @staticmethod
    def even(tree: JunctionTree) -> GraphicalModel:
        return GraphicalModel(
            tree, tuple(torch.zeros([tree.sizes[p] for p in c], dtype=torch.float64) for c in tree.cliques)
        )

    def on(self, tree: JunctionTree) -> GraphicalModel:
        """The same distribution on a tree whose cliques hold all of these."""
        moved = list(GraphicalModel.even(tree).potentials)
        for clique, values in zip(self.tree.cliques, self.potentials, strict=True):
            index = tree.holding(clique)
            assert index is not None
            moved[index] = moved[index] + spread(values, clique, tree.cliques[index])
        return GraphicalModel(tree, tuple(moved))

    def moved(self, by: Mapping[Clique, Tensor]) -> GraphicalModel:
        """With tables over tuples of columns added to the log potentials."""
        potentials = list(self.potentials)
        for places, values in by.items():
            index = self.tree.holding(places)
            assert index is not None
            potentials[index] = potentials[index] + spread(values, places, self.tree.cliques[index])
        return GraphicalModel(self.tree, tuple(potentials))

    def given(self, place: int, chances: Tensor) -> GraphicalModel:
        """Under a condition on one column: so much of each of its cells is left."""
        return self.moved({(place,): chances.double().log().clamp_min(NEVER)})

    def shares(self) -> tuple[Tensor, ...]:
        """The marginal of each clique, by messages from the leaves to the root and back (Lauritzen and Spiegelhalter 1988)."""
        if not self._known:
            tree, beliefs = self.tree, list(self.potentials)
            sent: dict[int, Tensor] = {}
            for child in reversed(range(1, len(beliefs))):
                parent, between = tree.parents[child], tree.separator(child)
                sent[child] = _log_summed(beliefs[child], tree.cliques[child], between)
                beliefs[parent] = beliefs[parent] + spread(sent[child], between, tree.cliques[parent])
            for child in range(1, len(beliefs)):
                parent, between = tree.parents[child], tree.separator(child)
                back = _log_summed(beliefs[parent], tree.cliques[parent], between) - sent[child]
                beliefs[child] = beliefs[child] + spread(back, between, tree.cliques[child])
            for index, values in enumerate(beliefs):
                self._known[index, tree.cliques[index]] = (values - values.logsumexp(tuple(range(values.dim())))).exp()
        return tuple(self._known[index, clique] for index, clique in enumerate(self.tree.cliques))

    def marginal(self, places: Clique) -> Tensor:
        """Of any columns, in rising order, whether a clique holds them or not."""
        self.shares()
        index = self.tree.holding(places)
        if index is not None:
            return self._part(index, places)
        kept = self._around(set(places))
        return self._collected(kept[0], None, set(places), kept)[1]

    def _part(self, index: int, places: Iterable[int]) -> Tensor:
        """The marginal of some columns of a clique, made once."""
        clique = self.tree.cliques[index]
        wanted = tuple(sorted(set(places) & set(clique)))
        if (index, wanted) not in self._known:
            self._known[index, wanted] = summed(self._known[index, clique], clique, wanted)
        return self._known[index, wanted]

    def _neighbours(self, index: int) -> list[int]:
        children = [child for child, parent in enumerate(self.tree.parents) if parent == index]
        return children + ([self.tree.parents[index]] if index else [])

    def _between(self, first: int, second: int) -> Clique:
        return self.tree.separator(max(first, second))

    def _around(self, places: set[int]) -> list[int]:
        """The cliques that are needed to join these columns: leaves that add none of them are left out, one after the other."""
        kept = list(range(len(self.tree.cliques)))
        while True:
            for index in kept:
                beside = [other for other in self._neighbours(index) if other in kept]
                own = places & set(self.tree.cliques[index])
                if len(beside) == 1 and own <= set(self._between(index, beside[0])):
                    kept.remove(index)
                    break
            else:
                return kept

    def _collected(self, index: int, towards: int | None, places: set[int], kept: list[int]) -> tuple[Clique, Tensor]:
        """The columns that are wanted from here on, and what is shared with where it goes, as one table given the latter."""
        beside = [other for other in self._neighbours(index) if other in kept and other != towards]
        shared = () if towards is None else self._between(index, towards)
        joints = [self._between(index, other) for other in beside]
        held = (set(self.tree.cliques[index]) & places).union(shared, *joints)
        names, table = tuple(sorted(held)), self._part(index, held)
        if towards is not None:
            table = table / spread(self._part(index, shared), shared, names).clamp_min(1e-300)
        for other in beside:
            more, found = self._collected(other, index, places, kept)
            joined = tuple(sorted({*names, *more}))
            names, table = joined, spread(table, names, joined) * spread(found, more, joined)
            still = places.union(shared, *joints)
            table, names = summed(table, names, still), tuple(name for name in names if name in still)
        wanted = tuple(name for name in names if name in places or name in shared)
        return wanted, summed(table, names, wanted)
