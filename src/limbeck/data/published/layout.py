"""A published set's own layout: what its files are called, what they hold, and where they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from limbeck.data.published.found import Found
from limbeck.errors import BadInput, DataNotFound, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Layout:
    """name, title: of the set. get: where it is to be had, by its project. files: what lies in the folder, in words.

    labels: what a record may be classed by, where there is a choice; in words.
    holds: whether a path is laid out so, by names alone. open: a split of it, by a label.
    """

    name: str
    title: str
    get: str
    files: str
    labels: str = ""
    holds: Callable[[Path], bool]
    open: Callable[[Path, str, str | None], Found]


def chosen_label(path: Path, label: str | None, known: tuple[str, ...], unset: str = "label") -> str:
    """What records are classed by. `unset` is what a schema says that does not say."""
    if label is None or label == unset:
        if len(known) == 1:
            return known[0]
        raise BadInput(
            f"{path} can be classed in several ways; say by which: --label {' or '.join(known[:6])}"
            + (f" (or one of {len(known) - 6} others)." if len(known) > 6 else "."),
            f"limbeck schema draft {path} --label {known[0]}",
        )
    if label not in known:
        raise BadInput(
            f"{path} has no label '{label}'.{did_you_mean(label, known)} Known are: {', '.join(known[:10])}"
            + (", ..." if len(known) > 10 else ".")
        )
    return label


def only_one(folder: Path, names: list[str], what: str) -> Path:
    """The only file of a kind; several would be a choice that nobody made."""
    if len(names) != 1:
        raise DataNotFound(
            f"{folder} has {'no' if not names else 'several'} {what}"
            + (f": {', '.join(sorted(names)[:5])}; keep one of them there." if names else ".")
        )
    return folder / names[0]


def names_in(folder: Path) -> list[str]:
    """Of its files and folders, sorted; none of what is no folder."""
    try:
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    except OSError:
        return []
