"""Take up an interrupted run: replay its stored answers, pay nothing, end in the same release."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

from limbeck.errors import RunConflict
from limbeck.progress import Reporter
from limbeck.release.destination import RUN_STATE
from limbeck.release.staged import fault_of
from limbeck.runs.condense import Outcome, finish, outcome_of
from limbeck.runs.distil import is_distillation, take_up
from limbeck.runs.execution import checked_device, computing_with
from limbeck.runs.folder import held, is_staged, put_in_place, staging
from limbeck.runs.premises import ReopenPremises, reopened
from limbeck.runs.ranks import team_of
from limbeck.runs.record import RunRecord, new_grant_id
from limbeck.vault.api import Grant, Vault
from limbeck.vault.sharded.group import Group
from limbeck.vault.source import PrivateSource


def resume(
    out: Path,
    reporter: Reporter,
    ledger_path: Path | None = None,
    source: PrivateSource | None = None,
    vault_path: Path | None = None,
    group: Group | None = None,
    reopen: ReopenPremises = reopened,
) -> Outcome:
    """Go on with the run in `out`.

    `ledger_path`, `vault_path`: if the ledger, or the socket of its vault, was moved. `source`: records in memory, given again.
    `group`: the ranks that are there now, as many as you like. `reopen`: where its vault stands.

    Guarantee: the same plan is paid once, whenever the run was stopped; a release that is complete needs no record.
    """
    if is_distillation(out):
        return take_up(out, reporter)
    began = time.monotonic()
    with held(out):
        record = RunRecord.read(out)
        record.require_runnable(out)
        with reopen(out, record, ledger_path, vault_path) as premises:
            if is_staged(out) and _is_whole(out, record, premises.vault, reporter):
                premises.vault.close(Grant(record.grant, record.plan))
                put_in_place(out)
                return outcome_of(out, record.plan, record.schema.unit, premises.vault.randomness, began)
            options = record.request.options
            device, start = checked_device(options.device), options.start_model()
            vault = premises.with_records(record, source, device, group)
            if vault.describe() != record.schema:
                raise RunConflict(
                    f"The schema of '{record.plan.dataset}' is not the one that the run in {out} was started with; "
                    "put the first one back to resume it, or start a new run in another folder."
                )
            grant = _take_up(out, vault, record)
            with computing_with(record.threads):
                return finish(out, vault, grant, premises, reporter, device, start=start, team=team_of(group))


def _is_whole(out: Path, record: RunRecord, vault: Vault, reporter: Reporter) -> bool:
    """Whether the staged release can be put in place. A damaged one is removed if it can be made again from what is stored.

    Guarantee: a damaged release is never put in place.
    """
    fault = fault_of(out, out / RUN_STATE, record.plan)
    if fault is None:
        return True
    moved = [entry for entry in out.iterdir() if entry.name != RUN_STATE]
    if vault.state(record.grant) != "open" or moved:
        raise RunConflict(
            f"The release of the run in {out} is damaged ({fault}), and the answers that it was made from are gone or it was "
            "put in place in part; what the run has booked stays booked. Restore the folder from a backup, or start a new run "
            "in another folder."
        )
    reporter.say(
        f"The release that was staged in {out} is damaged ({fault}); it is made again from the stored answers."
    )
    shutil.rmtree(staging(out))
    return False


def _take_up(out: Path, vault: Vault, record: RunRecord) -> Grant:
    """The grant of an interrupted run. It is booked now if the crash came before that, and paid once."""
    if vault.state(record.grant) == "void":
        # An earlier attempt could not read the records, and gave the booking back because nothing had been answered.
        record = replace(record, grant=new_grant_id(), booked=False)
        record.write(out)
    grant = vault.take_up(record.grant, record.plan, record.booked)
    replace(record, booked=True).write(out)
    return grant
