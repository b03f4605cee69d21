"""A first schema for data that has none, for the owner to check.

Whatever was read off the records is listed under `unconfirmed`, and no plan is made from the schema while an entry is
left there: the owner, not this tool, decides what is public.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from limbeck.data.draft_text import Draft, written
from limbeck.data.frames import arrow_column, cells_of, form_of, is_gap, is_odd
from limbeck.data.limits import require_plain
from limbeck.data.survey import survey
from limbeck.data.survey_table import survey_table
from limbeck.data.surveyed import Wanted
from limbeck.errors import BadInput, DataNotFound, DataUnreadable, out_of_memory, ran_out
from limbeck.privacy.unit import UNIT_RECORD


def draft(path: Path, label: str | None = None, unit: str | None = None) -> str:
    """The TOML text of a schema. Reads the records; the text stays with the owner until it is checked."""
    return draft_of(path, Wanted(label=label, unit=unit)).text


def draft_of(path: Path, wanted: Wanted, name: str | None = None) -> Draft:
    """A first schema for the data at a path.

    `wanted.unit` names the column, the array or the level of folders that says who a record is about. It is never chosen here:
    that one person has several records is the owner's to know.
    """
    path = Path(path)
    wanted = _checked(wanted)
    if not path.exists():
        raise DataNotFound(f"There is no file or folder {path}.")
    require_plain(path)
    try:
        return written(survey(path, wanted), name or _name(path), str(path))
    except (MemoryError, RuntimeError, OSError) as error:
        if ran_out(error):
            raise out_of_memory(f"to look at {path}") from None
        if not isinstance(error, OSError):
            raise
        raise DataUnreadable(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from None


def draft_of_frame(frame: Any, name: str, wanted: Wanted) -> Draft:
    """A first schema for a frame of pandas, polars or Arrow."""
    wanted, form = _checked(wanted), form_of(frame)
    columns = {each: arrow_column(frame, each, form) for each in form.types}
    unfit = {each: "holds lists, records, bytes or spans of time" for each, column in columns.items() if is_odd(column)}
    texts = {each: _texts(column) for each, column in columns.items() if each not in unfit}
    where = f"The {form.kind} frame"
    if not len(frame) or not texts:
        raise BadInput(f"{where} holds no record.")
    return written(survey_table(texts, wanted, where, unfit), name, where)


def _texts(column: Any) -> list[str]:
    """Cells as they would stand in a file; nothing for those without a value."""
    return ["" if is_gap(cell) else str(cell) for cell in cells_of(column)]


def _checked(wanted: Wanted) -> Wanted:
    if wanted.unit == UNIT_RECORD:
        wanted = replace(wanted, unit=None)
    if wanted.unit is not None and wanted.unit == wanted.label:
        raise BadInput(f"--unit and --label are both '{wanted.unit}'; who a record is about cannot be its class.")
    return wanted


def _name(path: Path) -> str:
    """The name of the file or folder; a file that is only called train takes the name of its folder."""
    path = path.resolve()
    name = path.name.split(".")[0]
    return (path.parent.name if name in ("", "train", "test", "data") else name) or "data"
