"""The vault at rank 0: it books, samples, draws the noise and journals, as the local one does; the others add up their shards.

The order of an answer is that of `LocalVault`: booked -> noise drawn, here alone -> the coins' key goes to all -> each rank
samples, maps, clips, rounds and adds up its own records in whole steps -> one sum of integers -> noised -> stored -> given.
Integers have no order, and a record's row and coin do not depend on where it lies: the answer has the same bits for any number of
ranks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.errors import BadInput, DataUnreadable, RankLost
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum
from limbeck.vault.api import Grant
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.maps import Map
from limbeck.vault.maps.base import form_of
from limbeck.vault.noise import Randomness, SecretStream, drawn_noise, with_noise
from limbeck.vault.part_records import chosen_records, load_whole
from limbeck.vault.sharded.group import Group
from limbeck.vault.sharded.partial import added_up
from limbeck.vault.sharded.requests import (
    AddUp,
    DropShard,
    ReadRecords,
    Taken,
    TakeShard,
    Tried,
    TryBlock,
    WasRead,
    read_replies,
    replies,
    tell,
)
from limbeck.vault.sharded.shard import Shard, digest_of, shard_of
from limbeck.vault.source import PrivateSource, checked_records


class ShardedVault(LocalVault):
    """The contract of `limbeck.vault.api`, with records on several ranks.

    group   the ranks, of which this process is rank 0
    data    where the records are, in words that every rank can make a source of
    """

    def __init__(
        self,
        source: PrivateSource,
        ledger: Ledger,
        group: Group,
        data: Mapping[str, Any],
        randomness: Randomness | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(source, ledger, randomness, device)
        group.compute_on(self._device)
        self._group, self._data = group, dict(data)
        self._shard: Shard | None = None
        self._agreed: dict[str, int] = {}

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        """As of the local vault. Guarantee: what cannot be added up over shards is refused before it is booked."""
        for query in plan.queries:
            if not isinstance(query, ClippedSum):
                raise BadInput(
                    f"Method '{plan.method}' asks in '{query.label}' for what is no sum (of teachers, or a choice), and "
                    "only sums are shared out over ranks. Nothing was booked. Start it in one process, without torchrun."
                )
            if not query.on_grid:
                raise BadInput(
                    f"Method '{plan.method}' adds up doubles in '{query.label}', whose sum depends on their order. Nothing was "
                    "booked. Start it in one process, without torchrun."
                )
        return super().grant(plan, identity)

    def close(self, grant: Grant) -> None:
        super().close(grant)
        if self._shard is not None:
            tell(self._group, DropShard())
            self._shard = None

    def _loaded(self, in_pieces: bool) -> Records:
        """This rank's own records; all ranks read theirs at the same time.

        Guarantee: all ranks have read the same whole, bit for bit, or nothing is answered; the shards together are that whole.
        """
        key = os.urandom(32)
        tell(
            self._group,
            ReadRecords(
                self._schema, self._data, self._device.type, torch.get_num_threads(),
                not self._randomness.releasable, _bytes(key),
            ),
        )  # fmt: skip
        try:
            whole = load_whole(self._source)
        finally:  # the others are heard in any case, so that nobody is left behind in the middle
            messages = self._group.replies()
        others = read_replies(messages, WasRead)
        found = WasRead(len(whole), digest_of(whole, key))
        differing = [rank for rank, other in enumerate(others, start=1) if other != found]
        if differing:
            raise DataUnreadable(
                f"Rank {differing[0]} has read other records than rank 0: the files of '{self._schema.name}' are not the same on "
                "all machines. Copy them anew, or share one folder, then start the run again."
            )
        return self._taken(whole)

    def _taken(self, whole: Records) -> Records:
        chosen = chosen_records(whole, self._source, self._ledger)
        bits = np.zeros(0, dtype=np.uint8) if chosen is None else np.packbits(chosen)
        own = checked_records(whole if chosen is None else whole.only(chosen), self._schema)
        shard = shard_of(own, 0, self._group.size, not self._randomness.releasable)
        tell(self._group, TakeShard(torch.from_numpy(bits)))
        if len(shard) + sum(other.records for other in replies(self._group, Taken)) != len(own):
            raise RankLost("The shards of the ranks together are not the whole set; nothing is answered.")
        self._shard = shard
        return shard.records

    def _noised_sum(self, query: ClippedSum, index: int, mapping: Map) -> NDArray[np.float64]:
        """Guarantee: that of `ClippedSums.noised`. The noise is drawn once, at this rank, before any rank touches a record, and
        its key never leaves it. Without the part of every rank there is no answer."""
        assert self._shard is not None
        shard, shape = self._shard, self._sums.shape_of(query, mapping)
        noise = drawn_noise(query, shape, self._randomness.stream(f"{query.label}: noise", index))
        block = self._agreed_block(query, mapping)
        key = self._randomness.key(query.label, index)
        tell(self._group, AddUp(query, mapping, block, _bytes(key)))
        total, failed = added_up(self._group, shape, lambda: self._partial(query, mapping, shard, key, block))
        if failed:
            raise RankLost(
                f"{failed} of {self._group.size} ranks could not add up their records; their own standard error says why. This "
                "answer was not given."
            )
        return with_noise(query, total, noise)

    def _partial(self, query: ClippedSum, mapping: Map, shard: Shard, key: bytes, block: int) -> Any:
        return self._sums.summed(query, mapping, shard.records, SecretStream(key), shard.coins(key), block)

    def _agreed_block(self, query: ClippedSum, mapping: Map) -> int:
        """How many records pass at a time, on every rank: tried once for each form of map.

        Guarantee: the kernels of all ranks are steady in this block (rule 12), and give public records the same bits. Else a
        record that comes or goes, and moves others to another rank, would change what those add.
        """
        preferred = self._sums.preferred_block(query, mapping)
        form = f"{form_of(mapping)} {preferred}"
        while form not in self._agreed:
            own = Tried(*self._sums.tried(mapping, preferred))
            tell(self._group, TryBlock(mapping, preferred))
            found = [own, *replies(self._group, Tried)]
            least = min(each.block for each in found)
            if least < preferred:
                preferred = least
                continue
            strange = [rank for rank, each in enumerate(found) if each != own]
            if strange:
                raise BadInput(
                    f"Ranks 0 and {strange[0]} round differently, so a record's part would depend on where it lies, and nothing "
                    "is answered. Use machines of one kind, with the same versions and the same number of threads."
                )
            self._agreed[form] = preferred
        return self._agreed[form]


def _bytes(content: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
