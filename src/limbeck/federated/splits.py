"""How a simulation shares one data set out among sites: by chance, by class, unevenly by class, or by person.

Real sites hold their own records from the start; this is for trying a federation out.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data import Records
from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema
from limbeck.vault.source import PrivateSource

IID, CLASS, DIRICHLET, WRITER = "iid", "class", "dirichlet", "writer"
KINDS = (IID, CLASS, DIRICHLET, WRITER)
CONCENTRATION = 0.5


@dataclass(frozen=True, kw_only=True)
class Share:
    """One site's share of a data set. number: from 0 on, below `sites`."""

    kind: str
    sites: int
    number: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"--split is one of {', '.join(KINDS)}, got '{self.kind}'.")
        if not 0 <= self.number < self.sites:
            raise BadInput(f"Share {self.number} of {self.sites} is none.")

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class SharedOut:
    """A share as a source. Guarantee: the shares of one split hold every record once."""

    whole: PrivateSource
    share: Share

    @property
    def schema(self) -> Schema:
        return share_schema(self.whole.schema, self.share)

    def prepare(self, agree: Any = None) -> None:
        prepare = getattr(self.whole, "prepare", None)
        if prepare is not None:
            prepare(agree)

    def load(self) -> Records:
        records = self.whole.load()
        return records.only(sites_of(records, len(self.schema.classes), self.share) == self.share.number)


def share_schema(whole: Schema, share: Share) -> Schema:
    """What is public of a share: about how many records it has, and not how many of which class."""
    if share.kind == WRITER and not whole.by_person:
        raise BadInput(f"--split writer needs a schema whose unit is a person; that of '{whole.name}' has records.")
    if share.kind in (CLASS, DIRICHLET) and whole.by_person:
        raise BadInput(
            f"With --split {share.kind} the records of one person would be at several sites, each with a budget of its own. "
            "Where the unit is a person use --split iid or writer."
        )
    records = max(1, whole.records // share.sites)
    return dataclasses.replace(
        whole,
        name=f"{whole.name}.{share.number + 1}",
        records=records,
        class_sizes=None,
        units=None if whole.units is None else max(1, min(whole.units // share.sites, records)),
        unit_records=None if whole.unit_records is None else min(whole.unit_records, records),
    )


def sites_of(records: Records, classes: int, share: Share) -> NDArray[np.int64]:
    """The site of each record.

    >>> y = np.array([0, 1, 2, 0, 1, 2])
    >>> records = Records(np.zeros((6, 1), dtype=np.float32), y)
    >>> sites_of(records, 3, Share(kind="class", sites=2, number=0)).tolist()
    [0, 1, 0, 0, 1, 0]
    """
    rng = np.random.default_rng([share.seed, share.sites])
    if records.units is not None:  # a person is at one site
        persons, member = np.unique(records.units, return_inverse=True)
        placed: NDArray[np.int64] = (rng.permutation(len(persons)) % share.sites)[member]
        return placed
    if share.kind == CLASS:
        return records.y % share.sites
    if share.kind == IID:
        return rng.permutation(len(records.y)) % share.sites
    sites = np.zeros(len(records.y), dtype=np.int64)
    for label in range(classes):
        (mine,) = np.nonzero(records.y == label)
        ends = np.cumsum(rng.dirichlet(np.full(share.sites, CONCENTRATION)))
        places = (rng.permutation(len(mine)) + 0.5) / max(len(mine), 1)
        sites[mine] = np.minimum(np.searchsorted(ends, places), share.sites - 1)
    return sites
