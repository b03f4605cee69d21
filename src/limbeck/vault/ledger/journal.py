"""The journal of answers: each is stored once, stays as it was stored, and counts for ever, inside a caller's transaction."""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass

from limbeck.errors import LedgerFault, RunConflict, WallBreach
from limbeck.vault.ledger.database import Database
from limbeck.vault.ledger.rows import GrantRow


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as it was journalled, and the digest of the per-record map that it answered."""

    map_digest: str
    payload: bytes


def append_answer(db: Database, row: GrantRow, label: str, index: int, map_digest: str, payload: bytes) -> StoredAnswer:
    """Store an answer, or find the one that was stored before: the first stays.

    Guarantee: refused unless the booking is open and has paid for this index.
    """
    if row.state != "open":
        raise WallBreach(f"Booking {row.grant} is {row.state}: no further answer can be stored for it.")
    index = checked_index(row, label, index)
    first = read_answer(db, row, label, index)
    if first is not None:
        return first
    db.execute(
        "INSERT INTO answers (grant_id, label, position, map_digest, payload_sha256, payload) VALUES (?, ?, ?, ?, ?, ?)",
        (row.grant, label, index, map_digest, hashlib.sha256(payload).hexdigest(), payload),
    )
    return StoredAnswer(map_digest, payload)


def read_answer(db: Database, row: GrantRow, label: str, index: int) -> StoredAnswer | None:
    found = db.execute(
        "SELECT map_digest, payload_sha256, payload FROM answers WHERE grant_id = ? AND label = ? AND position = ?",
        (row.grant, label, index),
    ).fetchone()
    if found is None:
        return None
    map_digest, expected, payload = found
    if payload is None:
        raise RunConflict(
            f"Answer {index} of {label!r} was given and then forgotten, because the run went past it"
            f"{' and finished' if row.state == 'finished' else ''}. It is not drawn again; "
            "resume from the run's newest checkpoint, or start a new run."
        )
    if not isinstance(payload, bytes) or hashlib.sha256(payload).hexdigest() != expected or type(map_digest) is not str:
        raise LedgerFault(
            f"Answer {index} of {label!r} under booking {row.grant} is damaged: its bytes do not fit their digest. "
            "Nothing was changed. Restore the ledger from a backup that is as new as the last run."
        )
    return StoredAnswer(map_digest, payload)


def forget_answers(db: Database, row: GrantRow, label: str, before: int) -> None:
    """Drop the payloads below `before`. Guarantee: the rows stay, so a forgotten answer can never be drawn again."""
    if label not in row.counts:
        raise unknown_label(row, label)
    db.execute(
        "UPDATE answers SET payload = NULL WHERE grant_id = ? AND label = ? AND position < ? AND payload IS NOT NULL",
        (row.grant, label, min(operator.index(before), row.counts[label])),
    )


def count_answers(db: Database, row: GrantRow) -> dict[str, int]:
    """How many answers of each label are stored, forgotten ones included."""
    found = db.execute("SELECT label, COUNT(*) FROM answers WHERE grant_id = ? GROUP BY label", (row.grant,))
    return dict.fromkeys(row.counts, 0) | dict(found.fetchall())


def checked_index(row: GrantRow, label: str, index: int) -> int:
    """Guarantee: returns only an index that the booking paid for."""
    if label not in row.counts:
        raise unknown_label(row, label)
    index = operator.index(index)
    if not 0 <= index < row.counts[label]:
        raise WallBreach(
            f"Answer {index} of {label!r} is outside the plan: booking {row.grant} paid for {row.counts[label]} "
            "of them, counted from 0. Nothing was released."
        )
    return index


def unknown_label(row: GrantRow, label: str) -> WallBreach:
    return WallBreach(f"Booking {row.grant} paid for no answer {label!r}; it knows {sorted(row.counts)}.")
