"""The kept table of what the accounting leaves GS-WGAN is what it says today."""

from __future__ import annotations

import json

from benchmarks.gswgan_budget import RESULT, row

from limbeck.data.named import named_set


def test_the_kept_noise_is_the_noise_of_a_plan() -> None:
    kept = json.loads(RESULT.read_text())["rows"]
    for each in (kept[8], kept[15]):
        assert row(named_set("mnist").schema, each["epsilon"], each["variant"], each["K"], each["T"]) == each


def test_one_clip_for_all_images_leaves_less_signal() -> None:
    schema = named_set("mnist").schema
    of_each, of_all = (row(schema, 1.0, variant, 500, 500) for variant in "AB")
    assert of_each["signal"] > 2 * float(of_all["signal"])
