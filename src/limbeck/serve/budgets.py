"""The ledger as a page shows it. Opened for reading only, for a moment, and only when it has changed."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from limbeck.errors import LimbeckError
from limbeck.report.budget import BudgetView, budget_view
from limbeck.serve.inside import Stamp, stamp
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import default_path, resolved, server_url

SECONDS = 5.0  # that what a server said is shown again


@dataclass(frozen=True, kw_only=True)
class Found:
    """`problem` says why there is nothing to show."""

    accounts: tuple[BudgetView, ...] = ()
    problem: str = ""


class Budgets:
    """Guarantee: never makes or changes a ledger; a run that books meanwhile waits for the moment of a copy at most."""

    def __init__(self, path: Path | None) -> None:
        self._path = path or default_path()
        self._known: tuple[tuple[Stamp | int | None, ...], Found] | None = None
        self._lock = threading.Lock()

    def look(self) -> Found:
        path = resolved(self._path)
        with self._lock:
            mark: tuple[Stamp | int | None, ...]
            if server_url(path):
                mark = (int(time.monotonic() / SECONDS),)
            else:
                # What is being booked stands in the write-ahead file before it reaches the ledger itself.
                mark = (stamp(path), stamp(path.with_name(path.name + "-wal")))
            if mark[0] is None:
                return Found(problem="There is no ledger yet. The first run makes one; --ledger names another one.")
            if self._known is None or self._known[0] != mark:
                self._known = (mark, self._read(path))
            return self._known[1]

    def _read(self, path: Path) -> Found:
        try:
            with Ledger.open_to_read(path) as ledger:
                return Found(accounts=tuple(budget_view(account) for account in ledger.accounts()))
        except LimbeckError as error:
            return Found(problem=error.message.replace(f"{path.parent}/", ""))
