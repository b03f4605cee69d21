"""The bytes of run.json: a JSON object with a digest of itself, and what may stand in it.

The digest finds damage. A file without one is of an older version, or was edited by its owner on purpose; it is read as before.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

DIGEST = "sha256"
LARGEST = 8_000_000
MOST_THREADS = 4096
_GRANT = re.compile(r"[0-9a-f]{32}")


def encoded(values: Mapping[str, Any]) -> bytes:
    return json.dumps({**values, DIGEST: _digest(values)}, indent=1, allow_nan=False).encode()


def decoded(content: bytes) -> dict[str, Any]:
    """The values without the digest. Raises ValueError for whatever `encoded` has not written."""
    if len(content) > LARGEST:
        raise ValueError(len(content))
    try:
        values = json.loads(content.decode("utf-8"), parse_constant=_refused)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError(type(values))
    stated = values.pop(DIGEST, None)
    if stated is not None and stated != _digest(values):
        raise ValueError(DIGEST)
    return values


def check_run_values(values: Mapping[str, Any]) -> None:
    """Raises ValueError unless every entry of a run is known and has the type that it must have."""
    kinds = {"grant": str, "plan": dict, "request": dict, "schema": dict, "booked": bool, "threads": int, "format": int}
    if unknown := set(values) - set(kinds):
        raise ValueError(min(unknown))
    for name, kind in kinds.items():
        if type(values[name]) is not kind:
            raise ValueError(name)
    # The grant names a folder of the vault, so it is nothing but what a new run draws.
    if not _GRANT.fullmatch(values["grant"]) or not 1 <= values["threads"] <= MOST_THREADS:
        raise ValueError("grant or threads")


def check_request_values(values: Mapping[str, Any]) -> None:
    """Raises ValueError unless every entry of a request is a text that can be a path, or none, and the seed a number."""
    for name, value in values.items():
        if name == "insecure_seed":
            fits = value is None or type(value) is int
        else:
            fits = (value is None and name != "device") or (isinstance(value, str) and "\0" not in value)
        if not fits:
            raise ValueError(name)
        if isinstance(value, str):
            os.fsencode(value)  # raises one for what can be no path


def _digest(values: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return hashlib.sha256(text.encode()).hexdigest()


def _refused(constant: str) -> Any:
    raise ValueError(constant)
