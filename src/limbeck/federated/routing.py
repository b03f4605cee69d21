"""Which site answers a question to teachers: one at a time, block after block, in turn.

The generator's next step follows from the answer of one site, so it is post-processing of what that site has paid for. A site
answers its share of the questions, and its plan counts that share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from limbeck.privacy.federation import Terms
from limbeck.privacy.queries import ClippedSum, Query


def place(terms: Terms, index: int) -> tuple[int, int]:
    """The site of a question, and its number there.

    >>> terms = Terms(name="f", sites=("a", "b"), keys=("0" * 64, "1" * 64), block=2)
    >>> [place(terms, index) for index in range(6)]
    [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3)]
    """
    block, inside = divmod(index, terms.block)
    turn, site = divmod(block, len(terms.sites))
    return site, turn * terms.block + inside


def before(terms: Terms, site: int, index: int) -> int:
    """How many of the questions below `index` are this site's.

    >>> terms = Terms(name="f", sites=("a", "b"), keys=("0" * 64, "1" * 64), block=2)
    >>> [(before(terms, 0, index), before(terms, 1, index)) for index in range(6)]
    [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (3, 2)]
    """
    turns, rest = divmod(index, terms.block * len(terms.sites))
    return turns * terms.block + min(max(rest - site * terms.block, 0), terms.block)


def as_asked(queries: Sequence[Query], terms: Terms) -> tuple[Query, ...]:
    """A method's queries as any one site is asked them: all sums, and its share of the questions to teachers."""
    return tuple(
        query if isinstance(query, ClippedSum) else replace(query, count=before(terms, 0, query.count))
        for query in queries
    )
