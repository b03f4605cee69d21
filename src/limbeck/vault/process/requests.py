"""All that may be said to a vault elsewhere: a request for every call of the contract, signatures, masks, and their replies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Asked, Grant
from limbeck.vault.masking import MaskKey
from limbeck.vault.process.codec import pack, unpack
from limbeck.vault.process.wire import Malformed, Message

_IDENTITY = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Said:
    """A request or a reply; `kind` is its name on the wire."""

    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class Describe(Said):
    kind: ClassVar[str] = "describe"


@dataclass(frozen=True)
class Book(Said):
    kind: ClassVar[str] = "grant"
    plan: Plan
    identity: str | None


@dataclass(frozen=True)
class TakeUp(Said):
    kind: ClassVar[str] = "take_up"
    identity: str
    plan: Plan
    booked: bool


@dataclass(frozen=True)
class AskState(Said):
    kind: ClassVar[str] = "state"
    identity: str


@dataclass(frozen=True)
class OpenRecords(Said):
    kind: ClassVar[str] = "open_records"
    grant: Grant


@dataclass(frozen=True)
class Ask(Said):
    kind: ClassVar[str] = "ask"
    grant: Grant
    label: str
    index: int
    mapping: Asked


@dataclass(frozen=True)
class AskMasked(Ask):
    """The masked part of one site. `keys`: every site's, signed, in the order of the terms."""

    kind: ClassVar[str] = "ask_masked"
    keys: tuple[MaskKey, ...]


@dataclass(frozen=True)
class Stay(Said):
    """Take `count` steps of the plan's method here, from its step `step` on, along the answers from `index` on of this site.

    luggage: the state of the generator that came along, tensors by name.
    """

    kind: ClassVar[str] = "stay"
    grant: Grant
    index: int
    step: int
    count: int
    luggage: dict[str, Tensor]


@dataclass(frozen=True)
class OfferKey(Said):
    """This site's key for the masks of a grant."""

    kind: ClassVar[str] = "offer_key"
    grant: Grant


@dataclass(frozen=True)
class Keep(Said):
    kind: ClassVar[str] = "keep"
    grant: Grant


@dataclass(frozen=True)
class Forget(Said):
    kind: ClassVar[str] = "forget"
    grant: Grant
    label: str
    before: int


@dataclass(frozen=True)
class AskDrawn(Said):
    kind: ClassVar[str] = "drawn"
    grant: Grant


@dataclass(frozen=True)
class GiveBack(Said):
    kind: ClassVar[str] = "give_back"
    grant: Grant


@dataclass(frozen=True)
class Close(Said):
    kind: ClassVar[str] = "close"
    grant: Grant


@dataclass(frozen=True)
class Sign(Said):
    """`stated`: the certificate as it will be written, without its signature."""

    kind: ClassVar[str] = "sign"
    grant: Grant
    stated: dict[str, Any]


@dataclass(frozen=True)
class Endorse(Said):
    """`stated`: the certificate of a federation as it will be written, without the sites' parts and without its signature."""

    kind: ClassVar[str] = "endorse"
    grant: Grant
    stated: dict[str, Any]


@dataclass(frozen=True)
class Described(Said):
    """The schema, and where noise comes from, in the words of a certificate."""

    kind: ClassVar[str] = "described"
    schema: Schema
    generator: str


@dataclass(frozen=True)
class Granted(Said):
    kind: ClassVar[str] = "granted"
    identity: str


@dataclass(frozen=True)
class InState(Said):
    kind: ClassVar[str] = "in_state"
    state: str | None


@dataclass(frozen=True)
class Answered(Said):
    kind: ClassVar[str] = "answered"
    values: Tensor


@dataclass(frozen=True)
class Masked(Said):
    """Whole numbers modulo 2^64, (rows, numbers)."""

    kind: ClassVar[str] = "masked"
    values: Tensor


@dataclass(frozen=True)
class Stayed(Said):
    """The state of a generator after its steps here."""

    kind: ClassVar[str] = "stayed"
    luggage: dict[str, Tensor]


@dataclass(frozen=True)
class Offered(Said):
    kind: ClassVar[str] = "offered"
    key: MaskKey


@dataclass(frozen=True)
class Drawn(Said):
    kind: ClassVar[str] = "drawn_so_far"
    counts: dict[str, int]


@dataclass(frozen=True)
class GivenBack(Said):
    kind: ClassVar[str] = "given_back"
    given: bool


@dataclass(frozen=True)
class Done(Said):
    kind: ClassVar[str] = "done"


@dataclass(frozen=True)
class Signed(Said):
    kind: ClassVar[str] = "signed"
    signature: dict[str, str]


@dataclass(frozen=True)
class Endorsed(Said):
    """What a site says about its part, signed by its owner."""

    kind: ClassVar[str] = "endorsed"
    part: dict[str, Any]


@dataclass(frozen=True)
class Failed(Said):
    """All that is ever said about a failure: a code of limbeck.vault.process.failures."""

    kind: ClassVar[str] = "failed"
    code: str


REQUESTS: dict[str, type[Said]] = {
    kind.kind: kind
    for kind in (
        Describe, Book, TakeUp, AskState, OpenRecords, Ask, AskMasked, Stay, OfferKey, Keep, Forget, AskDrawn, GiveBack, Close,
        Sign, Endorse,
    )
}  # fmt: skip
REPLIES: dict[str, type[Said]] = {
    kind.kind: kind
    for kind in (
        Described, Granted, InState, Answered, Masked, Stayed, Offered, Drawn, GivenBack, Done, Signed, Endorsed, Failed,
    )
}  # fmt: skip


def message_of(said: Said) -> Message:
    tensors: list[Tensor] = []
    values = pack(said, tensors)
    return Message(said.kind, values, tuple(tensors))


def read(message: Message, listed: dict[str, type[Said]]) -> Said:
    """What a message says. Raises Malformed for what is not in the list."""
    kind = listed.get(message.kind)
    if kind is None:
        raise Malformed("a message of no known kind")
    said: Said = unpack(kind, message.values, message.tensors)
    for identity in (getattr(getattr(said, "grant", None), "id", None), getattr(said, "identity", None)):
        # The vault names folders after it, and removes them: nothing but what a run draws may stand there.
        if identity is not None and not _IDENTITY.fullmatch(identity):
            raise Malformed("a name of a grant that is none")
    return said
