"""A run: one method, one plan, one grant, one output folder. It can be killed at any moment and taken up again.

    OUT/.run/run.json                 what was asked; written before anything is booked
    OUT/.run/checkpoint.safetensors   the method's tensors at a step; made of answers only, so nothing private
    OUT/.run/release/                 the release while it is written
    OUT/...                           the release; .run is gone once it is complete

Order: run.json -> book -> read records -> answers and checkpoints -> release staged -> grant closed -> release in place.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from limbeck.data.writer import write_atomic
from limbeck.errors import OutputFault, RunConflict
from limbeck.methods import Method, SyntheticSet, method_named
from limbeck.plan import Plan
from limbeck.progress import Reporter
from limbeck.vault.api import Answer, Grant, Map
from limbeck.vault.local import LocalVault

FORMAT = 1
STATE = ".run"
SECONDS_BETWEEN_CHECKPOINTS = 30.0


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What a run needs to be taken up again. All of it is public or the owner's own command line."""

    grant: str
    plan: dict[str, Any]
    request: dict[str, Any]
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        write_atomic(folder / STATE / "run.json", json.dumps(asdict(self), indent=1, allow_nan=False).encode())

    @staticmethod
    def read(folder: Path) -> RunRecord:
        path = folder / STATE / "run.json"
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            record = RunRecord(**values)
        except FileNotFoundError:
            raise RunConflict(
                f"{folder} holds no interrupted run (there is no {STATE}/run.json in it).", "limbeck condense --help"
            ) from None
        except (OSError, ValueError, TypeError):
            raise RunConflict(
                f"{path} is damaged; the run cannot be taken up again. Its budget stays booked."
            ) from None
        if record.format != FORMAT:
            raise RunConflict(f"{path} has format {record.format}; this version of Limbeck reads format {FORMAT}.")
        return record


def new_folder(out: Path) -> Path:
    """Make the run's folder; never write into one that exists and holds anything."""
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            unfinished = (out / STATE / "run.json").exists()
            raise RunConflict(
                f"The output folder {out} exists already and is not empty"
                + (": it holds an unfinished run." if unfinished else "."),
                f"limbeck resume {out}" if unfinished else None,
            )
        (out / STATE).mkdir(parents=True)
    except OSError as error:
        raise OutputFault(f"The output folder {out} cannot be made: {error.strerror}.") from None
    return out


def new_grant_id() -> str:
    return uuid.uuid4().hex


class RunLog:
    """The logbook of one run: checkpoints to the run folder, progress to the reporter."""

    def __init__(self, folder: Path, vault: LocalVault, grant: Grant, reporter: Reporter, every: float) -> None:
        self._path = folder / STATE / "checkpoint.safetensors"
        self._vault, self._grant, self._reporter, self._every = vault, grant, reporter, every

    def steps(self, total: int, state: dict[str, Tensor], answers: str) -> Iterator[int]:
        first = self._restore(state)
        self._reporter.start(
            f"{self._grant.plan.method}, epsilon booked {self._grant.plan.price.epsilon:g}", total, first
        )
        saved = time.monotonic()
        for step in range(first, total):
            yield step
            self._reporter.advance(step + 1)
            if time.monotonic() - saved >= self._every or step + 1 == total:
                self._save(step + 1, state, answers)
                saved = time.monotonic()

    def _restore(self, state: dict[str, Tensor]) -> int:
        if not self._path.exists():
            return 0
        try:
            tensors = load_file(self._path)
        except (SafetensorError, OSError):
            raise RunConflict(
                f"The checkpoint {self._path} is damaged; delete it to start again from the stored answers."
            ) from None
        step = tensors.pop("step")
        if {name: tensor.shape for name, tensor in tensors.items()} != {
            name: tensor.shape for name, tensor in state.items()
        }:
            raise RunConflict(f"The checkpoint {self._path} belongs to another configuration.")
        for name, tensor in tensors.items():
            state[name].copy_(tensor)
        return int(step)

    def _save(self, step: int, state: dict[str, Tensor], answers: str) -> None:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        temporary = self._path.with_suffix(".new")
        try:
            save_file({**tensors, "step": torch.tensor(step)}, temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except (OSError, SafetensorError) as error:
            raise OutputFault(
                f"The checkpoint could not be written ({error}); free some space, then resume the run."
            ) from None
        # Only after the checkpoint is safe on disk may the answers before it go.
        self._vault.forget(self._grant, answers, step)


def carry_out(
    folder: Path,
    vault: LocalVault,
    grant: Grant,
    write_release: Callable[[Path, SyntheticSet], None],
    reporter: Reporter,
    device: torch.device,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
) -> None:
    """Run the method of a booked grant to its release, from wherever an earlier attempt got to."""
    staged = folder / STATE / "release"
    if not (staged / "certificate.json").exists():
        vault.open_records(grant)
        shutil.rmtree(staged, ignore_errors=True)
        method = method_named(grant.plan.method, grant.plan.settings)
        result = run_method(method, folder, vault, grant, reporter, device, checkpoint_seconds)
        staged.mkdir()
        write_release(staged, result)
    vault.close(grant)
    put_in_place(folder)


def run_method(
    method: Method,
    folder: Path,
    vault: LocalVault,
    grant: Grant,
    reporter: Reporter,
    device: torch.device,
    every: float,
) -> SyntheticSet:
    def ask(label: str, index: int, mapping: Map) -> Answer:
        return vault.ask(grant, label, index, mapping)

    return method.run(vault.describe(), ask, RunLog(folder, vault, grant, reporter, every), device)


def put_in_place(folder: Path) -> None:
    """Move the staged release to the output folder, its certificate last: a folder with a certificate is complete."""
    staged = folder / STATE / "release"
    try:
        names = sorted((path.name for path in staged.iterdir()), key=lambda name: name == "certificate.json")
        for name in names:
            target = folder / name
            if target.is_dir():
                shutil.rmtree(target)
            (staged / name).replace(target)
        shutil.rmtree(folder / STATE)
    except OSError as error:
        raise OutputFault(
            f"The release could not be put into {folder}: {error.strerror}.", f"limbeck resume {folder}"
        ) from None


def load_plan(record: RunRecord) -> Plan:
    return Plan.from_dict(record.plan)
