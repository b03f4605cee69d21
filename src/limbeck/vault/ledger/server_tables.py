"""Tables and guards of a ledger on a PostgreSQL server: format 2 of tables.py in its words. The constitution in book.py binds it.

Triggers refuse what the constitution forbids, to every role. `heads` holds the highest number ever given in each chained
table, so that rows missing at the end are noticed; only the triggers, which run as the tables' owner, write it.
"""

from __future__ import annotations

from dataclasses import dataclass

from limbeck.vault.ledger.tables import FORMAT_VERSION

SPACE = "limbeck"
APPLICATION = "Limbeck's ledger"

# Order and comparison of names by their characters, as in the file: "0" follows "/".
TEXT = 'text COLLATE "C" NOT NULL'
COLUMNS = {
    "format": {"application": TEXT, "version": "integer NOT NULL"},
    "heads": {"name": TEXT, "number": "bigint NOT NULL"},
    "budgets": {"number": "bigint NOT NULL", **dict.fromkeys(
        ("dataset", "epsilon", "delta", "created", "previous", "digest"), TEXT)},
    "bookings": {"number": "bigint NOT NULL", **dict.fromkeys(
        ("grant_id", "dataset", "plan", "method", "epsilon", "delta", "counts", "created", "state", "previous", "digest"),
        TEXT)},
    "answers": {"grant_id": TEXT, "label": TEXT, "position": "bigint NOT NULL", "map_digest": TEXT,
                "payload_sha256": TEXT, "payload": "bytea"},
    "splits": {"number": "bigint NOT NULL", **dict.fromkeys(
        ("dataset", "name", "kind", "parts", "disjoint", "secret", "created", "previous", "digest"), TEXT)},
    "rules": {"number": "bigint NOT NULL", **dict.fromkeys(
        ("dataset", "budget", "booking", "rule", "alpha", "created", "previous", "digest"), TEXT)},
}  # fmt: skip
CONSTRAINTS = {
    "heads": ("PRIMARY KEY (name)",),
    "budgets": ("PRIMARY KEY (number)",),
    "bookings": ("PRIMARY KEY (number)", "UNIQUE (grant_id)"),
    "answers": (
        "PRIMARY KEY (grant_id, label, \"position\")", "FOREIGN KEY (grant_id) REFERENCES bookings(grant_id)",
    ),
    "splits": ("PRIMARY KEY (number)", "UNIQUE (dataset, name)"),
    "rules": ("PRIMARY KEY (number)",),
}  # fmt: skip

