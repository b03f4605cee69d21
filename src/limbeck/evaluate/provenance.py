"""Where a result comes from: whether the real records that it was computed from are proved to be public.

A score on records is a statement about these records. It may be shared only if they are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.data import DataSource
from limbeck.data.benchmark import ENTRY, Benchmark, benchmark_in
from limbeck.evaluate.reading import text
from limbeck.release.editions import OWNER


@dataclass(frozen=True)
class Provenance:
    """edition: "owner" or, by the owner's own word, "release". benchmarks: proofs by role ("test", "real")."""

    edition: str | None = None
    benchmarks: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, **sources: DataSource | None) -> Provenance:
        """Of a result that was computed from these records, by their role.

        Guarantee: unless all of them were opened as named sets, whose readers compare them with known hashes, the result
        is the owner's, which no release takes. Call it with sources that were loaded: an altered copy fails there.
        """
        used = {role: source.benchmark for role, source in sources.items() if source is not None}
        proofs = {role: benchmark.to_dict() for role, benchmark in used.items() if benchmark is not None}
        return cls(benchmarks=proofs) if len(proofs) == len(used) else cls(edition=OWNER)

    @property
    def is_owners(self) -> bool:
        return self.edition == OWNER

    def benchmark(self, role: str) -> Benchmark | None:
        """The public benchmark that is proved for the records of a role; None where none is."""
        return benchmark_in({ENTRY: self.benchmarks}, role)

    def to_dict(self) -> dict[str, Any]:
        """
        >>> Provenance(edition="owner").to_dict()
        {'edition': 'owner'}
        """
        values = {ENTRY: None if self.benchmarks is None else dict(self.benchmarks), "edition": self.edition}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Provenance:
        """Of a result that was read from a file. Whatever is no proof proves nothing."""
        proofs = values.get(ENTRY)
        return cls(text(values.get("edition")), proofs if isinstance(proofs, Mapping) else None)
