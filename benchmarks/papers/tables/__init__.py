"""All tables by name."""

from __future__ import annotations

from benchmarks.papers.spec import Table
from benchmarks.papers.tables import datalens, dpdc, elixir, gswgan, psg
from limbeck.errors import BadInput

TABLES: dict[str, Table] = {
    table.name: table for table in (*elixir.TABLES, *dpdc.TABLES, *psg.TABLES, *datalens.TABLES, *gswgan.TABLES)
}


def tables_named(names: str) -> list[Table]:
    """Tables by name, with commas; a name also stands for its parts (psg-1 for psg-1a and psg-1b), 'all' for every one."""
    found: dict[str, Table] = {}
    for name in (name.strip().lower() for name in names.split(",")):
        fitting = [
            table
            for key, table in TABLES.items()
            if name in ("all", key) or (key.startswith(name) and key[len(name) :].isalpha())
        ]
        if not fitting:
            raise BadInput(
                f"There is no table '{name}'. Known are: {', '.join(TABLES)}.",
                "python -m benchmarks.papers measure --list",
            )
        found.update({table.name: table for table in fitting})
    return list(found.values())
