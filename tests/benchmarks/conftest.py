from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from benchmarks.papers import tables
from benchmarks.papers.spec import REAL, Cell, Run, Table, make_table

SETTINGS = {"per_class": 2, "L": 10, "sigma": 2.0}


def tiny_run(method: str, data: str = "digits") -> Run:
    return Run(
        name=f"{method}/{data}",
        data=data,
        method=method,
        models=("linear", "mlp"),
        protocol="dpdc",
        settings={"per_class": 2} if method == REAL else SETTINGS if method == "ldpdc" else {},
    )


def tiny_table() -> Table:
    """LDPDC, real records and a method that will never be, on the digits."""
    rows = {"LDPDC": "50.0 ± 1.5 at 1.10 | 40", "Real": "90 | -", "Alchemy": "10 | 11"}
    methods = {"LDPDC": "ldpdc", "Real": REAL, "Alchemy": "alchemy"}
    models = {"Softmax": "linear", "MLP": "mlp"}
    return make_table(
        name="tiny-1",
        title="A tiny table",
        source="Nobody, Nowhere, Table 1",
        columns=tuple(models),
        rows=rows,
        cell_of=lambda row, column: Cell(run=tiny_run(methods[row]), model=models[column]),
        note="For tests.",
    )


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Table:
    table = tiny_table()
    monkeypatch.setitem(tables.TABLES, table.name, table)
    return table


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
