"""Where a release goes for which nobody named a folder: a new one of its own, never one that is there."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from limbeck.errors import LimbeckError, OutputFault, RunConflict
from limbeck.privacy.plan import Plan
from limbeck.release.destination import is_unfinished
from limbeck.runs.record import RunRecord

VARIABLE = "LIMBECK_RELEASES"
FOLDER = "limbeck-releases"


def releases_folder() -> Path:
    """LIMBECK_RELEASES if set, else limbeck-releases in the folder that the program runs in."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen).expanduser() if chosen else Path(FOLDER)


@contextlib.contextmanager
def kept_folder(name: str, plan: Plan) -> Iterator[Path]:
    """NAME-1, NAME-2, ...: the first that is free. What holds nothing in the end is gone again.

    Guarantee: of programs that ask at once each gets a folder of its own; nothing that exists is used.
    """
    base = releases_folder()
    _require_no_unfinished(base, plan)
    folder = _new_folder(base, re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "release")
    try:
        yield folder
    finally:
        for empty in (folder, base):
            with contextlib.suppress(OSError):
                empty.rmdir()


def _new_folder(base: Path, name: str) -> Path:
    try:
        for number in count(1):
            folder = base / f"{name}-{number}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise OutputFault(
            f"The folder for the release cannot be made in {base}: {error.strerror}. Give fit an out=, or set {VARIABLE}."
        ) from None
    raise AssertionError("count ends never")


def _require_no_unfinished(base: Path, plan: Plan) -> None:
    """A stopped run of the same plan is paid for already; a new one would be paid for again."""
    with contextlib.suppress(OSError):
        for folder in sorted(base.iterdir()):
            if is_unfinished(folder) and _plan_of(folder) == plan:
                raise RunConflict(
                    f"{folder} holds an unfinished run of this very plan. Go on with it by fit(..., out={str(folder)!r}), which "
                    "pays nothing twice; or name another out= for a run of its own."
                )


def _plan_of(folder: Path) -> Plan | None:
    try:
        return RunRecord.read(folder).plan
    except LimbeckError:
        return None
