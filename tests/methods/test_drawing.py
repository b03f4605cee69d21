"""Whole tables that are drawn a part at a time: the same shares, whether labels are made to add up or not."""

from __future__ import annotations

import numpy as np
import pytest
from test_mosaic import people, run


@pytest.mark.parametrize("most", [10**9, 0])
def test_parts_make_a_whole(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.methods.mosaic.drawing.AT_ONCE", 700)
    monkeypatch.setattr("limbeck.methods.mosaic.drawing.MOST_BALANCED", most)
    (columns, y), (made, labels) = people(), run(noise=0.05, T=60, components=30)
    assert len(labels) == 4000 and labels.mean() == pytest.approx(y.mean(), abs=0.03)
    assert np.mean(made["age"]) == pytest.approx(np.mean(columns["age"]), abs=1.5)
    assert len({tuple(row) for row in zip(made["age"], made["price"], strict=True)}) > 3900
    for part in range(0, 4000, 700):
        assert np.mean(made["age"][part : part + 700]) == pytest.approx(np.mean(columns["age"]), abs=4)
