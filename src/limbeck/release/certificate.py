"""The certificate of a release: what was spent, stated so that anybody can compute it again.

CONSTITUTION of the certificate format. Certificates outlive this code, so these lines bind every change to it:

 1. A field, once released, is never removed, and none ever changes its meaning or its name in the file.
 2. A new field needs a default that means what its absence meant, and is written only where it differs from that.
 3. A reader that meets an unknown entry, an unknown value or a name that stands twice refuses it. Unknown never means harmless.
 4. Every field is public. Nothing that was measured on records is among them, and no score ever will be.
 5. The signature is over the JSON object as it stands in the file. Whoever checks it takes that object, never one that was
    written again from the values: 6e4 is 60000, but they are not the same text.
 6. `epsilon` is the price of the listed queries, whole, and of nothing else. `limbeck verify` computes it again.

`Certificate` is the value that everybody reads; limbeck.release.statement holds the JSON object that it was read from.
"""

from __future__ import annotations

import contextlib
import math
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from limbeck.errors import BadInput, NotAuthentic
from limbeck.privacy.accounting import Price, price
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Query, query_from_dict, sampler_delta_of
from limbeck.privacy.schema import Schema
from limbeck.release.distilled import Distilled
from limbeck.release.federated import Federated
from limbeck.release.joined import Joined
from limbeck.release.signature import Signature
from limbeck.vault.noise import Randomness

FORMAT = 1
NAME = "certificate.json"
# All that a certificate may state.
FIELDS = {
    "format", "dataset", "method", "settings", "private", "releasable", "epsilon", "delta", "adjacency", "unit", "queries",
    "drawn", "accounting", "generator", "public_assumptions", "versions", "created", "records", "files", "signature",
    "content", "sampler_delta", "federation", "joined", "distilled",
}  # fmt: skip
# What is released. A certificate without the entry is one of a synthetic set, as all were before models were released.
SET, MODEL = "set", "model"
# The file that only a release of this content has.
CORE_FILES = {SET: "set.npz", MODEL: "model.safetensors"}
# What a set may have beside it: the generator that made it, weights and description.
GENERATOR_FILES = ("generator.safetensors", "generator.json")
PACKAGES = ("limbeck", "torch", "numpy", "scipy", "dp-accounting", "cryptography")


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a release states about itself.

    dataset, method, settings    what was made, and how
    private, releasable          whether epsilon is finite; whether the noise is secret, too
    epsilon, delta               what was spent, for this `adjacency` and `unit`
    queries, drawn               every query that was paid for; how many answers of each were given, by its label
    accounting                   the price of the queries by each accountant
    randomness                   where noise and samples came from (in the file: `generator`)
    public_assumptions           the schema: all that counts as public
    versions, created            of the packages that made it; when, in UTC
    records, content             records of a set, 0 of a model; SET or MODEL
    files                        SHA-256 of every file of the release, by its path in it
    sampler_delta                what the noise's sampler adds to delta, at most (limbeck.privacy.grid). 0, which the file leaves
                                 out: noise and sums were doubles, as before 0.4.0, and their rounding is in no number here
    federation                   the sites that answered together; None, which the file leaves out: one vault did
    joined                       the certificates of the releases that it was joined from; None, left out: it was made at once
    distilled                    the certificate of the release whose answers it was made of; None, left out: it asked itself
    signature                    None as long as it is not signed

    >>> import limbeck
    >>> certificate = limbeck.verify("digits-set")
    >>> certificate.dataset, certificate.adjacency, certificate.queries[0].label
    ('digits', 'add_remove', 'groups')
    >>> certificate["delta"] == certificate.delta  # by the name in the file, as programs for version 0.2 do
    True
    """

    dataset: str
    method: str
    settings: Mapping[str, Any]
    private: bool
    releasable: bool
    epsilon: float
    delta: float
    adjacency: str
    unit: str
    queries: tuple[Query, ...]
    drawn: Mapping[str, int]
    accounting: Price
    randomness: str
    public_assumptions: Schema
    versions: Mapping[str, str]
    created: str
    records: int
    files: Mapping[str, str]
    content: str = SET
    sampler_delta: float = 0.0
    federation: Federated | None = None
    joined: Joined | None = None
    distilled: Distilled | None = None
    signature: Signature | None = None

    @property
    def is_model(self) -> bool:
        return self.content == MODEL

    @property
    def has_generator(self) -> bool:
        """Whether the generator that made the set is part of the release."""
        return GENERATOR_FILES[0] in self.files

    def _repr_html_(self) -> str:
        from limbeck.release.shown import certificate_html  # draws pictures of sets, too

        return certificate_html(self)

    def __getitem__(self, name: str) -> Any:
        """The entry of this name as the file states it; `verify` gave a dictionary up to version 0.2."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the file. The only writer."""
        return {
            "format": FORMAT,
            "dataset": self.dataset,
            "method": self.method,
            "settings": dict(self.settings),
            "private": self.private,
            "releasable": self.releasable,
            "epsilon": finite_or_word(self.epsilon),
            "delta": self.delta,
            "adjacency": self.adjacency,
            "unit": self.unit,
            "queries": [query.to_dict() for query in self.queries],
            "drawn": dict(self.drawn),
            "accounting": self.accounting.to_dict(),
            "generator": self.randomness,
            "public_assumptions": self.public_assumptions.to_dict(),
            "versions": dict(self.versions),
            "created": self.created,
            "records": self.records,
            "files": dict(self.files),
            **({} if self.content == SET else {"content": self.content}),
            **({"sampler_delta": self.sampler_delta} if self.sampler_delta else {}),
            **({} if self.federation is None else {"federation": self.federation.to_dict()}),
            **({} if self.joined is None else {"joined": self.joined.to_dict()}),
            **({} if self.distilled is None else {"distilled": self.distilled.to_dict()}),
            **({} if self.signature is None else {"signature": self.signature.to_dict()}),
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any], release: Path | None = None) -> Certificate:
        """The only reader. `release` is what messages call it.

        Guarantee: refuses what is not known, missing or of another type. Whether it is true is for `verify` to say.
        """
        unknown = sorted(set(values) - FIELDS)
        if unknown:
            raise NotAuthentic(f"The certificate has entries that this version does not know: {', '.join(unknown)}.")
        content = str(values.get("content", SET))
        if content not in CORE_FILES:
            raise NotAuthentic(f"The certificate is for a release of '{content}', which this version does not know.")
        with well_formed(release):
            return Certificate(
                dataset=_text(values, "dataset"),
                method=_text(values, "method"),
                settings=_mapping(values, "settings", _anything),
                private=_word(values, "private"),
                releasable=_word(values, "releasable"),
                epsilon=_epsilon(values, "epsilon"),
                delta=_number(values, "delta"),
                adjacency=_text(values, "adjacency"),
                unit=_text(values, "unit"),
                queries=tuple(query_from_dict(query) for query in values["queries"]),
                drawn=_mapping(values, "drawn", _whole),
                accounting=Price.from_dict(values["accounting"]),
                randomness=_text(values, "generator"),
                public_assumptions=Schema.from_dict(values["public_assumptions"]),
                versions=_mapping(values, "versions", _text),
                created=_text(values, "created"),
                records=_whole(values, "records"),
                files=_mapping(values, "files", _text),
                content=content,
                sampler_delta=_number(values, "sampler_delta") if "sampler_delta" in values else 0.0,
                federation=Federated.from_dict(values["federation"]) if "federation" in values else None,
                joined=Joined.from_list(values["joined"]) if "joined" in values else None,
                distilled=Distilled.from_dict(values["distilled"]) if "distilled" in values else None,
                signature=Signature.from_dict(values["signature"]) if "signature" in values else None,
            )


