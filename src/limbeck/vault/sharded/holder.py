"""A rank other than 0: it holds a shard, and does what rank 0 tells. It has no ledger, no noise and no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from limbeck.data.records import Records
from limbeck.errors import DataUnreadable, LimbeckError, RankLost, WallBreach
from limbeck.privacy.schema import Schema
from limbeck.vault.clipped_sums import ClippedSums
from limbeck.vault.noise import SecretStream, Total
from limbeck.vault.part_records import load_whole
from limbeck.vault.process.failures import code_of
from limbeck.vault.process.requests import Failed, Said, message_of, read
from limbeck.vault.process.wire import Malformed, Message
from limbeck.vault.sharded.group import Group
from limbeck.vault.sharded.partial import added_up
from limbeck.vault.sharded.requests import (
    REQUESTS,
    AddUp,
    DropShard,
    ReadRecords,
    Taken,
    TakeShard,
    Tried,
    TryBlock,
    WasRead,
)
from limbeck.vault.sharded.shard import Shard, digest_of, shard_of
from limbeck.vault.source import PrivateSource, checked_records

OpenSource = Callable[[Mapping[str, Any]], PrivateSource]


class ShardHolder:
    """Answers what rank 0 tells about records.

    open_source  the records that rank 0 speaks of, as they are on this machine
    note         told of every failure here; rank 0 learns a code only
    """

    def __init__(self, group: Group, open_source: OpenSource, note: Callable[[BaseException], None]) -> None:
        self._group, self._open_source, self._note = group, open_source, note
        self._schema: Schema | None = None
        self._sums: ClippedSums | None = None
        self._shuffled = False
        self._whole: Records | None = None
        self._shard: Shard | None = None

    def answer(self, message: Message) -> None:
        """Guarantee: rank 0 gets the reply that it waits for, whatever happens here; a record never leaves this process but as
        a part of a sum."""
        try:
            said = read(message, REQUESTS)
        except Malformed:
            raise RankLost("Rank 0 told something that is no request of this version of Limbeck.") from None
        if isinstance(said, AddUp):
            self._add_up(said)
        elif isinstance(said, DropShard):
            self._whole = self._shard = None
        else:
            self._group.reply(message_of(self._replied(said)))

    def _replied(self, said: Said) -> Said:
        try:
            match said:
                case ReadRecords():
                    return self._read(said)
                case TakeShard():
                    return self._take(said)
                case TryBlock():
                    assert self._sums is not None
                    return Tried(*self._sums.tried(said.mapping, said.preferred))
            raise WallBreach("There is no such request.")
        except Exception as error:
            self._note(error)
            return Failed(code_of(error))

    def _read(self, said: ReadRecords) -> WasRead:
        torch.set_num_threads(said.threads)
        source = self._open_source(said.data)
        if source.schema != said.schema:
            raise DataUnreadable(f"The schema of '{said.schema.name}' is not the same here as on rank 0.")
        self._group.compute_on(torch.device(said.device))
        self._schema, self._shuffled = said.schema, said.shuffled
        self._sums = ClippedSums(said.schema, torch.device(said.device), in_file_order=not said.shuffled)
        self._whole = load_whole(source)
        return WasRead(len(self._whole), digest_of(self._whole, said.key.numpy().tobytes()))

    def _take(self, said: TakeShard) -> Taken:
        whole, self._whole = self._whole, None
        assert whole is not None and self._schema is not None
        if len(said.chosen):
            whole = whole.only(np.unpackbits(said.chosen.numpy(), count=len(whole)).astype(bool))
        whole = checked_records(whole, self._schema)
        self._shard = shard_of(whole, self._group.rank, self._group.size, self._shuffled)
        return Taken(len(self._shard))

    def _add_up(self, said: AddUp) -> None:
        assert self._sums is not None
        shape, key = self._sums.shape_of(said.query, said.mapping), said.coins.numpy().tobytes()
        try:
            added_up(self._group, shape, lambda: self._partial(said, key))
        except RankLost:
            raise
        except Exception as error:
            self._note(error)

    def _partial(self, said: AddUp, key: bytes) -> Total:
        if self._shard is None or self._sums is None:
            raise LimbeckError("There is no shard here to add up.")
        records, coins = self._shard.records, self._shard.coins(key)
        return self._sums.summed(said.query, said.mapping, records, SecretStream(key), coins, said.block)
