"""How a data set was taken apart: a split is declared once, and the ledger knows its parts by their accounts.

A part's account is named DATA/SPLIT/1 and so on. What earlier versions booked as DATA/stage-1 is a part, too; nothing is
known about how those parts overlap, so they are never taken for disjoint.

The key of a split by hash stands in its row, and not in a file beside the ledger: the row is chained and written in the
same step as the split, so no part can ever be made with a second key. Parts under two keys overlap, and the ledger would
still count them as disjoint. The ledger file is as secret as a key file: mode 600, in the hands of the owner alone.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from limbeck.errors import BadInput
from limbeck.privacy.part import part_account
from limbeck.privacy.unit import UNIT_RECORD
from limbeck.vault.ledger.database import Database

Kind = Literal["classes", "hash", "stages"]
KEY_BYTES = 32
MOST_PARTS = 10_000
# The name of the split that legacy parts belong to. With its space no new split can have it.
VALUE = "value"
EARLIER_STAGES = "earlier stages"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_STAGE = re.compile(r"(?P<parent>.+)/stage-(?P<part>[1-9][0-9]{0,8})")
_PART = re.compile(r"(?P<parent>.+)/(?P<split>[^/]+)/(?P<part>[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Split:
    """parts: the class indices of each part; nothing for a split by hash; its number for a stage of an earlier version.

    disjoint: no two parts hold records of one unit of privacy, so the parts cost their parent the largest of them and
    not their sum. by_value: of a split by hash, whether equal numbers go to one part however a file holds them. Those that were
    declared before 0.6.0 go by the bytes in memory, and keep to it.
    """

    dataset: str
    name: str
    kind: Kind
    parts: tuple[tuple[int, ...], ...]
    disjoint: bool
    secret: bytes = field(default=b"", repr=False)
    by_value: bool = False

    @property
    def accounts(self) -> tuple[str, ...]:
        if self.kind == "stages":
            return tuple(f"{self.dataset}/stage-{number}" for (number,) in self.parts)
        return tuple(part_account(self.dataset, self.name, number) for number in range(1, len(self.parts) + 1))

    @property
    def listed(self) -> str:
        """The parts as the ledger keeps them."""
        if self.kind == "hash":
            return json.dumps({"parts": len(self.parts), "by": VALUE} if self.by_value else len(self.parts))
        return json.dumps(self.parts if self.kind == "classes" else [number for (number,) in self.parts])

    def same_parts(self, other: Split) -> bool:
        """Whether another declaration says the same; the key of a split by hash is drawn once and stays."""
        return (self.kind, self.parts, self.disjoint) == (other.kind, other.parts, other.disjoint)


def split_by_class(dataset: str, name: str, classes: Sequence[Sequence[int]], unit: str = UNIT_RECORD) -> Split:
    """Guarantee: `disjoint` only where the unit is a record, which has one class; a person may have records of several."""
    parts = tuple(tuple(part) for part in classes)
    listed = [index for part in parts for index in part]
    if not all(type(index) is int and index >= 0 for index in listed) or not all(parts) or len(parts) < 2:
        raise BadInput(f"A split by class needs at least two lists of class indices from 0 on, got {list(classes)}.")
    if len(set(listed)) != len(listed):
        raise BadInput(f"A class is in two parts of split {name!r}; every class may stand once, got {list(classes)}.")
    return Split(dataset, checked_name(name), "classes", parts, disjoint=unit == UNIT_RECORD)


def split_by_hash(dataset: str, name: str, parts: int) -> Split:
    """Guarantee: the key is fresh, from the operating system. A unit's part follows from the key and that unit alone."""
    if type(parts) is not int or not 2 <= parts <= MOST_PARTS:
        raise BadInput(f"A split by hash has 2 to {MOST_PARTS} parts, got {parts!r}.")
    return Split(
        dataset, checked_name(name), "hash", ((),) * parts, True, secrets.token_bytes(KEY_BYTES), by_value=True
    )


def wanted_split(
    dataset: str, name: str, classes: Sequence[Sequence[int]] | None, parts: int | None, unit: str
) -> Split:
    """A split by class or by hash, whichever of the two is given."""
    if classes is not None and parts is None:
        return split_by_class(dataset, name, classes, unit)
    if parts is not None and classes is None:
        return split_by_hash(dataset, name, parts)
    raise BadInput("A split is by classes or into a number of parts by hash; give one of the two.")


def earlier_stages(datasets: Sequence[str]) -> list[Split]:
    """The parts among the accounts of format 1, by the only name that a version of that format gave to parts.

    Guarantee: never disjoint. Nobody recorded which records they hold, so they add up.
    """
    found: dict[str, set[int]] = {}
    for dataset in datasets:
        if stage := _STAGE.fullmatch(dataset):
            found.setdefault(stage["parent"], set()).add(int(stage["part"]))
    return [
        Split(parent, EARLIER_STAGES, "stages", tuple((number,) for number in sorted(numbers)), disjoint=False)
        for parent, numbers in sorted(found.items())
    ]


def checked_name(name: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(
            f"A split's name has up to 64 letters, digits, dots, dashes and underscores, and no slash; got {name!r}."
        )
    return name


_COLUMNS = "dataset, name, kind, parts, disjoint, secret"


def read_split(db: Database, dataset: str, name: str) -> Split | None:
    found = db.execute(f"SELECT {_COLUMNS} FROM splits WHERE dataset = ? AND name = ?", (dataset, name)).fetchone()
    return None if found is None else split_from_row(found)


def read_splits(db: Database, low: str, high: str, root: str) -> list[Split]:
    """The splits of a data set and of the accounts between two names."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM splits WHERE dataset = ? OR (dataset >= ? AND dataset < ?) ORDER BY number",
        (root, low, high),
    )
    return [split_from_row(row) for row in rows]


def split_from_row(row: Sequence[str]) -> Split:
    """Raises ValueError, TypeError or KeyError for a row that no version wrote."""
    dataset, name, kind, listed, disjoint, secret = row
    content = json.loads(listed)
    by_value = kind == "hash" and isinstance(content, dict)
    if by_value:
        if content["by"] != VALUE:
            raise ValueError("by")
        content = content["parts"]
    parts: tuple[tuple[int, ...], ...]
    match kind:
        case "classes":
            parts = tuple(tuple(map(int, part)) for part in content)
        case "hash":
            parts = ((),) * int(content)
            if len(bytes.fromhex(secret)) != KEY_BYTES:
                raise ValueError("key")
        case "stages":
            parts = tuple((int(number),) for number in content)
        case _:
            raise ValueError(kind)
    return Split(dataset, name, kind, parts, {"yes": True, "no": False}[disjoint], bytes.fromhex(secret), by_value)


def read_place(db: Database, dataset: str) -> Split | None:
    """The split that an account is a part of; None for a whole data set, whatever its name looks like."""
    names = []
    if part := _PART.fullmatch(dataset):
        names.append((part["parent"], part["split"]))
    if stage := _STAGE.fullmatch(dataset):
        names.append((stage["parent"], EARLIER_STAGES))
    for parent, name in names:
        split = read_split(db, parent, name)
        if split is not None and dataset in split.accounts:
            return split
    return None
