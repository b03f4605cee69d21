"""Whose figures a result holds: what it says of the real records that it was computed from."""

from __future__ import annotations

from typing import Any

from limbeck.data import DataSource
from limbeck.data.benchmark import ENTRY
from limbeck.release.editions import OWNER


def marks(**sources: DataSource | None) -> dict[str, Any]:
    """The entries of a result that was computed from these records, by their role ("test", "real").

    Guarantee: unless all of them were opened as named sets, whose readers compare them with known hashes, the result is
    marked as the owner's, which no release takes. Call it with sources that were loaded: an altered copy fails there.
    """
    used = {role: source.benchmark for role, source in sources.items() if source is not None}
    proofs = {role: benchmark.to_dict() for role, benchmark in used.items() if benchmark is not None}
    return {ENTRY: proofs} if len(proofs) == len(used) else {"edition": OWNER}
