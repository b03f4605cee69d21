"""Lists that come with published sets: lines of words, with their numbers for messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from limbeck.data import faults
from limbeck.data.limits import require_room

BYTES_PER_BYTE = 20  # what a list takes once it is split into words


def lines_of(file: Path) -> Iterator[tuple[int, list[str]]]:
    """(number, words) of each line that has any."""
    with faults.sentences(file, lambda error: "is not a readable text file"):
        require_room(BYTES_PER_BYTE * file.stat().st_size, file)
        text = file.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if words:
            yield number, words
