"""What the sound accounting leaves GS-WGAN of a budget: the noise of an answer, by variant, critics and steps. Reads no record.

signal: how long the gradient of one image is, at most, over the noise std of one of its numbers. In variant B all images of a
batch share the clip, so each has 1 / sqrt(B) of it.

    python -m benchmarks.gswgan_budget        writes results/gswgan-budget.json
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from limbeck.data.named import named_set
from limbeck.methods import method_named
from limbeck.privacy.schema import Schema
from limbeck.runs.planning import make_plan

RESULT = Path(__file__).parent / "results" / "gswgan-budget.json"
DELTA, IMAGES = 1e-5, 300
STEPS_OF_A = ((500, 500), (1000, 100), (1500, 100), (2000, 250), (3000, 200), (3000, 300))
FORMS = (*(("A", *form) for form in STEPS_OF_A), ("B", 500, 500), ("B", 1500, 500))


def row(schema: Schema, epsilon: float, variant: str, critics: int, steps: int) -> dict[str, str | float]:
    settings = {"variant": variant, "K": critics, "T": steps, "B": IMAGES, "snapshots": 0}
    (query,) = make_plan(schema, method_named("gswgan", settings), epsilon, DELTA).queries
    share = 1.0 if variant == "A" else 1 / math.sqrt(IMAGES)
    noise = query.noise_multiplier
    return {
        "epsilon": epsilon, "variant": variant, "K": critics, "T": steps, "B": IMAGES,
        "noise_multiplier": round(noise, 3), "signal": round(share / (2 * noise), 3),
    }  # fmt: skip


def main() -> None:
    schema = named_set("mnist").schema
    rows = [row(schema, epsilon, *form) for epsilon in (0.2, 1.0, 10.0) for form in FORMS]
    RESULT.write_text(json.dumps({"command": "python -m benchmarks.gswgan_budget", "rows": rows}, indent=1) + "\n")
    for each in rows:
        print(each)


if __name__ == "__main__":
    main()
