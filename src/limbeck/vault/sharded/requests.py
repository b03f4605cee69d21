"""All that rank 0 may tell the holders of shards, and what they reply. A failure is a code, as over a vault's socket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from limbeck.errors import LimbeckError, RankLost
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.vault.maps import Map
from limbeck.vault.process.failures import SENTENCES
from limbeck.vault.process.requests import Done, Failed, Said, message_of, read
from limbeck.vault.process.wire import Malformed, Message
from limbeck.vault.sharded.group import Group


@dataclass(frozen=True)
class ReadRecords(Said):
    """Read the whole, and say what was read.

    data      where the records are: what `open_source` of the rank makes a source of
    device    where to compute; threads: with how many
    shuffled  whether coins fall on records in an order of their own, as predictable ones do
    key       of the digest that is compared
    """

    kind: ClassVar[str] = "read_records"
    schema: Schema
    data: dict[str, Any]
    device: str
    threads: int
    shuffled: bool
    key: Tensor


@dataclass(frozen=True)
class TakeShard(Said):
    """Keep the rank's own shard, and nothing else. chosen: one bit for each record that is meant; empty for all."""

    kind: ClassVar[str] = "take_shard"
    chosen: Tensor


@dataclass(frozen=True)
class TryBlock(Said):
    """Which block of records this map is steady in."""

    kind: ClassVar[str] = "try_block"
    mapping: Map
    preferred: int


@dataclass(frozen=True)
class AddUp(Said):
    """The rank's part of one sum. coins: the key of the sample; the noise has another one, which stays with rank 0."""

    kind: ClassVar[str] = "add_up"
    query: ClippedSum
    mapping: Map
    block: int
    coins: Tensor


@dataclass(frozen=True)
class DropShard(Said):
    """The grant is over."""

    kind: ClassVar[str] = "drop_shard"


@dataclass(frozen=True)
class WasRead(Said):
    kind: ClassVar[str] = "was_read"
    records: int
    digest: str


@dataclass(frozen=True)
class Taken(Said):
    kind: ClassVar[str] = "taken"
    records: int


@dataclass(frozen=True)
class Tried(Said):
    kind: ClassVar[str] = "tried"
    block: int
    digest: str


REQUESTS: dict[str, type[Said]] = {kind.kind: kind for kind in (ReadRecords, TakeShard, TryBlock, AddUp, DropShard)}
REPLIES: dict[str, type[Said]] = {kind.kind: kind for kind in (WasRead, Taken, Tried, Done, Failed)}
_Reply = TypeVar("_Reply", bound=Said)


def tell(group: Group, said: Said) -> None:
    group.tell(message_of(said))


def replies(group: Group, wanted: type[_Reply]) -> list[_Reply]:
    """What every rank but 0 says. A failure of one of them is raised once all have been heard."""
    return read_replies(group.replies(), wanted)


def read_replies(messages: list[Message], wanted: type[_Reply]) -> list[_Reply]:
    found: list[_Reply] = []
    for rank, message in enumerate(messages, start=1):
        try:
            said = read(message, REPLIES)
        except Malformed:
            said = Failed("malformed")
        if isinstance(said, Failed):
            raise failure_of(rank, said.code)
        if not isinstance(said, wanted):
            raise failure_of(rank, "malformed")
        found.append(said)
    return found


def failure_of(rank: int, code: str) -> LimbeckError:
    """Guarantee: no text of the other process, which may name its files."""
    kind = SENTENCES[code][0] if code in SENTENCES else RankLost
    sentence = f"Rank {rank} could not do its part ({code if code in SENTENCES else 'failed'})"
    return (RankLost if kind is LimbeckError else kind)(f"{sentence}; its own standard error says why.")
