"""Records in the memory of a Python program, arrays or frames: as a private source, and a run on them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data import DataSource
from limbeck.data.frames import TORCH, Form, form_of, form_with, frame_kind, frame_source
from limbeck.data.hf_dataset import hf_form, hf_source, is_hf_dataset
from limbeck.data.ranges import range_warning
from limbeck.data.records import Records, as_records, no_labels
from limbeck.data.torch_dataset import is_torch_dataset, torch_source
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, RunConflict
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.release.destination import is_unfinished
from limbeck.runs.condense import Outcome, condense
from limbeck.runs.record import RunRecord
from limbeck.runs.request import Request
from limbeck.runs.resume import resume

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Arrays in memory as a private source: nothing looks at them before the vault does."""

    schema: Schema
    x: Any
    y: Any
    units: Any = None

    def load(self) -> Records:
        units = None if self.units is None else unit_codes(_ids(self.units), "units")
        x = np.asarray(self.x)
        labels = np.asarray(self.y) if self.schema.has_label else no_labels(x)
        return as_records(x, labels, self.schema, "X", units)


def _ids(units: Any) -> Any:
    """A list stays one: as an array all of its ids would become what the widest of them is."""
    return units if isinstance(units, list | tuple) else np.asarray(units)


def in_memory(
    request: Request, plan: Plan, source: ArraySource | DataSource, folder: Path, reporter: Reporter
) -> Outcome:
    """A run whose records are in this process: a new one, or the unfinished one in the folder, taken up again."""
    if is_unfinished(folder):
        _require_same_plan(folder, plan)
        return resume(folder, reporter, source=source)
    said = range_warning(source)  # for the owner, whose program this is
    if said is not None:
        logger.warning("%s", said)
    return condense(request, plan, source, folder, reporter)


def memory_source(x: Any, y: Any, schema: Schema, units: Any) -> tuple[ArraySource | DataSource, Form | None]:
    """What `fit` was given, as a source; and the form in which it is given back. None: as arrays.

    A frame may have labels and persons in columns of its own.
    """
    is_hf = is_hf_dataset(x)  # first: a stream of Hugging Face is one of torch, too
    if not is_hf and is_torch_dataset(x):
        _require_units(schema, units)
        return torch_source(x, schema, y, units), Form(TORCH, {})
    if is_hf or frame_kind(x) is not None:
        if units is not None or not schema.by_person:
            _require_units(schema, units)
        if is_hf:
            return hf_source(x, schema, y, units), hf_form(x, schema)
        form = form_of(x)
        return frame_source(x, schema, y, units), form if y is None else form_with(form, schema.label, y)
    _require_labels(schema, y)
    _require_units(schema, units)
    return ArraySource(schema, x, y, units), None


def _require_labels(schema: Schema, y: Any) -> None:
    if schema.has_label != (y is not None):
        had = "was given y" if y is not None else "needs y=labels"
        said = "lists its classes" if schema.has_label else "says that there is no label"
        raise BadInput(f"fit {had}, but the schema of '{schema.name}' {said}.")


def _require_units(schema: Schema, units: Any) -> None:
    if schema.by_person and units is None:
        raise BadInput(
            f"The unit of '{schema.name}' is {schema.unit_words}, so fit needs units=ids: one id per record, equal for records "
            "of one person."
        )
    if not schema.by_person and units is not None:
        raise BadInput(
            f"fit was given units, but the unit of '{schema.name}' is one record. Name the persons in the schema, as in "
            "Schema(..., unit='patient', units=700), or leave units out."
        )


def _require_same_plan(folder: Path, plan: Plan) -> None:
    if RunRecord.read(folder).plan != plan:
        raise RunConflict(f"{folder} holds an unfinished run with another plan; choose another out.")
