"""From a booked plan to a release: the one file where readers, ledger, vault, method and release meet."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from limbeck.data import DataSource
from limbeck.errors import (
    DataNotFound,
    DataUnreadable,
    LedgerFault,
    OutOfMemory,
    OutputFault,
    RankLost,
    VaultUnreachable,
)
from limbeck.methods import Result, TrainedModel
from limbeck.methods.team import Team
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.privacy.unit import UNIT_RECORD
from limbeck.progress import Reporter
from limbeck.release.certificate import Certificate
from limbeck.release.destination import resume_command
from limbeck.release.formats import Sizes
from limbeck.release.imprint import Imprint, imprint_of
from limbeck.release.writer import ReleaseWriter
from limbeck.runs.execution import carry_out, checked_device
from limbeck.runs.folder import new_folder, require_unused
from limbeck.runs.log import SECONDS_BETWEEN_CHECKPOINTS
from limbeck.runs.premises import OpenPremises, Premises, opened
from limbeck.runs.ranks import team_of
from limbeck.runs.record import RunRecord, new_grant_id
from limbeck.runs.request import Request
from limbeck.vault.api import Grant, Randomness, Vault
from limbeck.vault.sharded.group import Group
from limbeck.vault.source import PrivateSource


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended. `ledger_created`: its booking made the ledger, which may be one too many. `unit`: as the schema says."""

    release: Path
    plan: Plan
    seconds: float
    releasable: bool
    ledger_created: bool = False
    unit: str = UNIT_RECORD

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": str(self.release),
            "dataset": self.plan.dataset,
            "method": self.plan.method,
            "epsilon": finite_or_word(self.plan.price.epsilon),
            "delta": self.plan.price.delta,
            "adjacency": self.plan.price.adjacency,
            "unit": self.unit,
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
    group: Group | None = None,
    open_premises: OpenPremises | None = None,
) -> Outcome:
    """Book the plan, run the method and write the release to `out`.

    `group`: the ranks of the run, where there are several. `open_premises`: where the vault stands; None: as the request says.

    Guarantee: a failure before the first answer leaves budget and output folder as they were.
    """
    require_unused(out)
    options = request.options
    device, start = checked_device(options.device), options.start_model()
    if isinstance(source, DataSource):
        source.prepare()
    open_ours = open_premises or partial(opened, group=group)
    with open_ours(request, plan, source, device, reporter) as premises, new_folder(out) as made:
        record = RunRecord(grant=new_grant_id(), plan=plan, request=request, schema=source.schema)
        vault, grant = premises.vault, None
        try:
            record.write(out)
            grant = vault.grant(plan, record.grant)
            vault.open_records(grant)
            replace(record, booked=True).write(out)
            team = team_of(group)
            outcome = finish(out, vault, grant, premises, reporter, device, checkpoint_seconds, start, team)
            return replace(outcome, ledger_created=premises.ledger_created)
        except VaultUnreachable as error:
            # Nobody knows how far it got, so the folder stays: a run that is resumed books, or finds its booking.
            error.next_command = error.next_command or resume_command(out)
            raise
        except Exception as error:
            # What is answered is spent, and such a run can be resumed. Otherwise it is as if it had never been.
            if grant is None or vault.give_back(grant):
                shutil.rmtree(made, ignore_errors=True)
                if isinstance(error, RankLost):
                    error.next_command = None  # there is nothing left to resume
            raise


def finish(
    folder: Path,
    vault: Vault,
    grant: Grant,
    premises: Premises,
    reporter: Reporter,
    device: torch.device,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    start: TrainedModel | None = None,
    team: Team | None = None,
) -> Outcome:
    """From a grant to the release in `folder`, signed by whoever holds the owner's key, as the premises know."""
    began = time.monotonic()
    signer = premises.signer(grant)
    writer = ReleaseWriter(
        plan=grant.plan,
        schema=vault.describe(),
        randomness=vault.randomness,
        signer=signer,
        drawn=lambda: vault.drawn(grant),
        pages=partial(pages_of, imprint_of(signer)),
        endorser=premises.endorser(grant),
    )
    try:
        carry_out(folder, vault, grant, writer.write, reporter, device, checkpoint_seconds, start, team)
    except (OutputFault, LedgerFault, DataNotFound, DataUnreadable, OutOfMemory, RankLost) as error:
        error.next_command = error.next_command or resume_command(folder)
        raise
    return outcome_of(folder, grant.plan, vault.describe().unit, vault.randomness, began)


def pages_of(
    imprint: Imprint | None, certificate: Certificate, schema: Schema, result: Result, sizes: Sizes | None
) -> Mapping[str, bytes]:
    from limbeck.report.pages import (
        release_pages,  # plotting and templates take a second, which asking need not wait for
    )

    return release_pages(certificate, schema, result, sizes, imprint)


def outcome_of(folder: Path, plan: Plan, unit: str, randomness: Randomness, began: float) -> Outcome:
    return Outcome(
        release=folder,
        plan=plan,
        seconds=round(time.monotonic() - began, 3),
        releasable=plan.is_private and randomness.releasable,
        unit=unit,
    )
