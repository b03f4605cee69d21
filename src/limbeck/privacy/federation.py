"""What the sites of a federation have agreed on, and what an answer over all of them costs, seen from where. All of it is public.

A record belongs to one site, so neighbours differ at one site. Who sees what:

    noise "site"     each site adds the query's whole noise, std s. The server sees every site's answer: noise s. Whoever sees
                     only what was made of the sum faces the noise of all K sites: s sqrt(K).
    noise "shared"   the server sees the sum alone, under masks (limbeck.vault.masking). Each site adds a share of std
                     s / sqrt(K - c), so that without the shares of any c sites, whose owners may tell the server, s is left.
                     The whole sum has s sqrt(K / (K - c)). If all the other sites told, s / sqrt(K - c) would be left.

Questions to teachers, and choices, go to one site at a time, with all of their noise, in either case.

Shares are rounded one by one, and a sum of rounded numbers is not a rounded sum. Why the price is still that of the Gaussian
of std s, with H >= K - c shares that nobody tells, Z_i ~ N(0, t^2) in steps and t = s / sqrt(K - c):

  - P(round(Z_i) = n) is the density of Z_i + V_i at n, V_i uniform on [-1/2, 1/2]: its Fourier series is the sum over k of
    g(u + 2 pi k), with g(u) = exp(-t^2 u^2 / 2) sin(u/2) / (u/2). For |u| <= pi all terms but k = 0 add up to less than
    3 exp(-t^2 pi^2 / 2), which is below 2^-7000000 for t >= 2^10 (`LEAST_SHARE`).
  - So the sum of all round(Z_i) has, but for (2 H + 1) times that much in any one value, the density of Z + V_1 + ... + V_H
    at whole numbers, Z ~ N(0, H t^2). That is P(round(Z + W) = n) with W = V_1 + ... + V_(H-1), exactly.
  - For a whole sum S, S + round(Z + W) = round(S + Z + W). W and rounding know nothing of the records: this is S + Z, the
    Gaussian mechanism of std sqrt(H) t >= s, worked on afterwards.
  - The two distributions differ, added up over all values within 64 standard deviations (fewer than 2^60 of them), by less than
    2^-6000000, and outside by the tail, 2^-2900. Samplers that cut at 64 t (limbeck.vault.rounded_gaussian) add H 2^-2900.
    Distributions that are tau apart turn (epsilon, delta) into (epsilon, delta + (1 + e^epsilon) tau): for epsilon up to 1000
    that is below 2^-1000 a share and number, the bound that `sampler_delta` takes for one draw of noise.

So K shares add K times `sampler_delta` to delta, and nothing to epsilon.

A whole site as the unit: all records of one site may be others, as many as they like. A question to teachers can be priced for
that, because what bounds it is not a record but a teacher, however many records it has seen, and all teachers are the site's:

  - `draws` gradients, each of norm at most clip / 2, whichever teacher was drawn: the answer moves by at most clip sqrt(draws).
    Which teacher it was hides nothing here, so the chance of a draw does not count.
  - votes of `teachers`, each of norm at most clip / 2: the sum moves by at most clip teachers.

A sum over records has no such bound, and a choice's scores have none: for these there is no price. Whose turn it is follows from
the terms. The other sites' answers depend on this one's only through what is priced.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from limbeck.errors import BadInput
from limbeck.privacy.accounting import Price, price
from limbeck.privacy.queries import ClippedSum, Query, TeacherGradient, TeacherVote

SITE, SHARED = "site", "shared"
LEAST_SHARE = 2.0**10  # steps: the proof above wants shares that are wide beside a step
MOST_SITES = 1000
SLACK = 2.0**-40  # rounding of the roots below, taken against the user
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What every site of a federation holds in its own hands, and the server cannot change.

    name       of the federation
    sites      their names, in one order
    keys       the Ed25519 public key of each site's owner, hexadecimal
    noise      "site" or "shared"
    collusion  c: how many sites may tell the server what they know, beside its own knowledge, without harm to the others
    block      how many questions to teachers one site answers before it is the next one's turn

    >>> terms = Terms(name="clinics", sites=("a", "b", "c"), keys=("0" * 64, "1" * 64, "2" * 64), noise="shared", collusion=1)
    >>> round(terms.share, 4), round(terms.total, 4)
    (0.7071, 1.2247)
    """

    name: str
    sites: tuple[str, ...]
    keys: tuple[str, ...]
    noise: str = SITE
    collusion: int = 0
    block: int = 1

    def __post_init__(self) -> None:
        if self.noise not in (SITE, SHARED):
            raise BadInput(f"noise is '{SITE}' or '{SHARED}', got {self.noise!r:.40}.")
        for name in (self.name, *self.sites):
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise BadInput(
                    f"A federation and its sites have names of letters, digits, '.', '_' and '-', got {name!r:.80}."
                )
        if not 2 <= len(self.sites) <= MOST_SITES or len(set(self.sites)) != len(self.sites):
            raise BadInput(f"A federation has 2 to {MOST_SITES} sites with different names, got {len(self.sites)}.")
        if len(self.keys) != len(self.sites) or len(set(self.keys)) != len(self.keys):
            raise BadInput(
                f"Each of the {len(self.sites)} sites has a key of its own, got {len(set(self.keys))} different ones."
            )
        if not all(isinstance(key, str) and _KEY.fullmatch(key) for key in self.keys):
            raise BadInput("A site's key is an Ed25519 public key in 64 hexadecimal digits.")
        most = len(self.sites) - 2 if self.noise == SHARED else 0
        if type(self.collusion) is not int or not 0 <= self.collusion <= most:
            raise BadInput(
                f"With noise={self.noise} and {len(self.sites)} sites, collusion lies in 0 ... {most}, got {self.collusion}. "
                "(Two sites that do not tell are needed, or the sum would show one of them.)"
            )
        if type(self.block) is not int or self.block < 1:
            raise BadInput(f"block must be at least 1, got {self.block}.")

    def site_at(self, index: int) -> str:
        """The site that answers question number `index` to teachers."""
        return self.sites[index // self.block % len(self.sites)]

    @property
    def share(self) -> float:
        """Of the query's noise std, what each site adds. Guarantee: never rounded down."""
        return 1.0 if self.noise == SITE else (1 + SLACK) / math.sqrt(len(self.sites) - self.collusion)

    @property
    def total(self) -> float:
        """The std of the sum's noise / the query's."""
        return self.share * math.sqrt(len(self.sites))

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        values = dataclasses.asdict(self)
        return {**values, "sites": list(self.sites), "keys": list(self.keys)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Terms:
        known = {field.name for field in dataclasses.fields(Terms)}
        if set(values) != known or not all(isinstance(values[name], list) for name in ("sites", "keys")):
            raise BadInput("The terms of a federation do not have the right form.")
        return Terms(**{**values, "sites": tuple(values["sites"]), "keys": tuple(values["keys"])})


@dataclass(frozen=True, kw_only=True)
class Views:
    """What one record's part in all answers costs, against whom.

    server    against the server, and in the shared case up to `collusion` sites with it: what every site books
    public    against whoever has only what was released, if no site tells
    all_told  against the server together with all sites but the record's own
    site      what all answers of one site cost if not a record but the whole site is the unit, against everybody; None where
              that has no bound, or where an older version did not say
    """

    server: Price
    public: Price
    all_told: Price
    site: Price | None = None

    def to_dict(self) -> dict[str, Any]:
        whole = {} if self.site is None else {"site": self.site.to_dict()}
        return {
            "server": self.server.to_dict(),
            "public": self.public.to_dict(),
            "all_told": self.all_told.to_dict(),
            **whole,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Views:
        if set(values) - {"site"} != {"server", "public", "all_told"}:
            raise BadInput("The prices of a federation do not have the right form.")
        return Views(**{name: Price.from_dict(value) for name, value in values.items()})


def views(queries: Sequence[Query], delta: float, terms: Terms) -> Views:
    """Price the queries from every side. Guarantee: upper bounds, of public values only."""
    return _views(tuple(queries), delta, terms)


@functools.lru_cache(maxsize=64)
def _views(queries: tuple[Query, ...], delta: float, terms: Terms) -> Views:
    """Kept, because a certificate is checked at every site and once more where it is written."""
    booked = price(queries, delta)
    return Views(
        server=booked,
        public=price(_at(queries, terms.total * (1 - 4 * SLACK)), delta),
        all_told=booked if terms.noise == SITE else price(_at(queries, terms.share * (1 - 4 * SLACK)), delta),
        site=whole_site(queries, delta),
    )


def whole_site(queries: Sequence[Query], delta: float) -> Price | None:
    """What one site's answers cost if all of its records may be others; None where that has no bound."""
    plain = as_of_sites(queries)
    return None if plain is None else price(plain, delta)


def as_of_sites(queries: Sequence[Query]) -> tuple[Query, ...] | None:
    """Sums that cost for one record what these cost for a whole site; None where that has no bound."""
    reaches = [reach_of_a_site(query) for query in queries]
    if None in reaches:
        return None
    return tuple(
        ClippedSum(
            label=query.label,
            map=query.map,
            clip=query.clip,
            noise_multiplier=query.noise_multiplier / cast(float, reach) * (1 - SLACK),
            count=query.count,
        )
        for query, reach in zip(queries, reaches, strict=True)
    )


def reach_of_a_site(query: Query) -> float | None:
    """How many clips an answer moves at most if all records of its site are others.

    Guarantee: an upper bound, of public fields only; None where there is none.
    """
    if isinstance(query, TeacherGradient):
        return math.sqrt(query.draws)
    return float(query.teachers) if isinstance(query, TeacherVote) else None


def _at(queries: Sequence[Query], factor: float) -> tuple[Query, ...]:
    """The same queries with sums under so many times the noise."""
    return tuple(
        dataclasses.replace(query, noise_multiplier=query.noise_multiplier * factor)
        if isinstance(query, ClippedSum)
        else query
        for query in queries
    )
