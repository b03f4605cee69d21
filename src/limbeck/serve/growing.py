"""The set of a run at work, read from its checkpoint: for whoever watches.

The checkpoint holds what the method has made of the answers so far, so it is as private as the release will be: the whole plan
is booked before the first answer. It is shown only where that is plain:

- the method names the tensor of its checkpoint that is the set (`Method.growing`); teachers, generators and whatever else a
  method keeps are never looked at, and a vault's own state is in no checkpoint of a method;
- the plan is private, and its noise is secret.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data.images import encode_png
from limbeck.data.records import Array
from limbeck.errors import LimbeckError
from limbeck.methods import METHODS
from limbeck.release.destination import RUN_STATE as STATE
from limbeck.release.shown import montage
from limbeck.runs.folder import CHECKPOINT
from limbeck.runs.record import DAMAGE, RunRecord
from limbeck.runs.run_file import decoded
from limbeck.serve.inside import NotInside, read_inside

LARGEST_CHECKPOINT, LARGEST_JSON = 1 << 30, 8_000_000


def may_grow(root: Path, name: str) -> bool:
    """Whether the set of this run may be shown while it is made."""
    return _shown_record(root, name) is not None


def growing(root: Path, name: str) -> bytes:
    """PNG bytes. Guarantee: raises NotInside unless the run may be shown and has a checkpoint."""
    record = _shown_record(root, name)
    if record is None:
        raise NotInside
    content = read_inside(root, *name.split("/"), STATE, CHECKPOINT, most=LARGEST_CHECKPOINT)
    found = _tensor(content, METHODS[record.plan.method].growing)
    schema, classes = record.schema, len(record.schema.classes)
    if found is None or found.shape[1:] != schema.shape or not len(found) or len(found) % classes:
        raise NotInside
    # Methods that name a tensor make as many records of each class, class by class; a size of its own per class is in no
    # checkpoint, and then the rows of the picture are shares of the set.
    picture = montage(found, np.repeat(np.arange(classes), len(found) // classes), schema)
    if picture is None:
        raise NotInside
    return encode_png(picture)


def _shown_record(root: Path, name: str) -> RunRecord | None:
    try:
        record = RunRecord.from_dict(decoded(read_inside(root, *name.split("/"), STATE, "run.json", most=LARGEST_JSON)))
    except (NotInside, LimbeckError, *DAMAGE):
        return None
    method = METHODS.get(record.plan.method)
    secret = record.request.options.insecure_seed is None
    grows = method is not None and method.private and bool(method.growing) and record.schema.is_image
    return record if grows and secret and record.plan.is_private else None


def _tensor(content: bytes, name: str) -> Array | None:
    """One float32 tensor of a safetensors file, without reading the others. None for a file of another form."""
    try:
        length = int.from_bytes(content[:8], "little")
        entry: Any = json.loads(content[8 : 8 + length])[name]
        start, end = (8 + length + int(offset) for offset in entry["data_offsets"])
        if entry["dtype"] != "F32" or not 8 + length <= start <= end <= len(content):
            return None
        return np.frombuffer(content[start:end], dtype="<f4").reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
