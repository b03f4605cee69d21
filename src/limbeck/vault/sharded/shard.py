"""Which records a rank holds, and which coins are theirs.

All ranks read the same file and keep a part each. A person is on one rank, with all records, so that they are clipped together.
Coins do not depend on the number of ranks: record i of the whole has number i of one secret stream, wherever it is held.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.vault.keyed_hash import record_hashes
from limbeck.vault.noise import SecretStream
from limbeck.vault.sampling import canonical_order


@dataclass(frozen=True)
class Shard:
    """Records of one rank, and where the coins of each lie.

    first: of records that lie together in the file, whose coins follow each other; places: of others, one number for each
    total: of all records, on all ranks
    """

    records: Records
    total: int
    first: int = 0
    places: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def coins(self, key: bytes) -> ShardCoins:
        return ShardCoins(key, self)


@dataclass(frozen=True)
class ShardCoins:
    """The numbers of one secret stream that fall to the records of a shard, in their order.

    Guarantee: no two records of all shards share a number, and none of them depends on how many shards there are.
    """

    key: bytes
    shard: Shard

    def integers(self, count: int) -> NDArray[np.uint64]:
        shard = self.shard
        assert count == len(shard)
        if shard.places is None:
            return SecretStream(self.key, skip=shard.first).integers(count)
        return SecretStream(self.key).integers(shard.total)[shard.places]


def shard_of(records: Records, rank: int, size: int, shuffled: bool) -> Shard:
    """The shard of one rank: records that lie together in the file, or whole persons.

    shuffled: predictable coins fall on records in an order of their own, so that a shuffled file has the same sample

    Guarantee: every record is in exactly one shard, and all records of a person are in the same one. The rest is let go.
    """
    if records.units is not None:
        return Shard(_copied(records, _rank_of_persons(records.units, size) == rank), len(records))
    first, last = (len(records) * each // size for each in (rank, rank + 1))
    own = _copied(records, slice(first, last))
    if not shuffled:
        return Shard(own, len(records), first=first)
    places = np.empty(len(records), dtype=np.int64)
    places[canonical_order(record_hashes(records, key=b""))] = np.arange(len(records))
    return Shard(own, len(records), places=places[first:last].copy())


def _rank_of_persons(units: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """For each record the rank that holds its person; persons are dealt out so that ranks have about as many records."""
    _, person, counts = np.unique(units, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    ranks: NDArray[np.int64] = (before * size // max(len(units), 1)).astype(np.int64)[person]
    return ranks


def _copied(records: Records, chosen: NDArray[np.bool_] | slice) -> Records:
    """A copy, because a view would keep all records in memory."""
    units = None if records.units is None else records.units[chosen].copy()
    return Records(records.x[chosen].copy(), records.y[chosen].copy(), units)


def digest_of(records: Records, key: bytes) -> str:
    """Of all that was read, under a key drawn for this comparison: it tells nothing to whoever does not have the records."""
    digest = hashlib.blake2b(key=key, digest_size=32)
    for values in (records.x, records.y, records.units):
        if values is not None:
            digest.update(f"{values.dtype} {values.shape} ".encode())
            digest.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
