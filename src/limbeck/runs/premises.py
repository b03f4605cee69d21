"""Where a run's vault stands: in this process, with the owner's ledger and key at hand, or in another one behind a socket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from limbeck.data import Records
from limbeck.data.fetch import Agree
from limbeck.errors import BadInput, BudgetRefused, LedgerFault, RunConflict, WallBreach
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.release.destination import resume_command
from limbeck.release.signature import ENTRY, KeyFile, Signature, Signer, check_signature
from limbeck.runs.record import RunRecord
from limbeck.runs.request import Request
from limbeck.vault.api import Grant, Randomness, Vault
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import may_exist, shown
from limbeck.vault.ledger.commands import naming
from limbeck.vault.ledger.faults import newly_made
from limbeck.vault.local import LocalVault
from limbeck.vault.process.client import ProcessVault
from limbeck.vault.source import PrivateSource


@dataclass(frozen=True)
class Elsewhere:
    """Records that this process does not read: they are behind a socket, or nobody needs them any more."""

    schema: Schema

    def prepare(self, agree: Agree | None = None) -> None:
        """There is nothing to have at hand."""

    def load(self) -> Records:
        raise WallBreach("The records of this run are not read in this process.")


class Premises(Protocol):
    """A vault and what belongs to it. `ledger_created`: opening it made the ledger, which may be one too many."""

    @property
    def vault(self) -> Vault: ...

    @property
    def ledger_created(self) -> bool: ...

    def with_records(self, record: RunRecord, source: PrivateSource | None, device: torch.device) -> Vault:
        """The vault of a run that is resumed and needs its records; `source`: those in memory, given again."""
        ...

    def signer(self, grant: Grant) -> Signer: ...


@dataclass(frozen=True)
class Here:
    """The vault in this process, over the owner's ledger."""

    vault: Vault
    ledger: Ledger

    @property
    def ledger_created(self) -> bool:
        return self.ledger.created

    def with_records(self, record: RunRecord, source: PrivateSource | None, device: torch.device) -> Vault:
        request = record.request
        source = source or request.data.source()
        if source.schema == record.schema:
            require_known_part(self.ledger, request, record.plan)
        return LocalVault(source, self.ledger, Randomness(request.options.insecure_seed), device)

    def signer(self, grant: Grant) -> Signer:
        return KeyFile.beside(self.ledger.file.home)


@dataclass(frozen=True)
class There:
    """The vault of another process, which holds ledger and key as well."""

    vault: ProcessVault
    ledger_created: bool = False

    def with_records(self, record: RunRecord, source: PrivateSource | None, device: torch.device) -> Vault:
        return self.vault

    def signer(self, grant: Grant) -> Signer:
        return _VaultSigner(self.vault, grant)


@dataclass(frozen=True)
class _VaultSigner:
    vault: ProcessVault
    grant: Grant

    def sign(self, stated: Mapping[str, Any]) -> Signature:
        """Guarantee: the signature fits; a release that does not verify is not put in place and its grant not closed."""
        signature = self.vault.sign(self.grant, stated)
        check_signature({**stated, ENTRY: dict(signature)})
        return Signature.from_dict(signature)


@contextlib.contextmanager
def opened(
    request: Request, plan: Plan, source: PrivateSource, device: torch.device, reporter: Reporter
) -> Iterator[Premises]:
    """For a new booking. Where there is no ledger it is made, and that is said: it may be a budget too many."""
    if request.data.vault is not None:
        yield There(ProcessVault(request.data.vault))
        return
    path = request.options.ledger_path
    with naming(path), Ledger.open(path, create=request.data.part is None) as ledger:
        if ledger.created:
            reporter.say(newly_made(ledger.path))
        require_known_part(ledger, request, plan)
        yield Here(LocalVault(source, ledger, Randomness(request.options.insecure_seed), device), ledger)


@contextlib.contextmanager
def reopened(out: Path, record: RunRecord, ledger: Path | None, vault: Path | None) -> Iterator[Premises]:
    """For the run in `out`. A run that is resumed has its ledger; a new one would know nothing of what is spent."""
    socket, options = record.request.data.vault, record.request.options
    if socket is not None:
        if ledger is not None:
            raise BadInput(f"The run in {out} has its vault at {socket}, with the ledger; leave --ledger out.")
        yield There(ProcessVault(vault or socket))
        return
    if vault is not None:
        raise RunConflict(f"The run in {out} was begun with its records in reach, not with a vault's socket.")
    path = ledger or options.ledger_path
    try:
        book = Ledger.open(path, create=False)
    except LedgerFault as error:
        if not may_exist(path):
            error.next_command = f"{resume_command(out)} --ledger FILE"
        raise
    with naming(path), book:
        unread = LocalVault(Elsewhere(record.schema), book, Randomness(options.insecure_seed))
        yield Here(unread, book)


def require_known_part(ledger: Ledger, request: Request, plan: Plan) -> None:
    """A part is booked below the whole that it belongs to, so the ledger has to know that it is one.

    Guarantee: what is spent of the whole cannot be spent once more by taking it apart.
    """
    if request.data.part is None:
        return
    whole = request.data.whole().schema.name
    if ledger.is_part(whole):
        raise RunConflict(
            f"{whole!r} is the account of a part of another data set, and these records are not given as that part, so they "
            "cannot be taken apart under this name. Nothing was booked. Give the data set another name in its schema."
        )
    if not ledger.is_part(plan.dataset):
        raise BudgetRefused(
            f"{plan.dataset!r} is a part of a data set, and the ledger {shown(ledger.path)} knows no split that it belongs to. "
            "Nothing was booked. Declare the split with 'limbeck budget split' and start the run again on one of its parts."
        )
