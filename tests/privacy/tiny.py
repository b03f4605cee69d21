"""A tiny data set that counts how often it is read, and plans and releases over it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data.records import Records
from limbeck.methods import method_named
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from working import asked, condense, make_plan

DELTA = 1e-5
SIZES = (40, 30, 50)


@dataclass(eq=False)
class MemorySource:
    """Records in memory that count how often they are read."""

    schema: Schema
    records: Records
    loads: int = 0

    def load(self) -> Records:
        self.loads += 1
        return self.records


def plan_of(*queries: ClippedSum, dataset: str = "tiny") -> Plan:
    return Plan(dataset=dataset, method="ldpdc", settings={}, queries=queries, price=price(queries, DELTA))


def release_of(source: MemorySource, folder: Path, seed: int | None = None, **settings: Any) -> Path:
    """The release of a small LDPDC run over `source`, in a folder with its own ledger."""
    folder.mkdir(exist_ok=True)
    method = method_named("ldpdc", {"per_class": 2, "L": 5, "sigma": 2.0, **settings})
    request = asked(data=source.schema.name, ledger=str(folder / "ledger.sqlite"), insecure_seed=seed)
    plan = make_plan(source.schema, method, None, DELTA)
    return condense(request, plan, source, folder / "release", Silent()).release
