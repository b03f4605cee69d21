"""Time of drawing 300,000 numbers of noise on one core: whole steps, sampled exactly, against the doubles of before 0.4.0.

    python -m benchmarks.noise     writes benchmarks/results/noise.json

Both take their bits from the same AES-256 stream. NumPy's own normal numbers, rounded, stand beside them: neither secret nor
exact, a lower bound. OpenDP's exact discrete Gaussian joins where it is installed.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from limbeck.privacy.queries import ClippedSum
from limbeck.vault.noise import Randomness, drawn_noise

NUMBERS, ROUNDS = 300_000, 15
QUERY = ClippedSum(label="sums", map="identity", clip=1.0, noise_multiplier=3.0)
BEFORE = ClippedSum(label="sums", map="identity", clip=1.0, noise_multiplier=3.0, on_grid=False)


def milliseconds(draw: Callable[[], object]) -> float:
    """The median of a few rounds, after one that warms up."""
    draw()
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        draw()
        taken.append(time.perf_counter() - began)
    return round(1000 * statistics.median(taken), 2)


def exact_discrete(numbers: int) -> float | None:
    """OpenDP's sampler, on fewer numbers, as milliseconds for all of them."""
    try:
        import opendp.prelude as dp  # type: ignore[import-not-found]
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    noise = dp.m.make_gaussian(*space, scale=QUERY.noise_std / QUERY.step)
    return round(milliseconds(lambda: noise([0] * (numbers // 100))) * 100, 1)


def main() -> None:
    stream, random = Randomness().stream("noise", 0), np.random.default_rng(0)
    width = QUERY.noise_std / QUERY.step
    found = {
        "whole steps, exact": milliseconds(lambda: drawn_noise(QUERY, (NUMBERS,), stream)),
        "doubles, as before 0.4.0": milliseconds(lambda: drawn_noise(BEFORE, (NUMBERS,), stream)),
        "NumPy's normal, rounded": milliseconds(lambda: np.rint(random.normal(0, width, NUMBERS)).astype(np.int64)),
        "OpenDP's exact discrete Gaussian": exact_discrete(NUMBERS),
    }
    result = {"command": "python -m benchmarks.noise", "numbers": NUMBERS, "milliseconds": found}
    result["times_as_fast_as_before"] = round(found["doubles, as before 0.4.0"] / found["whole steps, exact"], 1)  # type: ignore[operator]
    (Path(__file__).parent / "results" / "noise.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
