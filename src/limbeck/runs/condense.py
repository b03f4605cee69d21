"""From a data set to a release: the one place where readers, ledger, vault, method and release meet."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from limbeck.data import DataSource, open_source
from limbeck.data.named import NAMED
from limbeck.data.parts import part_of
from limbeck.data.source import split_suffix
from limbeck.errors import (
    BadInput,
    BudgetRefused,
    DataNotFound,
    DataUnreadable,
    LedgerFault,
    OutOfMemory,
    OutputFault,
    RunConflict,
)
from limbeck.methods import Method, Result, TrainedModel, method_named, settings_of
from limbeck.privacy.plan import Plan, draw_up
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.release.certificate import Certificate
from limbeck.release.destination import RUN_STATE as STATE
from limbeck.release.destination import resume_command
from limbeck.release.model import read_model
from limbeck.release.staged import fault_of
from limbeck.release.writer import ReleaseWriter
from limbeck.runs.folder import (
    SECONDS_BETWEEN_CHECKPOINTS,
    RunRecord,
    carry_out,
    computing_with,
    damaged_record,
    held,
    is_staged,
    load_plan,
    new_folder,
    new_grant_id,
    put_in_place,
    require_unused,
)
from limbeck.runs.run_file import check_request_values
from limbeck.vault.api import Grant
from limbeck.vault.ledger import Ledger, default_path
from limbeck.vault.ledger.faults import newly_made
from limbeck.vault.ledger.sums import budget_command
from limbeck.vault.local import LocalVault, PrivateSource
from limbeck.vault.noise import Randomness


@dataclass(frozen=True, kw_only=True)
class Request:
    """Where the data is and how the run behaves; all of the owner's command line that is not the plan.

    `data` is None for records in the memory of a Python program. `part` takes some of the data's classes only, written
    like "stage-1:0,1" (name and places of the classes), and "stage-1:0,1 of all" keeps the others as classes without
    records. `start` is the folder of a released model that the method is to go on from.
    """

    data: str | None
    schema: str | None = None
    label: str | None = None
    root: str | None = None
    ledger: str | None = None
    insecure_seed: int | None = None
    device: str = "cpu"
    part: str | None = None
    start: str | None = None

    def source(self, split: str = "train") -> DataSource:
        if self.data is None:
            raise RunConflict(
                "This run was started in Python with records in memory; call Condenser.fit again with the same out."
            )
        whole = open_source(
            self.data,
            split=split,
            schema_path=Path(self.schema) if self.schema else None,
            label=self.label,
            root=Path(self.root) if self.root else None,
        )
        return whole if self.part is None else part_of(whole, self.part)

    def start_model(self) -> TrainedModel | None:
        return None if self.start is None else read_model(Path(self.start)).model

    @property
    def ledger_path(self) -> Path:
        return Path(self.ledger) if self.ledger else default_path()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    release: Path
    plan: Plan
    seconds: float
    releasable: bool
    ledger_created: bool = False


def make_plan(schema: Schema, method: Method, epsilon: float | None, delta: float) -> Plan:
    """Price a method for a data set. Reads no record."""
    schema.require_confirmed()
    method = method.resolved(schema, epsilon)
    method.check(schema)
    if not method.private and epsilon is not None and not math.isinf(epsilon):
        raise BadInput(
            f"Method '{method.name}' is not private, so epsilon={epsilon:g} cannot be kept; give --epsilon inf."
        )
    return draw_up(
        schema=schema,
        method=method.name,
        settings=settings_of(method),
        queries_at=lambda noise: method.queries(schema, noise),
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=method.fixed_noise,
    )


def plan_for(
    request: Request, method: str, settings: Mapping[str, Any], epsilon: float | None, delta: float
) -> tuple[Plan, DataSource]:
    source = request.source()
    return make_plan(source.schema, method_named(method, settings), epsilon, delta), source


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
    device, start = checked_device(request.device), request.start_model()
    if isinstance(source, DataSource):
        source.prepare()
    with _opened(request, plan, reporter) as ledger, new_folder(out) as made:
        record = RunRecord(
            grant=new_grant_id(), plan=plan.to_dict(), request=_absolute(request), schema=source.schema.to_dict()
        )
        vault = LocalVault(source, ledger, Randomness(request.insecure_seed), device)
        grant = None
        try:
            record.write(out)
            grant = vault.grant(plan, record.grant)
            vault.open_records(grant)
            replace(record, booked=True).write(out)
            outcome = _finish(out, vault, grant, ledger, reporter, device, checkpoint_seconds, start)
            return replace(outcome, ledger_created=ledger.created)
        except Exception:
            if grant is not None:
                if any(ledger.drawn(grant.id).values()):
                    raise  # it is spent, and the run can be resumed
                ledger.void(grant.id)
            shutil.rmtree(made, ignore_errors=True)
            raise


def _opened(request: Request, plan: Plan, reporter: Reporter) -> Ledger:
    """The ledger for a new booking. Where there is none it is made, and that is said: it may be a budget too many."""
    ledger = Ledger.open(request.ledger_path, create=request.part is None)
    if ledger.created:
        reporter.say(newly_made(ledger.path))
    try:
        _require_set_budget(ledger, request, plan)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _require_set_budget(ledger: Ledger, request: Request, plan: Plan) -> None:
    """A part has an account of its own beside that of the whole, so only its owner opens it, never a first booking.

    Guarantee: what is spent of the whole cannot be spent once more by taking it apart, unless the owner allowed it.
    """
    if request.part is not None and not ledger.has_budget(plan.dataset):
        raise BudgetRefused(
            f"{plan.dataset!r} is a part of a data set, and nobody has set a budget for it. Nothing was booked. A budget "
            "beside that of the whole is the data owner's decision.",
            budget_command(plan.dataset, plan.price.epsilon, plan.price.delta),
        )


def resume(
    out: Path, reporter: Reporter, ledger_path: Path | None = None, source: PrivateSource | None = None
) -> Outcome:
    """Take up an interrupted run: replay its stored answers, pay nothing, end in the same release."""
    began = time.monotonic()
    with held(out):
        record = RunRecord.read(out)
        plan, request, schema = _understood(record, out)
        with _reopened(out, ledger_path or request.ledger_path) as ledger:
            if is_staged(out) and _is_whole(out, plan, ledger, record.grant, reporter):
                ledger.finish(record.grant)
                put_in_place(out)
                return _outcome(out, plan, Randomness(request.insecure_seed), began)
            device, start = checked_device(request.device), request.start_model()
            source = source or request.source()
            if source.schema != schema:
                raise RunConflict(
                    f"The schema of '{plan.dataset}' is not the one that the run in {out} was started with; "
                    "put the first one back to resume it, or start a new run in another folder."
                )
            vault = LocalVault(source, ledger, Randomness(request.insecure_seed), device)
            _require_set_budget(ledger, request, plan)
            grant = _take_up(out, vault, record, ledger)
            with computing_with(record.threads):
                return _finish(out, vault, grant, ledger, reporter, device, SECONDS_BETWEEN_CHECKPOINTS, start)


def _reopened(out: Path, path: Path) -> Ledger:
    """A run that is resumed has its ledger; a new one would know nothing of what is spent."""
    try:
        return Ledger.open(path, create=False)
    except LedgerFault as error:
        if not path.exists():
            error.next_command = f"{resume_command(out)} --ledger FILE"
        raise


def _is_whole(out: Path, plan: Plan, ledger: Ledger, grant: str, reporter: Reporter) -> bool:
    """Whether the staged release can be put in place. A damaged one is removed if it can be made again from what is stored.

    Guarantee: a damaged release is never put in place.
    """
    fault = fault_of(out, out / STATE, plan)
    if fault is None:
        return True
    moved = [entry for entry in out.iterdir() if entry.name != STATE]
    if ledger.state(grant) != "open" or moved:
        raise RunConflict(
            f"The release of the run in {out} is damaged ({fault}), and the answers that it was made from are gone or it was "
            "put in place in part; what the run has booked stays booked. Restore the folder from a backup, or start a new run "
            "in another folder."
        )
    reporter.say(
        f"The release that was staged in {out} is damaged ({fault}); it is made again from the stored answers."
    )
    shutil.rmtree(out / STATE / "release")
    return False


def _take_up(out: Path, vault: LocalVault, record: RunRecord, ledger: Ledger) -> Grant:
    """The grant of an interrupted run. It is booked now if the crash came before that, and paid once."""
    if ledger.state(record.grant) == "void":
        # An earlier attempt could not read the records, and gave the booking back because nothing had been answered.
        record = replace(record, grant=new_grant_id(), booked=False)
        record.write(out)
    if record.booked:
        ledger.grant(record.grant)  # says so if this ledger has never seen it
    grant = vault.take_up(record.grant, load_plan(record))
    replace(record, booked=True).write(out)
    return grant


def _finish(
    folder: Path,
    vault: LocalVault,
    grant: Grant,
    ledger: Ledger,
    reporter: Reporter,
    device: torch.device,
    checkpoint_seconds: float,
    start: TrainedModel | None,
) -> Outcome:
    began = time.monotonic()
    writer = ReleaseWriter(
        plan=grant.plan,
        schema=vault.describe(),
        randomness=vault.randomness,
        key=ledger.path.with_name("signing-key"),
        drawn=lambda: ledger.drawn(grant.id),
        pages=_pages,
    )
    try:
        carry_out(folder, vault, grant, writer.write, reporter, device, checkpoint_seconds, start)
    except (OutputFault, LedgerFault, DataNotFound, DataUnreadable, OutOfMemory) as error:
        error.next_command = error.next_command or resume_command(folder)
        raise
    return _outcome(folder, grant.plan, vault.randomness, began)


def _pages(certificate: Certificate, schema: Schema, result: Result) -> Mapping[str, bytes]:
    from limbeck.report.pages import (
        release_pages,  # plotting and templates take a second, which asking need not wait for
    )

    return release_pages(certificate, schema, result)


def _outcome(folder: Path, plan: Plan, randomness: Randomness, began: float) -> Outcome:
    return Outcome(
        release=folder,
        plan=plan,
        seconds=round(time.monotonic() - began, 3),
        releasable=plan.is_private and randomness.releasable,
    )


def checked_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
        return device
    except (RuntimeError, AssertionError):
        raise BadInput(f"The device '{name}' is not available here; use --device cpu.") from None


def _absolute(request: Request) -> dict[str, Any]:
    """The request with full paths, so that a run can be resumed from another folder."""
    values = asdict(request)
    for name in ("schema", "root", "start"):
        if values[name]:
            values[name] = str(Path(values[name]).absolute())
    values["ledger"] = str(request.ledger_path.absolute())
    if request.data is not None and split_suffix(request.data)[0] not in NAMED:
        values["data"] = str(Path(request.data).expanduser().absolute())
    return values


def _understood(record: RunRecord, out: Path) -> tuple[Plan, Request, Schema]:
    """The values of a run. Whatever this version would not have written is refused before anything is opened."""
    try:
        check_request_values(record.request)
        plan, request, schema = load_plan(record), Request(**record.request), Schema.from_dict(record.schema)
        method_named(plan.method, plan.settings)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError):
        raise damaged_record(out) from None
    return plan, request, schema
