"""Reading and appending single rows of the ledger, inside a transaction that the caller holds."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from limbeck.errors import RunConflict
from limbeck.vault.ledger.database import Database
from limbeck.vault.ledger.family import Commitment
from limbeck.vault.ledger.splits import Split
from limbeck.vault.ledger.sums import State
from limbeck.vault.ledger.tables import CHAIN_START, CHAINED, chain_digest


@dataclass(frozen=True)
class GrantRow:
    """What was booked under a grant: the plan, and how many answers of each label it paid for."""

    grant: str
    dataset: str
    plan: str
    method: str
    epsilon: float
    delta: float
    counts: Mapping[str, int]
    state: State


def append_budget(db: Database, dataset: str, epsilon: float, delta: float) -> None:
    _append(db, "budgets", dataset, repr(epsilon), repr(delta), _now())


def append_split(db: Database, split: Split) -> None:
    disjoint = "yes" if split.disjoint else "no"
    _append(db, "splits", split.dataset, split.name, split.kind, split.listed, disjoint, split.secret.hex(), _now())


def append_rule(db: Database, found: Commitment, grant: str) -> None:
    """Bind an account to a rule, from the booking of this grant on."""
    (number,) = db.execute("SELECT number FROM bookings WHERE grant_id = ?", (grant,)).fetchone()
    _append(db, "rules", found.dataset, str(found.budget), str(number), found.rule, str(found.order), _now())


def is_booked(db: Database, grant: str) -> bool:
    return db.execute("SELECT 1 FROM bookings WHERE grant_id = ?", (grant,)).fetchone() is not None


def append_booking(
    db: Database,
    dataset: str,
    plan: str,
    method: str,
    epsilon: float,
    delta: float,
    counts: Mapping[str, int],
    grant: str | None,
) -> str:
    grant = grant or uuid.uuid4().hex
    booked = json.dumps(dict(counts), sort_keys=True)
    _append(db, "bookings", grant, dataset, plan, method, repr(epsilon), repr(delta), booked, _now())
    return grant


def _append(db: Database, table: str, *values: str) -> None:
    """Add one row to a chained table. Table and column names are constants, so no text of a user becomes SQL."""
    last = db.execute(f"SELECT number, digest FROM {table} ORDER BY number DESC LIMIT 1").fetchone()
    number, previous = last if last else (0, CHAIN_START)
    row: dict[str, object] = dict(zip(CHAINED[table], (number + 1, *values, previous), strict=True))
    row["digest"] = chain_digest(table, list(row.values()))
    if table == "bookings":
        row["state"] = "open"
    marks = ", ".join("?" * len(row))
    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_grant(db: Database, grant: str) -> GrantRow:
    found = db.execute(
        "SELECT dataset, plan, method, epsilon, delta, counts, state FROM bookings WHERE grant_id = ?", (grant,)
    ).fetchone()
    if found is None:
        raise RunConflict(
            f"This ledger holds no booking {grant!r}. The run was started with another ledger; "
            "point LIMBECK_LEDGER to that one."
        )
    dataset, plan, method, epsilon, delta, counts, state = found
    return GrantRow(grant, dataset, plan, method, float(epsilon), float(delta), json.loads(counts), state)


def void_row(db: Database, row: GrantRow) -> str | None:
    """Make an open booking void, or say why it cannot be.

    Guarantee: void only if not one answer is on record.
    """
    answered = db.execute("SELECT 1 FROM answers WHERE grant_id = ? LIMIT 1", (row.grant,)).fetchone()
    if row.state == "open" and not answered:
        db.execute("UPDATE bookings SET state = 'void' WHERE grant_id = ?", (row.grant,))
        return None
    return (
        f"Booking {row.grant} of data set {row.dataset!r} cannot be given back, because it is "
        f"{'finished' if row.state == 'finished' else 'already answered'}."
    )
