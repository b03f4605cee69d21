"""How much of a data set is held in memory, and what is said where that is too little."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

from limbeck.data.limits import size_words
from limbeck.errors import BadInput, TooLarge

VARIABLE = "LIMBECK_MEMORY"
# Records that would take more are read in pieces, unless the variable says otherwise.
HELD = 1 << 30
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE = re.compile(r"(\d{1,18})\s*([a-z]{0,2})", re.ASCII | re.IGNORECASE)


def stated() -> int | None:
    """What the owner says that records may take, in bytes."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].lower() not in UNITS or int(found[1]) < 1:
        raise BadInput(f"{VARIABLE} must be a number of bytes, such as 500MB or 4GB, got '{text[:40]}'.")
    return int(found[1]) * UNITS[found[2].lower()]


def most_held() -> int:
    """Records that would take more than this are read in pieces, again for every answer."""
    said = stated()
    return min(HELD, available() // 2) if said is None else min(said, available())


def available() -> int:
    """What this process may still take: of the machine's memory, and of the limits that were set for it."""
    found = [_line("/proc/meminfo", "MemAvailable:")]
    for kind, used in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(max(limit - (_line("/proc/self/status", used) or 0), 0))
    return min((amount for amount in found if amount is not None), default=1 << 62)


def _line(file: str, name: str) -> int | None:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:  # another system
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)


def require_memory(needed: int, where: str) -> None:
    """Refuse to hold what this process cannot hold, before it is read."""
    allowed = available()
    if needed > allowed:
        raise TooLarge(
            f"{where} has to be held whole for this, which takes about {size_words(needed)} of memory, and "
            f"{size_words(allowed)} are free here. Sums over single records are read in pieces instead, in little memory; "
            "teachers, persons as the unit, drafts of schemas and scores need the records together. Use a larger machine, "
            "or a part of the data."
        )
