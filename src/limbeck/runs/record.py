"""run.json: what a run needs to be taken up again, as a value. How its bytes are written is in `run_file.py`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from limbeck.errors import BadInput, RunConflict
from limbeck.files import write_atomic
from limbeck.methods import method_named
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.release.destination import RUN_FILE
from limbeck.runs.folder import no_run
from limbeck.runs.request import Request
from limbeck.runs.run_file import check_request_values, check_run_values, decoded, encoded

FORMAT = 1
# Whatever a file raises that this version would not have written.
DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def new_grant_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """All of it is public or the owner's own command line.

    `booked` tells a run that was never paid for from one whose booking is missing in the ledger at hand. `threads`: with
    another number of them sums round differently, and a stored answer is given again for the very same question only.
    """

    grant: str
    plan: Plan
    request: Request
    schema: Schema
    booked: bool = False
    threads: int = field(default_factory=torch.get_num_threads)

    def write(self, folder: Path) -> None:
        write_atomic(folder / RUN_FILE, encoded(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        return {
            "grant": self.grant,
            "plan": self.plan.to_dict(),
            "request": self.request.to_dict(),
            "schema": self.schema.to_dict(),
            "booked": self.booked,
            "threads": self.threads,
            "format": FORMAT,
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> RunRecord:
        """Raises one of DAMAGE, or BadInput, for whatever `to_dict` has not written."""
        values = {"booked": False, "format": FORMAT, "threads": torch.get_num_threads(), **values}
        check_run_values(values)
        check_request_values(values["request"])
        return RunRecord(
            grant=values["grant"],
            plan=Plan.from_dict(values["plan"]),
            request=Request.from_dict(values["request"]),
            schema=Schema.from_dict(values["schema"]),
            booked=values["booked"],
            threads=values["threads"],
        )

    @staticmethod
    def read(folder: Path) -> RunRecord:
        """The record of an unfinished run; a sentence where there is none, or where it is damaged."""
        try:
            values = decoded((folder / RUN_FILE).read_bytes())
            found = values.get("format", FORMAT)
            if type(found) is int and found != FORMAT:
                raise RunConflict(
                    f"{folder / RUN_FILE} has format {found:.6g}; this version of Limbeck reads format {FORMAT}."
                )
            return RunRecord.from_dict(values)
        except (FileNotFoundError, NotADirectoryError):
            raise no_run(folder) from None
        except (*DAMAGE, BadInput):
            raise damaged_record(folder) from None

    def require_runnable(self, folder: Path) -> None:
        """Refuse settings that this version's method would not take, before anything is opened."""
        try:
            method_named(self.plan.method, self.plan.settings)
        except DAMAGE:
            raise damaged_record(folder) from None


def damaged_record(folder: Path) -> RunConflict:
    return RunConflict(
        f"{folder / RUN_FILE} is damaged, or it was edited or written by another version, so the run cannot be "
        "taken up again; what it has booked stays booked. Restore the file from a backup, or start a new run in another "
        "folder. (If you edited it on purpose, take its entry 'sha256' out.)"
    )
