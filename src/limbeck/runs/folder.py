"""A run: one method, one plan, one grant, one output folder. It can be killed at any moment and taken up again.

    OUT/.run/run.json                 what was asked, with a digest; written before anything is booked, and again when it is
    OUT/.run/lock                     held by the process that works on the run
    OUT/.run/progress.json            how far it is, at most a second old; for whoever watches the run
    OUT/.run/checkpoint.safetensors   the method's tensors at a step, with a digest; made of answers only, so nothing private
    OUT/.run/release/                 the release while it is written; checked before a resumed run puts it in place
    OUT/...                           the release; .run is gone once it is complete

Order: run.json -> book -> read records -> answers and checkpoints -> release staged -> grant closed -> release in place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from limbeck.errors import BadInput, OutputFault, RunConflict
from limbeck.files import write_atomic
from limbeck.methods import Method, Result, TrainedModel, method_named
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import finite_or_word
from limbeck.privacy.schema import Schema
from limbeck.progress import Noted, Reporter
from limbeck.release import certificate as certificates
from limbeck.release.destination import RUN_STATE as STATE
from limbeck.release.destination import command_on, is_unfinished, require_outside, resume_command
from limbeck.runs.checkpoint import restore_checkpoint, write_checkpoint
from limbeck.runs.run_file import check_run_values, decoded, encoded
from limbeck.vault.api import Answer, Grant, Map, Question
from limbeck.vault.local import LocalVault

FORMAT = 1
PROGRESS = "progress.json"
SECONDS_BETWEEN_CHECKPOINTS = 30.0


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What a run needs to be taken up again. All of it is public or the owner's own command line.

    `booked` tells a run that was never paid for from one whose booking is missing in the ledger at hand. `threads`: with
    another number of them sums round differently, and a stored answer is given again for the very same question only.
    """

    grant: str
    plan: dict[str, Any]
    request: dict[str, Any]
    schema: dict[str, Any]
    booked: bool = False
    threads: int = field(default_factory=torch.get_num_threads)
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        write_atomic(folder / STATE / "run.json", encoded(asdict(self)))

    @staticmethod
    def read(folder: Path) -> RunRecord:
        try:
            values = decoded((folder / STATE / "run.json").read_bytes())
            found = values.get("format", FORMAT)
            if type(found) is int and found != FORMAT:
                raise RunConflict(
                    f"{folder / STATE / 'run.json'} has format {found:.6g}; this version of Limbeck reads format {FORMAT}."
                )
            record = RunRecord(**values)
            check_run_values(vars(record))
            load_plan(record)
            Schema.from_dict(record.schema)
        except (FileNotFoundError, NotADirectoryError):
            raise _no_run(folder) from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, BadInput):
            raise damaged_record(folder) from None
        return record


def damaged_record(folder: Path) -> RunConflict:
    return RunConflict(
        f"{folder / STATE / 'run.json'} is damaged, or it was edited or written by another version, so the run cannot be "
        "taken up again; what it has booked stays booked. Restore the file from a backup, or start a new run in another "
        "folder. (If you edited it on purpose, take its entry 'sha256' out.)"
    )


def _no_run(folder: Path) -> RunConflict:
    if (folder / certificates.NAME).exists():
        shutil.rmtree(folder / STATE, ignore_errors=True)  # what a crash in the very last step may have left
        return RunConflict(f"{folder} is a finished release; there is nothing to resume.", command_on("verify", folder))
    if not folder.exists():
        return RunConflict(f"There is no folder {folder}, so there is no run to resume.")
    return RunConflict(f"{folder} holds no interrupted run, so there is nothing to resume.", "limbeck condense --help")


