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
from limbeck.errors import BadInput, DataNotFound, DataUnreadable, LedgerFault, OutOfMemory, OutputFault, RunConflict
from limbeck.methods import Method, TrainedModel, method_named, settings_of
from limbeck.model import read_model
from limbeck.plan import Plan, draw_up
from limbeck.progress import Reporter
from limbeck.release import ReleaseWriter
from limbeck.run import (
    SECONDS_BETWEEN_CHECKPOINTS,
    STATE,
    RunRecord,
    carry_out,
    computing_with,
    held,
    is_staged,
    load_plan,
    new_folder,
    new_grant_id,
    put_in_place,
    resume_command,
)
from limbeck.schema import Schema
from limbeck.vault.api import Grant
from limbeck.vault.ledger import Ledger, default_path
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
    device, start = checked_device(request.device), request.start_model()
    if isinstance(source, DataSource):
        source.prepare()
    with Ledger.open(request.ledger_path) as ledger, new_folder(out) as made:
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
            return _finish(out, vault, grant, ledger, reporter, device, checkpoint_seconds, start)
        except Exception:
            if grant is not None:
                if any(ledger.drawn(grant.id).values()):
                    raise  # it is spent, and the run can be resumed
                ledger.void(grant.id)
            shutil.rmtree(made, ignore_errors=True)
            raise


def resume(
    out: Path, reporter: Reporter, ledger_path: Path | None = None, source: PrivateSource | None = None
) -> Outcome:
    """Take up an interrupted run: replay its stored answers, pay nothing, end in the same release."""
    began = time.monotonic()
    with held(out):
        record = RunRecord.read(out)
        plan, request = load_plan(record), _request_of(record, out)
        with Ledger.open(ledger_path or request.ledger_path) as ledger:
            if is_staged(out):
                ledger.finish(record.grant)
                put_in_place(out)
                return _outcome(out, plan, Randomness(request.insecure_seed), began)
            device, start = checked_device(request.device), request.start_model()
            source = source or request.source()
            if source.schema != Schema.from_dict(record.schema):
                raise RunConflict(
                    f"The schema of '{plan.dataset}' is not the one that the run in {out} was started with; "
                    "put the first one back to resume it, or start a new run in another folder."
                )
            vault = LocalVault(source, ledger, Randomness(request.insecure_seed), device)
            grant = _take_up(out, vault, record, ledger)
            with computing_with(record.threads):
                return _finish(out, vault, grant, ledger, reporter, device, SECONDS_BETWEEN_CHECKPOINTS, start)


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
    )
    try:
        carry_out(folder, vault, grant, writer.write, reporter, device, checkpoint_seconds, start)
    except (OutputFault, LedgerFault, DataNotFound, DataUnreadable, OutOfMemory) as error:
        error.next_command = error.next_command or resume_command(folder)
        raise
    return _outcome(folder, grant.plan, vault.randomness, began)


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


def _request_of(record: RunRecord, out: Path) -> Request:
    try:
        return Request(**record.request)
    except TypeError:
        raise RunConflict(f"{out / STATE / 'run.json'} does not fit this version of Limbeck.") from None
