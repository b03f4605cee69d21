"""Results as they are read back from JSON files, also those of older versions: what is no number counts as not there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, DataNotFound

LARGEST_FILE = 4_000_000


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object from a file of the owner, or a sentence that says what is wrong with it."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadInput(f"{path} is too large for {what} ({path.stat().st_size} bytes).")
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except (OSError, ValueError, RecursionError):
        raise BadInput(f"{path} cannot be read as JSON.") from None
    if not isinstance(values, dict):
        raise BadInput(f"{path} holds no JSON object, so it is no {what}.")
    return values


def finite(value: object) -> float | None:
    """The number as a float.

    >>> finite(3), finite(True), finite("3"), finite(float("nan"))
    (3.0, None, None, None)
    """
    try:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]
    except OverflowError:  # a whole number that no float holds
        return None


def number(value: object) -> Any:
    """The number as it stands, whole or not; None where `finite` has none."""
    return None if finite(value) is None else value


def whole(value: object) -> int | None:
    """The number if it is a whole one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: object) -> str | None:
    return None if value is None else str(value)


def stated(values: Mapping[str, Any], name: str) -> Any:
    """A number or a text that is compared with a certificate; None only where there is no entry at all.

    An entry that is neither is kept as text, so that it fits no certificate.
    """
    if name not in values:
        return None
    value = values[name]
    return value if isinstance(value, (int, float, str)) else str(value)


def mapping(value: object) -> Mapping[str, Any]:
    """The JSON object, or an empty one where something else stands."""
    return value if isinstance(value, Mapping) else {}


def objects(value: object) -> list[Mapping[str, Any]]:
    """The JSON objects of a list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
