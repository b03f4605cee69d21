"""Elixir without each of its parts: `python -m benchmarks.ablation` (an hour of one core), `--draw` for the figure alone.

Fashion-MNIST at epsilon 1, 50 per class, hard labels, preset `cpu`. Every variant has 100 answers, a fifth of the default, so
that all of them can be run; the method as it is stands among them with the same 100. Fashion-MNIST is public, so the ledger is a
throw-away one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.accuracy import IMAGE, RESULTS, Row, chosen, score

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ANSWERS = "T=100"
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "whole": ("the method as it is", (ANSWERS,)),
    "first-set": ("first set alone", ("T=0",)),
    "poor-start": ("a hundredth of the budget for the first set", (ANSWERS, "first=0.01")),
    "random-networks": ("random networks, each asked once", (ANSWERS, "life=0")),
    "no-news": ("features as they are, not news", (ANSWERS, "news=false")),
    "no-waves": ("features without waves", (ANSWERS, "waves=0")),
    "small-samples": ("samples of 200 a class, not 1000", (ANSWERS, "L=200")),
    "no-replay": ("no answer is matched again", (ANSWERS, "replay=0")),
    "no-change": ("no affine change", (ANSWERS, "angle=0", "scale=0", "shift=0")),
    "no-average": ("the last set, not the running mean", (ANSWERS, "average=0")),
}
FIGURE = Path(__file__).parents[1] / "docs" / "images" / "elixir-ablation.png"


def kept(name: str) -> Path:
    return RESULTS / f"ablation-{name}.json"


def measure(name: str) -> dict[str, Any]:
    settings = VARIANTS[name][1]
    row = Row("fashion-mnist", ("--method", "elixir", "--epsilon", "1", *chosen(*settings)), IMAGE)
    return {"variant": VARIANTS[name][0], **score(f"ablation-{name}", row, None, "cpu")}


def draw() -> None:
    results = {name: json.loads(kept(name).read_text()) for name in VARIANTS if kept(name).exists()}
    scores = {result["variant"]: result["accuracy"]["convnet"] for result in results.values()}
    order = sorted(scores, key=lambda variant: scores[variant]["mean"])
    means, spreads = ([scores[variant][key] for variant in order] for key in ("mean", "std"))
    colours = ["#b3541e" if variant == VARIANTS["whole"][0] else "#4a6a8a" for variant in order]
    figure, axes = plt.subplots(figsize=(7.5, 0.9 + 0.38 * len(order)), layout="constrained")
    # Dots, not bars: the axis does not start at 0.
    for place, (mean, spread, colour) in enumerate(zip(means, spreads, colours, strict=True)):
        axes.errorbar(mean, place, xerr=spread, fmt="o", color=colour, capsize=3)
        axes.text(mean + spread + 0.25, place, f"{mean:.1f}", va="center", fontsize=9)
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(-0.6, len(order) - 0.4)
    axes.set_xlim(min(means) - 2, max(means) + 2)
    axes.grid(axis="y", color="#d9d6d0", linewidth=0.8)
    axes.set_xlabel("per cent on Fashion-MNIST, epsilon 1, 100 answers")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variants", nargs="*", choices=[*VARIANTS, []], help="default: all")
    parser.add_argument("--draw", action="store_true", help="the figure from the kept results, nothing else")
    options = parser.parse_args()
    for name in [] if options.draw else options.variants or VARIANTS:
        result = measure(name)
        kept(name).write_text(json.dumps(result, indent=2) + "\n")
        print(name, result["accuracy"]["convnet"]["mean"], flush=True)
    draw()


if __name__ == "__main__":
    main()
