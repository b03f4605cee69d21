"""The vault tries a map with public numbers in place of its own: every map must survive that, or no run with it begins."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from limbeck.nets import Augmentation, NetSpec
from limbeck.vault.maps.base import form_of, stand_in

sys.path.insert(0, str(Path(__file__).parents[1] / "privacy"))

from test_sensitivity import MAPPINGS, some_records


def floats(value: Any) -> Iterator[float]:
    """All that a map holds, but for what says which network it is."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from floats(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, NetSpec | Augmentation):
        for field in dataclasses.fields(value):
            yield from floats(getattr(value, field.name))


@pytest.mark.parametrize("name", MAPPINGS)
def test_every_map_can_be_tried_with_numbers_that_are_not_its_own(name: str) -> None:
    mapping = MAPPINGS[name]
    typical = stand_in(mapping)
    assert form_of(typical) == form_of(mapping) and set(floats(typical)) <= {0.5}
    x, y = some_records(4)
    with torch.no_grad():
        rows = typical.trial(x, y)
    assert len(rows) == 4 and rows.isfinite().all()
