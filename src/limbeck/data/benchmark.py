"""Proof that records are those of a public benchmark: they were opened by its name and compared with hashes in this code.

A result that was computed from such records carries the proof; every other result is its owner's. A text that looks like the
name of a set proves nothing: a private folder may be called `digits`, and so may the schema inside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.data import fetch
from limbeck.data.idx import SPLITS
from limbeck.data.named import NAMED

ENTRY = "benchmarks"


@dataclass(frozen=True)
class Benchmark:
    """One split of a named set. Only the code that opens named sets by name makes one (limbeck.data.source)."""

    name: str
    split: str

    @property
    def text(self) -> str:
        return f"{self.name}:{self.split}"

    @property
    def sha256(self) -> str:
        """Of the known hashes of all that the split is read from."""
        storage = NAMED[self.name].storage
        files = {file: digest for file, digest in fetch.FILES[storage].items() if file.startswith(SPLITS[self.split])}
        known = files or {self.split: fetch.ARRAYS[storage][self.split]}
        lines = "".join(f"{digest} {file}\n" for file, digest in sorted(known.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def to_dict(self) -> dict[str, str]:
        return {"set": self.text, "sha256": self.sha256}


def benchmark_in(values: Mapping[str, Any], role: str) -> Benchmark | None:
    """The benchmark that a result proves for the records of a role ("test", "real"); None where it proves none.

    Guarantee: a name without the hashes that this version compares with is no proof.
    """
    listed = values.get(ENTRY)
    stated = listed.get(role) if isinstance(listed, Mapping) else None
    if not isinstance(stated, Mapping):
        return None
    name, _, split = str(stated.get("set", "")).rpartition(":")
    if name not in NAMED or split not in SPLITS:
        return None
    found = Benchmark(name, split)
    return found if stated.get("sha256") == found.sha256 else None
