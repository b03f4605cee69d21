"""A look at who private records are about, for their owner: how many persons, and which columns may say so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from limbeck.data.units import Codes

# Names of columns that often say who a row is about. A guess, which only ever makes a comment.
_PERSON = re.compile(
    r"patient|person|subject|participant|pseudonym|user|client|customer|member|employee|student|household|"
    r"(?:^|[^a-z])(?:ids?|pid|uid|uuid|guid|mrn|ssn)(?:$|[^a-z])|(?<=[a-z])(?-i:I[dD])$",
    re.IGNORECASE,
)
MOST_EACH = 1000


@dataclass(frozen=True, kw_only=True)
class Persons:
    """The persons that `unit` tells apart: how many, and how many records half of them have at most, and one has at most."""

    unit: str
    count: int
    usual: int
    most: int


def tally(unit: str, codes: Codes) -> Persons:
    """
    >>> tally("patient", np.array([5, 5, 5, 7, 9]))
    Persons(unit='patient', count=3, usual=1, most=3)
    """
    _, counts = np.unique(codes, return_counts=True)
    if not len(counts):
        return Persons(unit=unit, count=0, usual=0, most=0)
    return Persons(unit=unit, count=len(counts), usual=int(np.median(counts)), most=int(counts.max()))


def looks_like_persons(name: str) -> bool:
    """
    >>> [name for name in ("patient_id", "userId", "id", "age", "width", "idea") if looks_like_persons(name)]
    ['patient_id', 'userId', 'id']
    """
    return _PERSON.search(name) is not None


def maybe_persons(columns: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Columns that are named like a person and have values that repeat, but not as often as a property of many people does."""
    found = []
    for name, cells in columns.items():
        if looks_like_persons(name):
            present = [cell for cell in cells if cell]
            different = len(set(present))
            if 1 < different < len(present) <= MOST_EACH * different:
                found.append(name)
    return tuple(found)