def certify(
    *,
    plan: Plan,
    schema: Schema,
    drawn: Mapping[str, int],
    randomness: Randomness,
    records: int,
    files: Mapping[str, str],
    content: str = SET,
    federation: Federated | None = None,
) -> Certificate:
    """State what was spent. All of it is public.

    Guarantee: epsilon is the price of the plan's queries, whole, whether all of them were asked or not.
    """
    cost = price(plan.queries, plan.price.delta)
    return Certificate(
        dataset=plan.dataset,
        method=plan.method,
        settings=plan.settings,
        private=plan.is_private,
        releasable=plan.is_private and randomness.releasable,
        epsilon=cost.epsilon,
        delta=cost.delta,
        adjacency=schema.adjacency,
        unit=schema.unit,
        queries=plan.queries,
        drawn=drawn,
        accounting=cost,
        randomness=randomness.mode,
        public_assumptions=schema,
        versions={name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        records=records,
        files=files,
        content=content,
        sampler_delta=sampler_delta_of(plan.queries),
        federation=federation,
    )


@contextlib.contextmanager
def well_formed(release: Path | None) -> Iterator[None]:
    """Turn whatever fails because a certificate has another form into a sentence about it."""
    whose = "" if release is None else f" of {release}"
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise NotAuthentic(f"The certificate{whose} does not have the right form ({error}).") from None
    except BadInput as error:
        raise NotAuthentic(f"The certificate{whose} cannot be checked: {error.message}") from None


def _text(values: Mapping[str, Any], name: str) -> str:
    if not isinstance(values[name], str):
        raise TypeError(name)
    return str(values[name])


def _word(values: Mapping[str, Any], name: str) -> bool:
    if not isinstance(values[name], bool):
        raise TypeError(name)
    return bool(values[name])


def _number(values: Mapping[str, Any], name: str) -> float:
    if isinstance(values[name], bool) or not isinstance(values[name], (int, float)):
        raise TypeError(name)
    return float(values[name])


def _whole(values: Mapping[str, Any], name: str) -> int:
    if not _number(values, name).is_integer():
        raise ValueError(name)
    return int(values[name])


def _epsilon(values: Mapping[str, Any], name: str) -> float:
    return math.inf if values[name] == "infinity" else _number(values, name)


_Read = TypeVar("_Read")


def _mapping(values: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], _Read]) -> dict[str, _Read]:
    if not isinstance(values[name], Mapping):
        raise TypeError(name)
    return {key: read(values[name], key) for key in values[name]}


def _anything(values: Mapping[str, Any], name: str) -> Any:
    return values[name]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
