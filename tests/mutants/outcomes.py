"""What came of mutations, in a file: so that only those need to be tried that are new, or that were changed since."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mutation import BROKEN, EXPLAINED, KILLED, PACKAGE, REPOSITORY, SURVIVED, Mutation, Outcome

RESULTS = (KILLED, EXPLAINED, SURVIVED, BROKEN)


def fault_of(mutation: Mutation) -> str:
    """Another fault, or other tests, have another one."""
    what = (mutation.files, mutation.old, mutation.new, mutation.tests)
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Outcomes by name."""
    values = json.loads(path.read_text()) if path.exists() else {"mutations": []}
    return {entry["name"]: entry for entry in values["mutations"]}


def untried(mutations: Iterable[Mutation], path: Path) -> list[Mutation]:
    """Those that the file does not know as they are now."""
    kept = read(path)
    return [m for m in mutations if kept.get(m.name, {}).get("fault") != fault_of(m)]


def write(path: Path, mutations: Sequence[Mutation], outcomes: Iterable[Outcome], command: str, **more: Any) -> None:
    """These outcomes, and those of before for mutations that are still as they were; in the order of the list."""
    package, new = REPOSITORY / PACKAGE, {outcome.name: outcome for outcome in outcomes}
    tried = [(m, new[m.name]) for m in mutations if m.name in new]
    entries = {name: entry for name, entry in read(path).items() if name not in new} | {
        m.name: {
            "name": m.name,
            "file": m.place(package).relative_to(package).as_posix(),
            "fault": fault_of(m),
            "why": m.why,
            "result": outcome.result,
            "by" if outcome.result == KILLED else "said": outcome.said,
        }
        for m, outcome in tried
    }
    kept = [entries[m.name] for m in mutations if entries.get(m.name, {}).get("fault") == fault_of(m)]
    counts = Counter(entry["result"] for entry in kept)
    values = {
        "command": command,
        **more,
        "counts": {what: counts[what] for what in RESULTS},
        "mutations": kept,
    }
    path.write_text(json.dumps(values, indent=1) + "\n")
