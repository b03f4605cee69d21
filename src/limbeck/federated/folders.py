"""The folders of a federation.

The server's:                                     A site's:
    federation.json   terms, schema, address,         site.json     its name, where its records and ledger are
                      node keys; for every site       NAME.json     its card: what it tells the server; public
    ca.pem            whom to trust; for every site   node.key      what it connects with; mode 600
    server.pem, .key  TLS; the key of mode 600        federation.json, ca.pem   from the server
    secret            mode 600                        secret        mode 600
    signing-key       signs certificates; mode 600    flower/, site.log
    flower/, server.log

The key that a site signs with is its owner's, beside the ledger. No file here holds a record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from limbeck.errors import BadInput, DataNotFound, LimbeckError
from limbeck.federated.identities import node_key
from limbeck.federated.splits import Share
from limbeck.files import as_json, write_atomic
from limbeck.privacy.federation import Terms
from limbeck.privacy.schema import Schema
from limbeck.release.signature import KeyFile, signing_key
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.vault.ledger.address import home

FEDERATION, SITE = "federation.json", "site.json"
MOST_BYTES = 8_000_000


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a site tells the server before there is a federation. Public."""

    site: str
    key: str
    node_key: str

    @staticmethod
    def read(path: Path) -> Card:
        values = _read(path)
        if set(values) != {"site", "key", "node_key"} or not all(isinstance(value, str) for value in values.values()):
            raise BadInput(f"{path} is no card of a site; 'limbeck federate init --site NAME' writes one.")
        return Card(**values)


@dataclass(frozen=True, kw_only=True)
class Federation:
    """federation.json. address: HOST:PORT of the server. nodes: the sites' node keys, in the order of the terms."""

    terms: Terms
    schema: Schema
    address: str
    nodes: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.nodes) != len(self.terms.sites) or len(set(self.nodes)) != len(self.nodes):
            raise BadInput(
                f"Each of the {len(self.terms.sites)} sites connects with a node key of its own; of the {len(self.nodes)} given, "
                f"{len(set(self.nodes))} are different."
            )

    def write(self, folder: Path) -> None:
        values = {
            "terms": self.terms.to_dict(),
            "schema": self.schema.to_dict(),
            "address": self.address,
            "nodes": list(self.nodes),
        }
        write_atomic(folder / FEDERATION, as_json(values))

    @staticmethod
    def read(folder: Path) -> Federation:
        path = folder / FEDERATION
        values = _read(path)
        try:
            return Federation(
                terms=Terms.from_dict(values["terms"]),
                schema=Schema.from_dict(values["schema"]),
                address=checked_address(values["address"]),
                nodes=tuple(str(node) for node in values["nodes"]),
            )
        except (LimbeckError, KeyError, TypeError, ValueError) as error:
            said = error.message if isinstance(error, LimbeckError) else f"{type(error).__name__}"
            raise BadInput(f"{path} is not what 'limbeck federate init' wrote: {said}") from None


@dataclass(frozen=True, kw_only=True)
class Site:
    """site.json: what a site knows of itself. share: of a simulation, which records are its own."""

    site: str
    data: DataReference
    ledger: str
    insecure_seed: int | None = None
    share: Share | None = None

    @property
    def request(self) -> Request:
        options = RunOptions(ledger=self.ledger, insecure_seed=self.insecure_seed)
        return Request(data=self.data, options=options)

    def card(self, folder: Path) -> Card:
        """Makes what keys are missing."""
        key = signing_key(KeyFile.beside(home(Path(self.ledger))).path).public_key()
        public = key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        return Card(site=self.site, key=public, node_key=node_key(folder / "node.key"))

    def write(self, folder: Path) -> Card:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        share = None if self.share is None else self.share.to_dict()
        values = {
            "site": self.site,
            "data": {name: value for name, value in asdict(self.data).items() if value is not None},
            "ledger": self.ledger,
            "insecure_seed": self.insecure_seed,
            "share": share,
        }
        write_atomic(folder / SITE, as_json(values))
        card = self.card(folder)
        write_atomic(folder / f"{self.site}.json", as_json(asdict(card)))
        return card

    @staticmethod
    def read(folder: Path) -> Site:
        values = _read(folder / SITE)
        try:
            share = values.pop("share")
            data = DataReference(**values.pop("data"))
            return Site(**values, data=data, share=None if share is None else Share(**share))
        except (LimbeckError, KeyError, TypeError):
            raise BadInput(f"{folder / SITE} is not what 'limbeck federate init --site' wrote.") from None


def checked_address(text: Any) -> str:
    host, _, port = str(text).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or any(letter.isspace() for letter in host):
        raise BadInput(f"An address is HOST:PORT, got {text!r:.80}.")
    return str(text)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError:
        raise DataNotFound(f"There is no readable file {path}.", "limbeck federate init --help") from None
    try:
        values = json.loads(content) if len(content) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, Mapping):
        raise BadInput(f"{path} does not hold a JSON object.")
    return dict(values)
