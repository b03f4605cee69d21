"""A vault that serves others: the owner's source, ledger and key, put together behind a socket."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import BudgetRefused
from limbeck.release.booked import sign_booked
from limbeck.release.signature import KeyFile
from limbeck.runs.execution import checked_device
from limbeck.runs.request import Request
from limbeck.vault.api import Grant, Randomness, Vault
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import may_exist, shown
from limbeck.vault.ledger.commands import on_ledger
from limbeck.vault.ledger.sums import budget_command
from limbeck.vault.local import LocalVault
from limbeck.vault.process.counter import Counter
from limbeck.vault.process.limits import Limits
from limbeck.vault.process.requests import Described, message_of
from limbeck.vault.process.server import VaultServer, described
from limbeck.vault.process.shared_records import SharedRecords
from limbeck.vault.process.socket_file import Door, listening
from limbeck.vault.process.wire import header_of
from limbeck.vault.source import PrivateSource

DEFAULT = Limits()
Log = Callable[[str], None]


@dataclass(frozen=True)
class Serving:
    """A vault at work. `stop` ends it; whether the request under way could be waited for."""

    ledger: Ledger
    server: VaultServer

    def stop(self, seconds: float = 5.0) -> bool:
        return self.server.stop(seconds)


@contextlib.contextmanager
def serving(
    request: Request, source: PrivateSource, path: Path, door: Door, log: Log, limits: Limits = DEFAULT
) -> Iterator[Serving]:
    """A server at the socket `path`, which answers until `stop` is called or the block ends; its file goes with the block.

    Guarantee: serves no data set that its owner has not set a budget for. Whoever connects may book, and without a budget a
    first booking would be the budget, however large.
    """
    schema = source.schema
    schema.require_confirmed()
    device = checked_device(request.options.device)
    randomness = Randomness(request.options.insecure_seed)
    header_of(
        message_of(Described(schema, randomness.mode)), []
    )  # a schema that is too long for a message is found now
    book = request.options.ledger_path
    if not may_exist(book):
        raise _no_budget(schema.name, book)
    with Ledger.open(book, create=False) as ledger:
        if not ledger.has_budget(schema.name):
            raise _no_budget(schema.name, book)
        with listening(path, door) as listener:
            server = server_of(source, ledger, randomness, device, listener, log, limits)
            server.start()
            try:
                yield Serving(ledger, server)
            finally:
                server.stop(0.0)


def _no_budget(dataset: str, ledger: Path) -> BudgetRefused:
    return BudgetRefused(
        f"Nobody has set a budget for '{dataset}' in the ledger {shown(ledger)}, so whoever connects could spend any. How much "
        "may be spent is the data owner's decision; say it first, then serve.",
        on_ledger(budget_command(dataset, 1.0, 1e-5), ledger),
    )


def server_of(
    source: PrivateSource,
    ledger: Ledger,
    randomness: Randomness,
    device: Any,
    listener: Any,
    log: Log,
    limits: Limits = DEFAULT,
) -> VaultServer:
    """The parts, joined: a vault for each grant over shared records, and the owner's key for what was booked."""
    records = SharedRecords(source, lambda error: log(f"the records cannot be read: {described(error)}"))
    key = KeyFile.beside(ledger.file.home)

    def open_vault() -> Vault:
        return LocalVault(records, ledger, randomness, device)

    def sign(vault: Vault, grant: Grant, stated: Mapping[str, Any]) -> Mapping[str, str]:
        return sign_booked(vault, grant, stated, key)

    return VaultServer(Counter(open_vault, sign), listener, log, limits)
