"""Checks of a ledger on a server before anybody relies on it: its kind, its guards, its chains, and that commits last."""

from __future__ import annotations

from limbeck.errors import LedgerFault
from limbeck.vault.ledger.checks import check_rows
from limbeck.vault.ledger.database import Database
from limbeck.vault.ledger.server_faults import damaged_on_server
from limbeck.vault.ledger.server_tables import APPLICATION, COLUMNS, CONSTRAINTS, GUARDS, SPACE, TRIGGERS
from limbeck.vault.ledger.tables import FORMAT_VERSION, TABLES


def is_there(db: Database) -> bool:
    found = db.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (SPACE,)).fetchone()
    return found is not None


def check_server(url: str, db: Database) -> None:
    """Guarantee: returns only if the server keeps what it confirms, the guards are in place and all chains are whole."""
    _check_kind(url, db)
    for name in ("fsync", "full_page_writes"):
        (value,) = db.execute("SELECT current_setting(?)", (name,)).fetchone()
        if value != "on":
            raise LedgerFault(
                f"The server of the ledger {url} runs with {name} = {value}: it would forget confirmed bookings when its machine "
                f"stops. Nothing was changed. Set {name} = on and restart it."
            )
    for what, found, expected in (
        ("tables", _columns(db), _expected_columns()),
        ("keys", _constraints(db), {(table, text) for table, texts in CONSTRAINTS.items() for text in texts}),
        ("guards", _guards(db), {(name, body, True) for name, body in GUARDS.items()}),
        ("triggers", _triggers(db), _expected_triggers()),
        ("rewriting rules", _rewriting(db), set()),
    ):
        if found != expected:
            raise damaged_on_server(url, f"its {what} were altered")
    heads = dict(db.execute("SELECT name, number FROM heads").fetchall())
    if set(heads) != set(TABLES[FORMAT_VERSION]):
        raise damaged_on_server(url, "its table heads was altered")
    check_rows(lambda what: damaged_on_server(url, what), db, FORMAT_VERSION, lambda table: int(heads[table]))


def _check_kind(url: str, db: Database) -> None:
    (table,) = db.execute("SELECT to_regclass(?)", (f"{SPACE}.format",)).fetchone()
    rows = [] if table is None else db.execute(f"SELECT application, version FROM {SPACE}.format").fetchall()
    if len(rows) != 1 or rows[0][0] != APPLICATION:
        raise LedgerFault(
            f"The schema '{SPACE}' in {url} is not a ledger, but of another program or damaged. Nothing was changed. Point "
            "LIMBECK_LEDGER to the ledger, or restore it from a backup that is as new as the last run."
        )
    if rows[0][1] != FORMAT_VERSION:
        raise LedgerFault(
            f"The ledger {url} has format {rows[0][1]}, but this Limbeck knows format {FORMAT_VERSION} only on a server. "
            "Nothing was changed. Use the version of Limbeck that wrote it, or a newer one."
        )


def _columns(db: Database) -> set[tuple[object, ...]]:
    return set(
        db.execute(
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, o.collname"
            " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
            " LEFT JOIN pg_collation o ON o.oid = a.attcollation"
            " WHERE n.nspname = ? AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped",
            (SPACE,),
        ).fetchall()
    )


def _expected_columns() -> set[tuple[object, ...]]:
    return {
        (table, name, kind.split()[0], kind.endswith("NOT NULL"), "C" if kind.startswith("text") else None)
        for table, columns in COLUMNS.items()
        for name, kind in columns.items()
    }


def _constraints(db: Database) -> set[tuple[object, ...]]:
    return set(
        db.execute(
            "SELECT c.relname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid"
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND k.contype IN ('p', 'u', 'f')",
            (SPACE,),
        ).fetchall()
    )


def _guards(db: Database) -> set[tuple[object, ...]]:
    return set(
        db.execute(
            "SELECT p.proname, p.prosrc, p.prosecdef FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
            " WHERE n.nspname = ?",
            (SPACE,),
        ).fetchall()
    )


def _rewriting(db: Database) -> set[tuple[object, ...]]:
    """A rule of the server could make a booking vanish on its way, and a policy hide it."""
    return set(
        db.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ?"
            " AND (c.relrowsecurity OR EXISTS (SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid))",
            (SPACE,),
        ).fetchall()
    )


def _triggers(db: Database) -> set[tuple[object, ...]]:
    """With whether each is on, and that it holds for every row."""
    return set(
        db.execute(
            "SELECT c.relname, t.tgname, t.tgtype::integer, p.proname, t.tgenabled::text, t.tgqual IS NULL"
            " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
            " JOIN pg_proc p ON p.oid = t.tgfoid WHERE n.nspname = ? AND NOT t.tgisinternal",
            (SPACE,),
        ).fetchall()
    )


def _expected_triggers() -> set[tuple[object, ...]]:
    return {(each.table, each.name, each.kind, each.guard, "O", True) for each in TRIGGERS}
