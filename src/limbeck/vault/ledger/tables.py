"""Tables, guards and digests of the ledger file, formats 1 and 2. The constitution at the top of book.py binds every line.

Triggers inside the file refuse what the constitution forbids, also to other programs that open it. Format 2 adds two tables
to format 1 and changes nothing that was there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

APPLICATION_ID = 0x4C494D42  # "LIMB"
FORMAT_VERSION = 2
CHAIN_START = ""

# Columns that a row's digest covers, in this order. The state of a booking is not among them: it changes once.
CHAINED = {
    "budgets": ("number", "dataset", "epsilon", "delta", "created", "previous"),
    "bookings": (
        "number", "grant_id", "dataset", "plan", "method", "epsilon", "delta", "counts", "created", "previous",
    ),
    "splits": ("number", "dataset", "name", "kind", "parts", "disjoint", "secret", "created", "previous"),
    "rules": ("number", "dataset", "budget", "booking", "rule", "alpha", "created", "previous"),
}  # fmt: skip
# The chained tables of each format that this version reads.
TABLES = {1: ("budgets", "bookings"), 2: ("budgets", "bookings", "splits", "rules")}

# Insert triggers repeat the uniqueness rule, because INSERT OR REPLACE removes a row without asking a delete trigger.
FIRST_SCHEMA = """
CREATE TABLE budgets (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, created TEXT NOT NULL,
    previous TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE INDEX budgets_of_dataset ON budgets (dataset, number);
CREATE TABLE bookings (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    grant_id TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, plan TEXT NOT NULL, method TEXT NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, counts TEXT NOT NULL, created TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'finished', 'void')),
    previous TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE INDEX bookings_of_dataset ON bookings (dataset, number);
CREATE TABLE answers (
    grant_id TEXT NOT NULL REFERENCES bookings (grant_id),
    label TEXT NOT NULL, position INTEGER NOT NULL CHECK (position >= 0),
    map_digest TEXT NOT NULL, payload_sha256 TEXT NOT NULL, payload BLOB,
    PRIMARY KEY (grant_id, label, position)
);
CREATE INDEX answers_kept ON answers (grant_id, label, position) WHERE payload IS NOT NULL;

CREATE TRIGGER budgets_stay BEFORE DELETE ON budgets
BEGIN SELECT RAISE(ABORT, 'a budget is never removed'); END;
CREATE TRIGGER budgets_keep_their_values BEFORE UPDATE ON budgets
BEGIN SELECT RAISE(ABORT, 'a budget is changed by a new row only'); END;
CREATE TRIGGER budgets_append BEFORE INSERT ON budgets
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM budgets)
BEGIN SELECT RAISE(ABORT, 'budgets are only appended'); END;

CREATE TRIGGER bookings_stay BEFORE DELETE ON bookings
BEGIN SELECT RAISE(ABORT, 'a booking is never removed'); END;
CREATE TRIGGER bookings_keep_their_values BEFORE UPDATE ON bookings
WHEN (NEW.number, NEW.grant_id, NEW.dataset, NEW.plan, NEW.method, NEW.epsilon, NEW.delta, NEW.counts, NEW.created,
      NEW.previous, NEW.digest)
  IS NOT (OLD.number, OLD.grant_id, OLD.dataset, OLD.plan, OLD.method, OLD.epsilon, OLD.delta, OLD.counts, OLD.created,
      OLD.previous, OLD.digest)
  OR OLD.state IS NOT 'open' OR NEW.state NOT IN ('finished', 'void')
BEGIN SELECT RAISE(ABORT, 'a booking only goes from open to finished or void'); END;
CREATE TRIGGER bookings_answered_stay_paid BEFORE UPDATE ON bookings
WHEN NEW.state IS 'void' AND EXISTS (SELECT 1 FROM answers WHERE grant_id = OLD.grant_id)
BEGIN SELECT RAISE(ABORT, 'an answered booking is never void'); END;
CREATE TRIGGER bookings_append BEFORE INSERT ON bookings
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM bookings) OR NEW.state IS NOT 'open'
  OR EXISTS (SELECT 1 FROM bookings WHERE grant_id = NEW.grant_id)
