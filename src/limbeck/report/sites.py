"""What the sites of a federation did to the pictures: a score of each, and the pictures as it left them.

For finding sites whose records are wrong (inverted, say) although nobody may look at one. Both are made of answers that the
sites have paid for, so they cost nothing. They tell of a whole site, not of a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from limbeck.data.records import Array
from limbeck.methods.parts.generator_training import MEANS
from limbeck.privacy.federation import Terms
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.report.strips import COLUMNS, Strip, strip
from limbeck.vault.api import CriticGradient

MOST_SITES = 24  # half of them from either end


@dataclass(frozen=True, kw_only=True)
class SiteRow:
    """score: the mean of the site's noised answers. strip: None where no set was kept when a block of the site ended."""

    name: str
    score: float
    strip: Strip | None = None

    @property
    def text(self) -> str:
        return f"{self.score:+.4f}"


def site_scores(certificate: Certificate, course: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of each site that was asked, the mean of its answers; none where answers are no directions for pictures.

    An answer of GS-WGAN says for every pixel whether the site's critics want it brighter. Its mean says so of the whole picture.
    """
    means, federation = course.get(MEANS), certificate.federation
    directions = any(query.map == CriticGradient.kind for query in certificate.queries)
    if federation is None or means is None or not directions:
        return {}
    found: dict[str, list[float]] = {}
    for step, mean in enumerate(means):
        found.setdefault(federation.terms.site_at(step), []).append(mean)
    return {name: float(np.mean(each)) for name, each in found.items()}


def last_kept(terms: Terms, after: Array, total: int) -> dict[str, int]:
    """For each site the last set that was kept when a block of its own had just ended."""
    return {
        terms.site_at(int(done) - 1): index
        for index, done in enumerate(after)
        if int(done) % terms.block == 0 or int(done) == total
    }


def site_rows(
    certificate: Certificate,
    schema: Schema,
    course: Mapping[str, Sequence[float]],
    kept: tuple[Array, Array] | None,
    y: Array,
) -> tuple[SiteRow, ...]:
    """The sites from darkening to brightening. kept: sets on the way, and after how many answers each."""
    scores = site_scores(certificate, course)
    if not scores or certificate.federation is None or not schema.is_image:
        return ()
    firsts = [found[0] for index in range(len(schema.classes)) if len(found := np.flatnonzero(y == index))][:COLUMNS]
    sets, after = (None, np.zeros(0)) if kept is None else kept
    places = last_kept(certificate.federation.terms, after, len(course[MEANS]))
    rows = []
    for name in shown(sorted(scores, key=lambda site: scores[site])):
        pictures = None if sets is None or name not in places else strip(sets[places[name]][firsts], schema)
        rows.append(SiteRow(name=name, score=scores[name], strip=pictures))
    return tuple(rows)


def shown(names: Sequence[str]) -> list[str]:
    half = MOST_SITES // 2
    return list(names) if len(names) <= MOST_SITES else [*names[:half], *names[-half:]]
