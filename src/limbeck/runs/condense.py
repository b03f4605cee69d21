"""From a booked plan to a release: the one file where readers, ledger, vault, method and release meet."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from limbeck.data import DataSource
from limbeck.errors import BudgetRefused, DataNotFound, DataUnreadable, LedgerFault, OutOfMemory, OutputFault
from limbeck.methods import Result, TrainedModel
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.release.certificate import Certificate
from limbeck.release.destination import resume_command
from limbeck.release.writer import ReleaseWriter
from limbeck.runs.execution import carry_out, checked_device
from limbeck.runs.folder import new_folder, require_unused
from limbeck.runs.log import SECONDS_BETWEEN_CHECKPOINTS
from limbeck.runs.record import RunRecord, new_grant_id
from limbeck.runs.request import Request
from limbeck.vault.api import Grant, Randomness, Vault
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.faults import newly_made
from limbeck.vault.ledger.sums import budget_command
from limbeck.vault.local import LocalVault
from limbeck.vault.source import PrivateSource


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended. `ledger_created`: its booking made the ledger, which may be one too many."""

    release: Path
    plan: Plan
    seconds: float
    releasable: bool
    ledger_created: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": str(self.release),
            "dataset": self.plan.dataset,
            "method": self.plan.method,
            "epsilon": finite_or_word(self.plan.price.epsilon),
            "delta": self.plan.price.delta,
            "adjacency": self.plan.price.adjacency,
            "releasable": self.releasable,
            "seconds": self.seconds,
            "ledger_created": self.ledger_created,
        }


def condense(
    request: Request,
    plan: Plan,
    source: PrivateSource,
    out: Path,
    reporter: Reporter,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
) -> Outcome:
    """Book the plan, run the method and write the release to `out`.

    Guarantee: a failure before the first answer leaves budget and output folder as they were.
    """
    require_unused(out)
    options = request.options
    device, start = checked_device(options.device), options.start_model()
    if isinstance(source, DataSource):
        source.prepare()
    with _opened(request, plan, reporter) as ledger, new_folder(out) as made:
        record = RunRecord(grant=new_grant_id(), plan=plan, request=request, schema=source.schema)
        vault = LocalVault(source, ledger, Randomness(options.insecure_seed), device)
        grant = None
        try:
            record.write(out)
            grant = vault.grant(plan, record.grant)
            vault.open_records(grant)
            replace(record, booked=True).write(out)
            outcome = finish(out, vault, grant, ledger.path, reporter, device, checkpoint_seconds, start)
            return replace(outcome, ledger_created=ledger.created)
        except Exception:
            # What is answered is spent, and such a run can be resumed. Otherwise it is as if it had never been.
            if grant is None or vault.give_back(grant):
                shutil.rmtree(made, ignore_errors=True)
            raise


def _opened(request: Request, plan: Plan, reporter: Reporter) -> Ledger:
    """The ledger for a new booking. Where there is none it is made, and that is said: it may be a budget too many."""
    ledger = Ledger.open(request.options.ledger_path, create=request.data.part is None)
    if ledger.created:
        reporter.say(newly_made(ledger.path))
    try:
        require_set_budget(ledger, request, plan)
    except BaseException:
        ledger.close()
        raise
    return ledger


def require_set_budget(ledger: Ledger, request: Request, plan: Plan) -> None:
    """A part has an account of its own beside that of the whole, so only its owner opens it, never a first booking.

    Guarantee: what is spent of the whole cannot be spent once more by taking it apart, unless the owner allowed it.
    """
    if request.data.part is not None and not ledger.has_budget(plan.dataset):
        raise BudgetRefused(
            f"{plan.dataset!r} is a part of a data set, and nobody has set a budget for it. Nothing was booked. A budget "
            "beside that of the whole is the data owner's decision.",
            budget_command(plan.dataset, plan.price.epsilon, plan.price.delta),
        )


def finish(
    folder: Path,
    vault: Vault,
    grant: Grant,
    ledger: Path,
    reporter: Reporter,
    device: torch.device,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    start: TrainedModel | None = None,
) -> Outcome:
    """From a grant to the release in `folder`. The owner's signing key lies beside the ledger."""
    began = time.monotonic()
    writer = ReleaseWriter(
        plan=grant.plan,
        schema=vault.describe(),
        randomness=vault.randomness,
        key=ledger.with_name("signing-key"),
        drawn=lambda: vault.drawn(grant),
        pages=_pages,
    )
    try:
        carry_out(folder, vault, grant, writer.write, reporter, device, checkpoint_seconds, start)
    except (OutputFault, LedgerFault, DataNotFound, DataUnreadable, OutOfMemory) as error:
        error.next_command = error.next_command or resume_command(folder)
        raise
    return outcome_of(folder, grant.plan, vault.randomness, began)


def _pages(certificate: Certificate, schema: Schema, result: Result) -> Mapping[str, bytes]:
    from limbeck.report.pages import (
        release_pages,  # plotting and templates take a second, which asking need not wait for
    )

    return release_pages(certificate, schema, result)


def outcome_of(folder: Path, plan: Plan, randomness: Randomness, began: float) -> Outcome:
    return Outcome(
        release=folder,
        plan=plan,
        seconds=round(time.monotonic() - began, 3),
        releasable=plan.is_private and randomness.releasable,
    )
