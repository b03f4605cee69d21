"""How a value is written among the words that a schema lists: its categories, or its classes. Fixed and public."""

from __future__ import annotations

from collections.abc import Container, Iterable

import numpy as np

TRUE, FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")


def word_of(cell: object, known: Container[str], truth: tuple[str | None, str | None] = (None, None)) -> str:
    """The word for a cell: its text, where that is known; of a truth value the word that means it, and of a whole number that
    is stored with a point the text without it. What is none of these stays its text.

    truth: the words for False and True among the known ones, as `truth_words` finds them.

    >>> known = ("no", "yes", "7")
    >>> [word_of(cell, known, truth_words(known)) for cell in ("yes", True, False, 7, 7.0, None, "maybe")]
    ['yes', 'yes', 'no', '7', '7', '', 'maybe']
    """
    text = "" if cell is None else str(cell)
    if text in known:
        return text
    if isinstance(cell, bool | np.bool_):
        return truth[bool(cell)] or text
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    return text


def truth_words(known: Iterable[str]) -> tuple[str | None, str | None]:
    """The words that mean False and True, where there is exactly one of each.

    >>> truth_words(("Yes", "No")), truth_words(("red", "yes")), truth_words(("no", "yes", "true"))
    (('No', 'Yes'), (None, None), (None, None))
    """
    words = tuple(known)
    no, yes = ([word for word in words if word.lower() in means] for means in (FALSE, TRUE))
    return (no[0], yes[0]) if len(no) == len(yes) == 1 else (None, None)
