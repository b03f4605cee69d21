"""The ledger: what every data set has spent, and every answer while a run lasts. One SQLite file, or tables on a server.

The constitution of this file. It binds every future version of Limbeck.

1. Rows are only ever added. The two changes a row may see are a booking's state, from open to finished or void, and an
   answer's payload, from bytes to nothing. Triggers inside the file refuse everything else. There is no reset.
2. What a table or a column means is never changed, and none is removed. A new meaning is a new column in a new format.
3. An unknown format version is refused, and so are altered tables. No version guesses, and none repairs.
4. A plan is booked, durably, before any record is read for it. An answer is stored, durably, before anybody uses it.
5. Check and commit are one transaction. A crash leaves a booking, a budget or an answer whole or absent, never half.
   What is confirmed stands in the ledger file itself; no file beside it is needed.
6. Epsilons add up and deltas add up, exactly, as the decimal numbers that were typed. Nothing is rounded in between.
   The one other rule is that of article 13; what it computes is rounded up before it is added.
7. A booking is given back only while not one answer is stored for it. Once answered it is spent, used or not.
8. The first stored answer stays. Whoever asks the same again gets the same bytes, so nothing is noised twice.
9. Every row of budgets, bookings, splits and rules holds the digest of the one before it; a broken chain stops everything.
10. A damaged file is reported and left exactly as it is.
11. A part belongs to its data set. A split is declared once and never changed; an account is a part only if its split is
   declared, never because of its name. A booking is checked against its own account and all that it is a part of.
12. Parts that cannot hold the same unit of privacy cost their parent the largest of them. All others add up, and so do
   different splits and what is booked on the parent itself. Stages of format 1 add up: nobody recorded what they hold.
13. An account is composed by one rule under one budget: the plain sum, or a Renyi filter at one order that follows from the
   budget. It is bound at the first booking under that budget, by public numbers, and stays bound while one counts.
14. A ledger of format 1 is brought to format 2 in one step, with a copy beside it; reading one changes nothing.

Tables: `budgets` (a row for every setting by the owner, the newest of an account is in force; without one the first
booking that was not given back, on a data set or its parts, is itself the budget of that data set), `bookings` (a row for
every plan), `answers` (a row for every answer), `splits` (a row for every way a data set was taken apart), `rules` (a row
for every account that was bound to a rule, with its budget and first booking). Epsilon and delta are kept as the text that
Python prints for the float.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from limbeck.errors import RunConflict, WallBreach
from limbeck.privacy.part import PartOf
from limbeck.privacy.unit import UNIT_RECORD
from limbeck.vault.ledger.accounts import Account, account_in, read_accounts
from limbeck.vault.ledger.address import default_path
from limbeck.vault.ledger.arguments import checked_dataset, checked_text
from limbeck.vault.ledger.booking import Wanted, book_plan, check_wanted, declare, give_back_unanswered
from limbeck.vault.ledger.database import Store
from limbeck.vault.ledger.family import read_family
from limbeck.vault.ledger.fitting import check_not_below_spent
from limbeck.vault.ledger.journal import (
    StoredAnswer,
    append_answer,
    checked_index,
    count_answers,
    forget_answers,
    read_answer,
)
from limbeck.vault.ledger.opening import open_ledger, open_to_read
from limbeck.vault.ledger.rows import GrantRow, append_budget, is_booked, read_grant, void_row
from limbeck.vault.ledger.splits import Split, read_place, read_split, wanted_split
from limbeck.vault.ledger.sums import Booking, State, checked_delta, checked_epsilon
from limbeck.vault.private_folder import discard

__all__ = ["Account", "Booking", "GrantRow", "Ledger", "Split", "StoredAnswer", "Wanted", "default_path"]


@dataclass(frozen=True)
class Ledger:
    """Books plans and keeps answers. Open it with `Ledger.open()`, best in a `with` statement.

    file: the checked SQLite file, or server, behind it.

    >>> with Ledger.open(Path("book.sqlite")) as ledger:
    ...     account = ledger.set_budget("scans", epsilon=3.0, delta=1e-5)
    >>> account.epsilon, account.spent_epsilon
    (3.0, 0.0)
    """

    file: Store

    @classmethod
    def open(cls, path: Path | None = None, *, patience: float = 30.0, create: bool = True) -> Self:
        """Open and check the ledger to write to it; wait up to `patience` seconds for other processes.

        If there is none it is made, and `created` says so. Whoever only goes on with what is booked gives `create=False`:
        a ledger that is missing then is an error, and not a second budget.
        """
        return cls(open_ledger(default_path() if path is None else Path(path), patience, create))

    @classmethod
    def open_to_read(cls, path: Path | None = None, *, patience: float = 5.0) -> Self:
        """Open and check an existing ledger so that it can be shown, and not written to."""
        return cls(open_to_read(default_path() if path is None else Path(path), patience))

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def created(self) -> bool:
        """Whether this opening made the ledger."""
        return self.file.created

    # Budgets

    def set_budget(self, dataset: str, epsilon: float, delta: float) -> Account:
        """Set or change the budget of a data set or of a part. An infinite epsilon allows releases that are not private.

        Guarantee: the budget never falls below what is spent, and every earlier setting stays on record.
        """
        dataset, epsilon, delta = checked_dataset(dataset), checked_epsilon(epsilon), checked_delta(delta)
        with self.file.transaction(write=True) as db:
            family = read_family(db, dataset)
            check_not_below_spent(family, dataset, epsilon, delta)
            known = family.budgets.get(dataset)
            if known is None or (known.epsilon, known.delta) != (epsilon, delta):
                append_budget(db, dataset, epsilon, delta)
            account = account_in(read_family(db, dataset), dataset)
            assert account is not None
            return account

    def has_budget(self, dataset: str) -> bool:
        """Whether the owner has set a budget; a first booking that stands for one does not count."""
        dataset = checked_dataset(dataset)
        with self.file.transaction(write=False) as db:
            return dataset in read_family(db, dataset).budgets

    def account(self, dataset: str) -> Account | None:
        """The budget and bookings of a data set or of a part, or None if it has no budget yet."""
        dataset = checked_dataset(dataset)
        with self.file.transaction(write=False) as db:
            return account_in(read_family(db, dataset), dataset)

    def accounts(self) -> list[Account]:
        """All accounts with a budget or a booking, by name; of what has parts, the whole comes first."""
        with self.file.transaction(write=False) as db:
            return read_accounts(db)

    # Splits

    def declare_split(
        self,
        dataset: str,
        name: str,
        *,
        classes: Sequence[Sequence[int]] | None = None,
        parts: int | None = None,
        unit: str = UNIT_RECORD,
    ) -> Split:
        """Take a data set apart: by `classes`, lists of class indices, or into `parts` by a keyed hash. Sets no budget.

        unit: whom the schema protects. Once declared a split stays; to declare the same again changes nothing.

        Guarantee: a part is counted as disjoint from the others only if no unit can be in two of them.
        """
        wanted = wanted_split(checked_dataset(dataset), name, classes, parts, unit)
        with self.file.transaction(write=True) as db:
            return declare(db, wanted)

    def split(self, dataset: str, name: str) -> Split | None:
        """A declared split of a data set. Of one by hash it holds the secret key: never show it."""
        dataset = checked_dataset(dataset)
        with self.file.transaction(write=False) as db:
            return read_split(db, dataset, name)

    def is_part(self, dataset: str) -> bool:
        """Whether an account is a part of a declared split, or a stage that an earlier version booked."""
        dataset = checked_dataset(dataset)
        with self.file.transaction(write=False) as db:
            return read_place(db, dataset) is not None

    # Bookings

    def check(self, wanted: Sequence[Wanted]) -> None:
        """Refuse unless all these plans would fit together. Books nothing."""
        with self.file.transaction(write=False) as db:
            check_wanted(db, wanted)

    def book(
        self,
        dataset: str,
        *,
        plan: str,
        method: str,
        epsilon: float,
        delta: float,
        counts: Mapping[str, int],
        grant: str | None = None,
        part: PartOf | None = None,
    ) -> str:
        """Pay for a plan and return its grant. Without a budget the first plan's price is the budget, until it is void.

        A run that wrote down its own `grant` before booking may book again after a crash: the same grant and plan are
        paid once. part: of which split these records are a part; None for a whole data set.

        Guarantee: when this returns, the spend is on disk; the bookings of a data set and its parts never exceed its budget,
        however many processes book at once.
        """
        wanted = Wanted(dataset=dataset, plan=plan, epsilon=epsilon, delta=delta, counts=counts, part=part)
        with self.file.transaction(write=True) as db:
            return book_plan(db, wanted, checked_text("method", method), grant)

    def state(self, grant: str) -> State | None:
        """The state of a booking; None for a grant that was never booked."""
        with self.file.transaction(write=False) as db:
            return read_grant(db, grant).state if is_booked(db, grant) else None

    def void(self, grant: str) -> None:
        """Give a booking back of which nothing was used.

        Guarantee: refused as soon as one answer is stored; afterwards no answer can be stored for this grant.
        """
        with self.file.transaction(write=True) as db:
            row = read_grant(db, grant)
            if row.state != "void" and (reason := void_row(db, row)):
                raise WallBreach(f"{reason} It stays spent.")
        discard(self.file.home, grant)

    def give_back(self, dataset: str, grant: str) -> None:
        """Void a booking on the owner's word, because its run is gone or never gets to its first answer.

        Guarantee: exactly a booking that is open and of which no answer was ever stored; forgotten answers count as stored.
        Check and change are one transaction, so of this and a run's first answer at the same moment one is refused.
        """
        dataset = checked_dataset(dataset)
        with self.file.transaction(write=True) as db:
            give_back_unanswered(db, dataset, grant, self.path)
        discard(self.file.home, grant)

    def grant(self, grant_id: str) -> GrantRow:
        """What was booked under this grant."""
        with self.file.transaction(write=False) as db:
            return read_grant(db, grant_id)

    def finish(self, grant: str) -> None:
        """Close a grant: it stays spent, its payloads and teachers go and nothing more can be stored. May be repeated."""
        with self.file.transaction(write=True) as db:
            row = read_grant(db, grant)
            if row.state == "void":
                raise WallBreach(f"Booking {grant} of data set {row.dataset!r} was given back; it cannot be finished.")
            if row.state == "open":
                db.execute("UPDATE bookings SET state = 'finished' WHERE grant_id = ?", (grant,))
                db.execute("UPDATE answers SET payload = NULL WHERE grant_id = ? AND payload IS NOT NULL", (grant,))
        discard(self.file.home, grant)

    # Answers

    def store(self, grant: str, label: str, index: int, *, map_digest: str, payload: bytes) -> bytes:
        """Journal one answer and return the bytes to use: these, or those that were stored before.

        Guarantee: no answer outside the booked counts is accepted; of all answers to one question only the first ever
        leaves the vault, so two processes that resume the same run do not release two noise draws.
        """
        map_digest = checked_text("map_digest", map_digest)
        with self.file.transaction(write=True) as db:
            first = append_answer(db, read_grant(db, grant), label, index, map_digest, payload)
        if first.map_digest != map_digest:
            raise RunConflict(
                f"Answer {index} of {label!r} was already given for another question. The run was changed since it was "
                "started; resume it with its first configuration, or start a new run."
            )
        return first.payload

    def fetch(self, grant: str, label: str, index: int) -> StoredAnswer | None:
        """The stored answer, or None if it was not given yet.

        Guarantee: the payload is byte for byte the one that was stored.
        """
        with self.file.transaction(write=False) as db:
            row = read_grant(db, grant)
            return read_answer(db, row, label, checked_index(row, label, index))

    def forget(self, grant: str, label: str, before: int) -> None:
        """Drop the payloads of answers below `before`, which the run has passed.

        Guarantee: the rows stay, so a forgotten answer still counts and can never be drawn again.
        """
        with self.file.transaction(write=True) as db:
            forget_answers(db, read_grant(db, grant), label, before)

    def answers(self) -> dict[str, int]:
        """How many answers are stored under each booking that has any, forgotten ones included."""
        with self.file.transaction(write=False) as db:
            return dict(db.execute("SELECT grant_id, COUNT(*) FROM answers GROUP BY grant_id").fetchall())

    def drawn(self, grant: str) -> dict[str, int]:
        """How many answers of each label are stored, forgotten ones included."""
        with self.file.transaction(write=False) as db:
            return count_answers(db, read_grant(db, grant))
