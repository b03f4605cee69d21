"""From a data set to a release: the one place where readers, ledger, vault, method and release meet."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from limbeck.data import DataSource, open_source
from limbeck.errors import BadInput, LimbeckError, RunConflict
from limbeck.methods import Method, method_named, settings_of
from limbeck.plan import Plan, draw_up
from limbeck.progress import Reporter
from limbeck.release import ReleaseWriter
from limbeck.run import STATE, RunRecord, carry_out, load_plan, new_folder, new_grant_id
from limbeck.schema import Schema
from limbeck.vault.ledger import Ledger, default_path
from limbeck.vault.local import LocalVault, PrivateSource
from limbeck.vault.noise import Randomness


@dataclass(frozen=True, kw_only=True)
class Request:
    """Where the data is and how the run behaves; all of the owner's command line that is not the plan."""

    data: str
    schema: str | None = None
    label: str | None = None
    root: str | None = None
    ledger: str | None = None
    insecure_seed: int | None = None
    device: str = "cpu"

    def source(self, split: str = "train") -> DataSource:
        return open_source(
            self.data,
            split=split,
            schema_path=Path(self.schema) if self.schema else None,
            label=self.label,
            root=Path(self.root) if self.root else None,
        )

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
    request: Request, plan: Plan, source: PrivateSource, out: Path, reporter: Reporter, checkpoint_seconds: float = 30.0
) -> Outcome:
    """Book the plan, run the method and write the release to `out`.

    Guarantee: a failure before the first answer leaves budget and output folder as they were.
    """
    device = checked_device(request.device)
    with Ledger.open(request.ledger_path) as ledger:
        folder = new_folder(out)
        record = RunRecord(grant=new_grant_id(), plan=plan.to_dict(), request=_absolute(request))
        try:
            record.write(folder)
            vault = LocalVault(source, ledger, Randomness(request.insecure_seed), device)
            grant = vault.grant(plan, record.grant)
            vault.open_records(grant)
        except LimbeckError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return _finish(folder, vault, record, plan, ledger, reporter, device, checkpoint_seconds)


def resume(out: Path, reporter: Reporter, ledger_path: Path | None = None) -> Outcome:
    """Take up an interrupted run: replay its stored answers, pay nothing, end in the same release."""
    record = RunRecord.read(out)
    plan = load_plan(record)
    try:
        request = Request(**record.request)
    except TypeError:
        raise RunConflict(f"{out / STATE / 'run.json'} does not fit this version of Limbeck.") from None
    device = checked_device(request.device)
    source = request.source()
    with Ledger.open(ledger_path or request.ledger_path) as ledger:
        vault = LocalVault(source, ledger, Randomness(request.insecure_seed), device)
        return _finish(out, vault, record, plan, ledger, reporter, device, 30.0)


def _finish(
    folder: Path,
    vault: LocalVault,
    record: RunRecord,
    plan: Plan,
    ledger: Ledger,
    reporter: Reporter,
    device: torch.device,
    checkpoint_seconds: float,
) -> Outcome:
    began = time.monotonic()
    grant = vault.take_up(record.grant, plan)
    writer = ReleaseWriter(
        plan=plan, schema=vault.describe(), randomness=vault.randomness, key=ledger.path.with_name("signing-key")
    )
    carry_out(folder, vault, grant, writer.write, reporter, device, checkpoint_seconds)
    return Outcome(
        release=folder,
        plan=plan,
        seconds=round(time.monotonic() - began, 3),
        releasable=plan.is_private and vault.randomness.releasable,
    )


def checked_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
        return device
    except (RuntimeError, AssertionError):
        raise BadInput(f"The device '{name}' is not available here; use --device cpu.") from None


def _absolute(request: Request) -> dict[str, Any]:
    """The request with full paths, so that a run can be resumed from another folder."""
    values = asdict(request)
    for name in ("schema", "root"):
        if values[name]:
            values[name] = str(Path(values[name]).absolute())
    values["ledger"] = str(request.ledger_path.absolute())
    if Path(request.data).exists():
        values["data"] = str(Path(request.data).absolute())
    return values
