"""Junction trees: cliques of columns that hold every measured tuple, joined so that what neighbours share is all they share.

Columns are known by their places, and stand in rising order in a clique.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

Clique = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """sizes: cells of each column. cliques: the first one is the root. parents: of each clique, -1 for the root; a parent stands
    before its children.

    >>> tree = JunctionTree.of((2, 3, 4, 5), [(0, 1), (1, 2)])
    >>> tree.cliques, tree.parents, tree.cells
    (((1, 2), (0, 1), (3,)), (-1, 0, 0), 23)
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Of all cliques together: what the model takes."""
        return sum(self.cells_of(clique) for clique in self.cliques)

    def cells_of(self, clique: Iterable[int]) -> int:
        return math.prod(self.sizes[place] for place in clique)

    def separator(self, child: int) -> Clique:
        return tuple(sorted(set(self.cliques[child]) & set(self.cliques[self.parents[child]])))

    def holding(self, places: Iterable[int]) -> int | None:
        """The smallest clique that holds all these columns."""
        wanted = set(places)
        found = [index for index, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(found, key=lambda index: self.cells_of(self.cliques[index]), default=None)

    @staticmethod
    def of(sizes: Sequence[int], tuples: Iterable[Clique]) -> JunctionTree:
        """The tree for these tuples; every column is in it."""
        every = sorted({tuple(sorted(part)) for part in tuples} | {(place,) for place in range(len(sizes))})
        return _tree(tuple(sizes), tuple(every))


@functools.lru_cache(maxsize=4096)
def _tree(sizes: tuple[int, ...], tuples: tuple[Clique, ...]) -> JunctionTree:
    cliques = _maximal(_eliminated(sizes, tuples))
    cliques.sort(key=lambda clique: (-math.prod(sizes[place] for place in clique), clique))
    order, parents, left = [cliques[0]], [-1], cliques[1:]
    while left:
        # Prim's algorithm: the largest overlap first makes a junction tree of cliques of a chordal graph.
        _, place, parent = max(
            (len(set(clique) & set(held)), -place, -parent)
            for place, clique in enumerate(left)
            for parent, held in enumerate(order)
        )
        order.append(left.pop(-place))
        parents.append(-parent)
    return JunctionTree(sizes, tuple(order), tuple(parents))


def _eliminated(sizes: tuple[int, ...], tuples: tuple[Clique, ...]) -> list[Clique]:
    """The cliques that come of taking columns out one by one, always the one whose clique has the fewest cells."""
    beside: dict[int, set[int]] = {place: set() for place in range(len(sizes))}
    for part in tuples:
        for first, second in combinations(part, 2):
            beside[first].add(second)
            beside[second].add(first)
    cliques = []
    while beside:
        place = min(beside, key=lambda each: (math.prod(sizes[other] for other in beside[each]) * sizes[each], each))
        around = beside.pop(place)
        cliques.append(tuple(sorted({place} | around)))
        for other in around:
            beside[other] |= around - {other}
            beside[other].discard(place)
    return cliques


def _maximal(cliques: list[Clique]) -> list[Clique]:
    kept: list[Clique] = []
    for clique in sorted(set(cliques), key=len, reverse=True):
        if not any(set(clique) <= set(other) for other in kept):
            kept.append(clique)
    return kept
