"""Sites in this process: real ledgers, keys and vaults, and frames of bytes in between."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from limbeck.data import Records
from limbeck.federated.site import desk_of
from limbeck.federated.transport import Frames, InProcess
from limbeck.federated.vault import FederatedVault
from limbeck.privacy.federation import Terms
from limbeck.privacy.schema import Schema
from limbeck.release.signature import signing_key
from limbeck.vault.ledger import Ledger
from limbeck.vault.noise import Randomness


def public_key(ledger: Path) -> str:
    return signing_key(ledger.with_name("signing-key")).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def ledgers_in(folder: Path, count: int) -> dict[str, Ledger]:
    books = {}
    for number in range(count):
        (folder / f"site-{number}").mkdir(exist_ok=True)
        books[f"s{number}"] = Ledger.open(folder / f"site-{number}" / "ledger.sqlite")
    return books


def terms_of(books: Mapping[str, Ledger], **changes: object) -> Terms:
    keys = tuple(public_key(book.path) for book in books.values())
    return Terms(name="f", sites=tuple(books), keys=keys, **changes)  # type: ignore[arg-type]


def site_of(x: np.ndarray, sites: int) -> int:
    return hashlib.sha256(x.tobytes()).digest()[0] % sites


@dataclass
class Shared:
    """Records that are read once for all sites, which take theirs by their contents."""

    load_all: Callable[[], Records]
    sites: int
    held: Records | None = field(default=None)

    def of(self, site: int) -> Records:
        if self.held is None:
            self.held = self.load_all()
        mine = np.array([site_of(x, self.sites) == site for x in self.held.x], dtype=bool)
        return self.held.only(mine)


@dataclass
class SiteSource:
    shared: Shared
    site: int
    schema: Schema

    def load(self) -> Records:
        return self.shared.of(self.site)


def own_schema(schema: Schema, site: str) -> Schema:
    return dataclasses.replace(schema, name=f"{schema.name}-{site}", class_sizes=None)


def joined(
    terms: Terms,
    schema: Schema,
    books: Mapping[str, Ledger],
    load: Callable[[], Records],
    randomness: Randomness | None = None,
    log: list[str] | None = None,
    around: Callable[[InProcess], object] = lambda transport: transport,
) -> FederatedVault:
    """A federation over these ledgers, as after a restart of all of them."""
    shared, desks = Shared(load, len(books)), {}
    for number, (name, book) in enumerate(books.items()):
        source = SiteSource(shared, number, own_schema(schema, name))
        seed = None if randomness is None or randomness.insecure_seed is None else randomness.insecure_seed + number
        written = log.append if log is not None else (lambda text: None)
        desks[name] = desk_of(source, book, terms, name, Randomness(seed), "cpu", written).answer
    return FederatedVault(terms, schema, around(InProcess(desks)))  # type: ignore[arg-type]


class Lossy:
    """A transport of which sites can be taken away, or whose replies get lost."""

    def __init__(self, inner: InProcess) -> None:
        self.inner, self.gone, self.lost = inner, set[str](), set[str]()
        self.seen: list[Frames] = []

    def exchange(self, frames: Frames, answers: int = 1) -> Frames:
        replies = self.inner.exchange({site: asked for site, asked in frames.items() if site not in self.gone})
        self.seen.append(replies)
        return {site: reply for site, reply in replies.items() if site not in self.lost}