# Bodies of the guards. They run as the owner of the tables, because a role that may book may not touch `heads`.
GUARDS = {
    "refuse": """
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0];
END""",
    "append": """
BEGIN
    UPDATE limbeck.heads SET number = number + 1 WHERE name = TG_TABLE_NAME AND number + 1 = NEW.number;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% are only appended', TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END""",
    "bookings_start": """
BEGIN
    IF NEW.state <> 'open' THEN
        RAISE EXCEPTION 'bookings start open';
    END IF;
    RETURN NEW;
END""",
    "bookings_change": """
BEGIN
    IF (to_jsonb(NEW) - 'state') <> (to_jsonb(OLD) - 'state') OR OLD.state <> 'open'
        OR NEW.state NOT IN ('finished', 'void') THEN
        RAISE EXCEPTION 'a booking only goes from open to finished or void';
    END IF;
    IF NEW.state = 'void' AND EXISTS (SELECT 1 FROM limbeck.answers WHERE grant_id = OLD.grant_id) THEN
        RAISE EXCEPTION 'an answered booking is never void';
    END IF;
    RETURN NEW;
END""",
    "answers_append": """
BEGIN
    PERFORM 1 FROM limbeck.bookings WHERE grant_id = NEW.grant_id AND state = 'open' FOR SHARE;
    IF NOT FOUND OR NEW.position < 0 OR NEW.payload IS NULL THEN
        RAISE EXCEPTION 'answers are stored once, for an open booking';
    END IF;
    RETURN NEW;
END""",
    "answers_change": """
BEGIN
    IF (to_jsonb(NEW) - 'payload') <> (to_jsonb(OLD) - 'payload') OR NEW.payload IS NOT NULL THEN
        RAISE EXCEPTION 'an answer is never changed, only its payload forgotten';
    END IF;
    RETURN NEW;
END""",
    "rules_append": """
BEGIN
    IF NOT EXISTS (SELECT 1 FROM limbeck.budgets WHERE number = NEW.budget::bigint AND dataset = NEW.dataset)
        OR NOT EXISTS (SELECT 1 FROM limbeck.bookings WHERE number = NEW.booking::bigint) THEN
        RAISE EXCEPTION 'rules are appended for a budget and a booking';
    END IF;
    RETURN NEW;
END""",
}
_ROW, _BEFORE = 1, 2
_EVENTS = {"INSERT": 4, "DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}


@dataclass(frozen=True)
class Trigger:
    """A guard on one table. Of several on the same event the one with the first name comes first."""

    table: str
    name: str
    event: str
    guard: str
    words: str = ""

    @property
    def kind(self) -> int:
        """As the server's catalogue states it."""
        return _BEFORE | _EVENTS[self.event] | (0 if self.event == "TRUNCATE" else _ROW)

    def statement(self) -> str:
        each = "STATEMENT" if self.event == "TRUNCATE" else "ROW"
        words = f"'{self.words}'" if self.words else ""
        return (
            f"CREATE TRIGGER {self.name} BEFORE {self.event} ON {SPACE}.{self.table} "
            f"FOR EACH {each} EXECUTE FUNCTION {SPACE}.{self.guard}({words})"
        )


def _triggers() -> tuple[Trigger, ...]:
    found = []
    for table in COLUMNS:
        found += [
            Trigger(table, f"{table}_stay", "DELETE", "refuse", f"rows of {table} are never removed"),
            Trigger(table, f"{table}_stay_all", "TRUNCATE", "refuse", f"rows of {table} are never removed"),
        ]
    for table in ("format", "budgets", "splits", "rules"):
        words = f"rows of {table} are never changed"
        found.append(Trigger(table, f"{table}_keep_their_values", "UPDATE", "refuse", words))
    for table in ("budgets", "bookings", "splits", "rules"):
        found.append(Trigger(table, f"{table}_append", "INSERT", "append"))
    return (
        *found,
        Trigger("bookings", "bookings_start", "INSERT", "bookings_start"),
        Trigger("bookings", "bookings_change", "UPDATE", "bookings_change"),
        Trigger("answers", "answers_append", "INSERT", "answers_append"),
        Trigger("answers", "answers_change", "UPDATE", "answers_change"),
        Trigger("rules", "rules_belong", "INSERT", "rules_append"),
    )


TRIGGERS = _triggers()


def statements() -> list[str]:
    """Everything that makes a ledger in an empty database, for one transaction."""
    made = [f"CREATE SCHEMA {SPACE}", f"REVOKE ALL ON SCHEMA {SPACE} FROM PUBLIC"]
    for table, columns in COLUMNS.items():
        parts = [f'"{name}" {kind}' for name, kind in columns.items()] + list(CONSTRAINTS.get(table, ()))
        made.append(f"CREATE TABLE {SPACE}.{table} ({', '.join(parts)})")
    for table in ("budgets", "bookings", "rules"):
        made.append(f"CREATE INDEX {table}_of_dataset ON {SPACE}.{table} (dataset, number)")
    made.append(f"INSERT INTO {SPACE}.format VALUES ('{APPLICATION.replace(chr(39), chr(39) * 2)}', {FORMAT_VERSION})")
    made.append(f"INSERT INTO {SPACE}.heads SELECT unnest(ARRAY['budgets', 'bookings', 'splits', 'rules']), 0")
    for name, body in GUARDS.items():
        made.append(
            f"CREATE FUNCTION {SPACE}.{name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
            f"SET search_path = pg_catalog, pg_temp AS $guard${body}$guard$"
        )
    made.append(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {SPACE} FROM PUBLIC")
    return made + [trigger.statement() for trigger in TRIGGERS]


def allowed(role: str) -> list[str]:
    """What lets a role book and answer, and nothing else: no budget, no split, no change of what is there.

    role: quoted as an identifier.
    """
    return [
        f"GRANT USAGE ON SCHEMA {SPACE} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {SPACE} TO {role}",
        f"GRANT INSERT ON {SPACE}.bookings, {SPACE}.answers, {SPACE}.rules TO {role}",
        f"GRANT UPDATE (state) ON {SPACE}.bookings TO {role}",
        f"GRANT UPDATE (payload) ON {SPACE}.answers TO {role}",
    ]