def is_staged(folder: Path) -> bool:
    """Whether the release is complete, in place or still beside it, so that no record is needed any more."""
    return any((place / certificates.NAME).exists() for place in (folder / STATE / "release", folder))


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Make the run's folder and hold it; never write into one that exists and holds anything.

    Gives the topmost folder that was made: whoever removes it leaves everything as it was.
    """
    require_unused(out)
    made = out / STATE
    while not made.parent.exists():
        made = made.parent
    try:
        (out / STATE).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFault(f"The output folder {out} cannot be made: {error.strerror}.") from None
    with held(out):
        require_unused(out)  # another process may have been faster
        yield made


def require_unused(out: Path) -> None:
    """Refuse a folder that exists and holds anything, and one inside a release or the folder of another run."""
    try:
        if is_unfinished(out):
            raise RunConflict(f"The output folder {out} holds an unfinished run.", resume_command(out))
        # A state folder without run.json is the trace of a run that was stopped before it began.
        if out.exists() and (not out.is_dir() or any(entry.name != STATE for entry in out.iterdir())):
            what = "exists and is not empty" if out.is_dir() else "is a file"
            raise RunConflict(f"The output folder {out} {what}; nothing is overwritten. Choose another --out.")
    except OSError as error:
        raise OutputFault(f"The output folder {out} cannot be used: {error.strerror}.") from None
    require_outside(out)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let one process at a time work on a run. The system drops the lock when that process ends, however it ends."""
    try:
        handle = os.open(folder / STATE / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (FileNotFoundError, NotADirectoryError):
        raise _no_run(folder) from None
    except OSError as error:
        raise OutputFault(f"The run in {folder} cannot be used: {error.strerror}.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RunConflict(
            f"Another process is at work on the run in {folder}; wait until it has ended, or stop it first."
        ) from None
    finally:
        os.close(handle)


@contextlib.contextmanager
def computing_with(threads: int) -> Iterator[None]:
    """With so many threads, and afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def new_grant_id() -> str:
    return uuid.uuid4().hex


class RunLog:
    """The logbook of one run: checkpoints to the run folder, progress to the reporter."""

    def __init__(self, folder: Path, vault: LocalVault, grant: Grant, reporter: Reporter, every: float) -> None:
        self._path = folder / STATE / "checkpoint.safetensors"
        self._vault, self._grant, self._every = vault, grant, every
        self._reporter = Noted(reporter, folder / STATE / PROGRESS)

    def steps(self, total: int, state: dict[str, Tensor], answers: str) -> Iterator[int]:
        first = self._restore(total, state)
        self._reporter.start(
            f"{self._grant.plan.method}, epsilon booked {finite_or_word(self._grant.plan.price.epsilon)}", total, first
        )
        saved, took = time.monotonic(), 0.0
        for step in range(first, total):
            yield step
            self._reporter.advance(step + 1)
            began = time.monotonic()
            if began - saved >= self._pause(took) or step + 1 == total:
                self._save(step + 1, state, answers)
                saved = time.monotonic()
                took = saved - began

    def _pause(self, took: float) -> float:
        """Seconds to the next checkpoint; large ones, such as those of many teachers, are to take a tenth of the time at most."""
        return self._every * max(1.0, 10 * took / SECONDS_BETWEEN_CHECKPOINTS)

    def _restore(self, total: int, state: dict[str, Tensor]) -> int:
        return restore_checkpoint(self._path, self._grant.id, total, state)

    def _save(self, step: int, state: dict[str, Tensor], answers: str) -> None:
        # The vault's own part first: its teachers may be ahead of the method's checkpoint, but never behind it.
        self._vault.keep(self._grant)
        write_checkpoint(self._path, self._grant.id, step, state)
        # Only after the checkpoint is safe on disk may the answers before it go.
        self._vault.forget(self._grant, answers, step)


def carry_out(
    folder: Path,
    vault: LocalVault,
    grant: Grant,
    write_release: Callable[[Path, Result], None],
    reporter: Reporter,
    device: torch.device,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    start: TrainedModel | None = None,
) -> None:
    """Run the method of a booked grant to its release, from wherever an earlier attempt got to.

    `start` is a model, released before, that the method is to go on from.
    """
    staged = folder / STATE / "release"
    if not is_staged(folder):
        vault.open_records(grant)
        shutil.rmtree(staged, ignore_errors=True)
        method = method_named(grant.plan.method, grant.plan.settings)
        result = run_method(method, folder, vault, grant, reporter, device, checkpoint_seconds, start)
        try:
            staged.mkdir()
            write_release(staged, result)
        except OSError as error:
            raise OutputFault(f"The release could not be written: {error.strerror or error}.") from None
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
    start: TrainedModel | None = None,
) -> Result:
    def ask(label: str, index: int, mapping: Map | Question) -> Answer:
        return vault.ask(grant, label, index, mapping)

    logbook = RunLog(folder, vault, grant, reporter, every)
    if start is not None:
        return method.run_from(start, vault.describe(), ask, logbook, device)
    return method.run(vault.describe(), ask, logbook, device)


def put_in_place(folder: Path) -> None:
    """Move the staged release to the output folder, its certificate last: a folder with a certificate is complete."""
    state = folder / STATE
    staged = state / "release"
    try:
        names = [path.name for path in staged.iterdir()] if staged.exists() else []
        for name in sorted(names, key=lambda name: name == certificates.NAME):
            target = folder / name
            if target.is_dir():
                shutil.rmtree(target)
            (staged / name).replace(target)
        for path in state.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in ("run.json", "lock"):
                path.unlink()
        # Until here a crash leaves a run that can be resumed.
        (state / "run.json").unlink()
        shutil.rmtree(state)
    except OSError as error:
        raise OutputFault(f"The release could not be put into {folder}: {error.strerror}.") from None


def load_plan(record: RunRecord) -> Plan:
    return Plan.from_dict(record.plan)
