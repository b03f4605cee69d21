"""Which part of which data set some records are, as a public value. A source without one holds a whole data set."""

from __future__ import annotations

from dataclasses import dataclass

from limbeck.privacy.unit import UNIT_RECORD


@dataclass(frozen=True, kw_only=True)
class PartOf:
    """One part of a split that the ledger knows.

    parent   the data set that was split, as the ledger names it
    split    the name of the split
    part     which of its parts, counted from 1
    classes  of a split by class: indices of the parent's classes. None of a split by keyed hash
    unit     whom the schema protects; a split by class keeps records apart, but not persons
    reading  a digest of what the schema says about which part a record is in; two readings may put one record into two parts

    >>> PartOf(parent="mnist", split="halves", part=2).account
    'mnist/halves/2'
    """

    parent: str
    split: str
    part: int
    classes: tuple[int, ...] = ()
    unit: str = UNIT_RECORD
    reading: str = ""

    @property
    def account(self) -> str:
        return part_account(self.parent, self.split, self.part)


def part_account(parent: str, split: str, part: int) -> str:
    """The name of a part's account. A split's name has no slash, so different parts have different names."""
    return f"{parent}/{split}/{part}"
