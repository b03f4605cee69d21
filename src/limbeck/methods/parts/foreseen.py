"""Questions that follow from the step alone: they can be asked many at a time, where asking one by one is slow."""

from __future__ import annotations

from collections.abc import Callable

from limbeck.vault.api import Answer, Ask, Asked, Map

AT_ONCE = 25


def foreseen(ask: Ask, wanted: str, map_at: Callable[[int], Map], count: int) -> Ask:
    """The same answers. A vault that is far away is asked for the next AT_ONCE together.

    wanted: the label. map_at: the map of a step, which depends on no answer. count: how many steps there are.
    """
    ahead = getattr(ask, "ahead", None)
    if ahead is None:
        return ask
    known = 0

    def asked(label: str, index: int, mapping: Asked) -> Answer:
        nonlocal known
        if label == wanted and index >= known:
            known = min(index + AT_ONCE, count)
            ahead(label, index, [map_at(step) for step in range(index, known)])
        return ask(label, index, mapping)

    return asked
