"""Who a record is about: one code per record, made from the id that stands in the data. Equal codes are one person.

A code is a hash of the id alone, so it carries no order of the file and is the same in every file. If two spellings of one id
became two codes, the promise would not hold for this person as a whole; if two persons have one code, they are protected
together, and it holds for both. So wherever it is not clear whether two ids differ, they are one: grouping is the safe side.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema

Codes = npt.NDArray[np.int64]

# How programs write that an id is missing. Records without an id may be one person's, so they are all one person.
MISSING = frozenset(("", "nan", "none", "null", "na", "n/a", "<na>", "nat"))
# Putting a text into its normal form takes time that grows with the square of its length, if it is made for that.
LONGEST_SPELT = 1000
# How many ids are spelt out at a time, and how much of an array of texts.
CHUNK, MOST_CHUNK_BYTES = 8192, 1 << 24
# Whole numbers, as programs write them that keep ids as numbers: 7, 007 and 7.0 are one id.
_WHOLE = re.compile(r"([+-]?)(\d+)(?:\.0*)?", re.ASCII)


def unit_codes(ids: npt.NDArray[Any] | Sequence[Any], where: str) -> Codes:
    """The person of each record as an integer below 2^63, equal exactly if the ids are equal by `canonical`.

    Guarantee: no id raises, whatever it holds, and none is part of an error. A record's code depends on its own id alone.

    >>> one, same, other, missing, empty = unit_codes(["p1", " p1", "p2", None, ""], "X").tolist()
    >>> one == same, one == other, missing == empty
    (True, False, True)
    """
    size = CHUNK
    if isinstance(ids, np.ndarray):
        require_one_id(ids.shape, ids.dtype, where)
        size = max(1, min(CHUNK, MOST_CHUNK_BYTES // max(ids.dtype.itemsize, 1)))
    codes = np.empty(len(ids), dtype=np.int64)
    for start in range(0, len(ids), size):
        part = ids[start : start + size]
        codes[start : start + size] = _codes(part.tolist() if isinstance(part, np.ndarray) else part)
    return codes


def require_one_id(shape: tuple[int, ...], kind: np.dtype[Any], where: str) -> None:
    """What a header says about an array of ids: one per record, of a type that can be compared."""
    if len(shape) != 1:
        raise DataUnreadable(f"{where} holds the persons in shape {shape}; there must be one id per record.")
    if kind.kind not in "iufbUSO":
        raise DataUnreadable(f"{where} holds the persons as type {kind}; their ids must be whole numbers or texts.")


def no_unit(path: Path | str, what: str, schema: Schema, found: str) -> DataUnreadable:
    """For a file that lacks what the schema's unit names. Of the names in the file none is repeated."""
    return DataUnreadable(
        f"{path} has no {what}, which is the unit of the schema of '{schema.name}' and says who a record is about; {found}."
    )


def _codes(ids: Sequence[Any]) -> list[int]:
    met: dict[Any, int] = {}  # a long text that stands in many rows is spelt out once
    found = []
    for value in ids:
        if not isinstance(value, str | bytes | int | float):  # it may be no key of a dictionary
            found.append(_code(canonical(value)))
            continue
        key = (type(value), value)
        if key not in met:
            met[key] = _code(canonical(value))
        found.append(met[key])
    return found


def _code(text: str) -> int:
    """The first 63 bits of an unkeyed hash. Never changed: teachers and splits by person hang on it."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


def canonical(value: Any) -> str:
    """The one text of an id, whichever way it is stored.

    Texts lose the space around them and are put into Unicode's normal form C; whole numbers are their decimal text, also where
    they are stored as 7.0 or as "007"; whatever is missing is the empty text.

    >>> [canonical(value) for value in (7, 7.0, " 007", "7.0", b"7", None, float("nan"), "NaN", "A-7")]
    ['7', '7', '7', '7', '7', '', '', '', 'A-7']
    """
    try:
        return _spelt(_text(value))
    except MemoryError:
        raise
    except Exception:  # content of a record must not raise; what cannot be compared is nobody's own
        return ""


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")  # other bytes, other text, also where it is no text at all
    if value is None or value != value:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        # By way of a Decimal, which writes numbers of any length; Python's own stops at 4,300 digits.
        return format(Decimal(int(value)), "f")
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if math.isfinite(number) and number.is_integer() else repr(number)
    return str(value)


def _spelt(text: str) -> str:
    text = text.strip()
    if not text.isascii():
        # The longest form decides, because it is the same for all spellings of a text. Longer ones are one person together.
        if len(text) > LONGEST_SPELT or len(unicodedata.normalize("NFD", text)) > LONGEST_SPELT:
            return "a text of too many letters"
        text = unicodedata.normalize("NFC", text).strip()
    elif whole := _WHOLE.fullmatch(text):
        digits = whole[2].lstrip("0") or "0"
        return f"-{digits}" if whole[1] == "-" and digits != "0" else digits
    return "" if len(text) <= 4 and text.lower() in MISSING else text
