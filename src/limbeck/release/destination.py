"""Where results may go: never into a release, which holds only what its certificate lists, nor into the folder of a run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from limbeck.errors import BadInput, LimbeckError, OutputFault, RunConflict
from limbeck.release.certificate import NAME

RUN_STATE = ".run"  # the folder inside a release-to-be that a run keeps itself in
RUN_FILE = Path(RUN_STATE) / "run.json"


def is_unfinished(folder: Path) -> bool:
    """Whether the folder holds a run that has not ended in a release yet."""
    return (folder / RUN_FILE).exists()


def resume_command(folder: Path) -> str:
    return command_on("resume", folder)


def command_on(name: str, folder: Path) -> str:
    """A command to type, with the folder as a shell needs it.

    >>> command_on("verify", Path("-my set"))
    "limbeck verify './-my set'"
    """
    text = str(folder)
    return f"limbeck {name} {shlex.quote(f'./{text}' if text.startswith('-') else text)}"


def require_outside(out: Path, kind: type[LimbeckError] = RunConflict, why: str = "") -> None:
    """Refuse a path that is, or lies in, a release or the folder of an unfinished run, whatever links lead there.

    Guarantee: looks at names only. Commands call it before anything is booked or written.
    """
    try:
        paths = (out.absolute(), out.resolve())
    except (OSError, RuntimeError):
        raise OutputFault(f"{out} cannot be used: its links lead in a circle. Choose another --out.") from None
    for path in paths:
        for folder in (path, *path.parents):
            if os.path.lexists(folder / NAME):
                raise kind(
                    f"{why}{out} lies inside the release {folder}, which holds only what its certificate lists. "
                    "Choose another --out."
                )
            if os.path.lexists(folder / RUN_FILE):
                raise RunConflict(f"{out} lies inside {folder}, which holds an unfinished run. Choose another --out.")


def require_result_path(out: Path | None, what: str = "Scores are") -> None:
    """Refuse a file for scores where it would break a release, or cannot be."""
    if out is None:
        return
    if not out.absolute().parent.is_dir():
        raise OutputFault(f"The folder {out.parent} for the result does not exist.")
    require_outside(out, BadInput, f"{what} no part of a release: ")
    if out.is_dir():
        raise OutputFault(f"{out} is a folder, not a file for the result. Choose another --out.")