BEGIN SELECT RAISE(ABORT, 'bookings are only appended, and start open'); END;

CREATE TRIGGER answers_stay BEFORE DELETE ON answers
BEGIN SELECT RAISE(ABORT, 'an answer is never removed'); END;
CREATE TRIGGER answers_keep_their_values BEFORE UPDATE ON answers
WHEN (NEW.grant_id, NEW.label, NEW.position, NEW.map_digest, NEW.payload_sha256)
  IS NOT (OLD.grant_id, OLD.label, OLD.position, OLD.map_digest, OLD.payload_sha256) OR NEW.payload IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an answer is never changed, only its payload forgotten'); END;
CREATE TRIGGER answers_append BEFORE INSERT ON answers
WHEN (SELECT state FROM bookings WHERE grant_id = NEW.grant_id) IS NOT 'open'
  OR EXISTS (SELECT 1 FROM answers
             WHERE grant_id = NEW.grant_id AND label = NEW.label AND position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'answers are stored once, for an open booking'); END;
"""

ADDED_SCHEMA = """
CREATE TABLE splits (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL, name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('classes', 'hash', 'stages')), parts TEXT NOT NULL,
    disjoint TEXT NOT NULL CHECK (disjoint IN ('yes', 'no')), secret TEXT NOT NULL, created TEXT NOT NULL,
    previous TEXT NOT NULL, digest TEXT NOT NULL,
    UNIQUE (dataset, name)
);
CREATE TABLE rules (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    dataset TEXT NOT NULL, budget TEXT NOT NULL, booking TEXT NOT NULL,
    rule TEXT NOT NULL CHECK (rule IN ('sum', 'renyi')), alpha TEXT NOT NULL, created TEXT NOT NULL,
    previous TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE INDEX rules_of_dataset ON rules (dataset, number);

CREATE TRIGGER splits_stay BEFORE DELETE ON splits
BEGIN SELECT RAISE(ABORT, 'a split is never removed'); END;
CREATE TRIGGER splits_keep_their_values BEFORE UPDATE ON splits
BEGIN SELECT RAISE(ABORT, 'a split is never changed'); END;
CREATE TRIGGER splits_append BEFORE INSERT ON splits
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM splits)
  OR EXISTS (SELECT 1 FROM splits WHERE dataset = NEW.dataset AND name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'splits are only appended, each name once'); END;

CREATE TRIGGER rules_stay BEFORE DELETE ON rules
BEGIN SELECT RAISE(ABORT, 'a rule is never removed'); END;
CREATE TRIGGER rules_keep_their_values BEFORE UPDATE ON rules
BEGIN SELECT RAISE(ABORT, 'a rule is never changed'); END;
CREATE TRIGGER rules_append BEFORE INSERT ON rules
WHEN NEW.number IS NOT (SELECT COALESCE(MAX(number), 0) + 1 FROM rules)
  OR NOT EXISTS (SELECT 1 FROM budgets WHERE number = CAST(NEW.budget AS INTEGER) AND dataset = NEW.dataset)
  OR NOT EXISTS (SELECT 1 FROM bookings WHERE number = CAST(NEW.booking AS INTEGER))
BEGIN SELECT RAISE(ABORT, 'rules are only appended, for a budget and a booking'); END;
"""

SCHEMAS = {1: FIRST_SCHEMA, 2: FIRST_SCHEMA + ADDED_SCHEMA}
SCHEMA = SCHEMAS[FORMAT_VERSION]


def chain_digest(table: str, row: Sequence[object]) -> str:
    """Digest of one row, which holds the digest of the row before it.

    Guarantee: changing, dropping or reordering an earlier row breaks every later digest. The chain has no key: it finds
    damage and hasty hands, not an owner who rewrites the whole file.
    """
    return hashlib.sha256(json.dumps([table, *row]).encode()).hexdigest()
