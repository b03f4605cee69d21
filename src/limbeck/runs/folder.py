"""The folder of a run: one method, one plan, one grant. A run can be killed at any moment and taken up again.

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
from collections.abc import Iterator
from pathlib import Path

from limbeck.errors import OutputFault, RunConflict
from limbeck.release import certificate as certificates
from limbeck.release.destination import RUN_STATE, command_on, is_unfinished, require_outside, resume_command

PROGRESS = "progress.json"
CHECKPOINT = "checkpoint.safetensors"


def staging(folder: Path) -> Path:
    """Where the release is written before it is put in place."""
    return folder / RUN_STATE / "release"


def is_staged(folder: Path) -> bool:
    """Whether the release is complete, in place or still beside it, so that no record is needed any more."""
    return any((root / certificates.NAME).exists() for root in (staging(folder), folder))


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Make the run's folder and hold it; never write into one that exists and holds anything.

    Gives the topmost folder that was made: whoever removes it leaves everything as it was.
    """
    require_unused(out)
    made = out / RUN_STATE
    while not made.parent.exists():
        made = made.parent
    try:
        (out / RUN_STATE).mkdir(parents=True, exist_ok=True)
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
        if out.exists() and (not out.is_dir() or any(entry.name != RUN_STATE for entry in out.iterdir())):
            what = "exists and is not empty" if out.is_dir() else "is a file"
            raise RunConflict(f"The output folder {out} {what}; nothing is overwritten. Choose another --out.")
    except OSError as error:
        raise OutputFault(f"The output folder {out} cannot be used: {error.strerror}.") from None
    require_outside(out)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let one process at a time work on a run. The system drops the lock when that process ends, however it ends."""
    try:
        handle = os.open(folder / RUN_STATE / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (FileNotFoundError, NotADirectoryError):
        raise no_run(folder) from None
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


def no_run(folder: Path) -> RunConflict:
    if (folder / certificates.NAME).exists():
        shutil.rmtree(folder / RUN_STATE, ignore_errors=True)  # what a crash in the very last step may have left
        return RunConflict(f"{folder} is a finished release; there is nothing to resume.", command_on("verify", folder))
    if not folder.exists():
        return RunConflict(f"There is no folder {folder}, so there is no run to resume.")
    return RunConflict(f"{folder} holds no interrupted run, so there is nothing to resume.", "limbeck condense --help")


def put_in_place(folder: Path) -> None:
    """Move the staged release to the output folder, its certificate last: a folder with a certificate is complete."""
    state, staged = folder / RUN_STATE, staging(folder)
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
