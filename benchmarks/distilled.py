"""Sets of several sizes, and a generator, from the answers that one release keeps: accuracy and seconds by size.

    python -m benchmarks.distilled mnist --release FOLDER                     FOLDER keeps its answers; sizes 50 to 1000
    python -m benchmarks.distilled mnist --release FOLDER --sizes 50,200      these sizes only
    python -m benchmarks.distilled mnist --release FOLDER --generator 2500    a generator first: its pictures alone, and refined
    python -m benchmarks.distilled mnist --release FOLDER --set updates=800   another setting of `limbeck distil`

Scores are those of the real test records, so no default is to be chosen by them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.accuracy import IMAGE, RESULTS, limbeck
from limbeck.privacy.numbers import finite_or_word
from limbeck.release.statement import read_certificate

SIZES = "50,200,500,1000"


def measured(release: Path, data: str, size: int, words: tuple[str, ...], preset: str) -> dict[str, Any]:
    """One set: how it was made, how long that took, and what networks learn from it."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "set"
        told = ("--per-class", str(size), *words)
        made = limbeck("distil", str(release), *told, "--out", str(out), "--ledger", f"{scratch}/ledger.sqlite")
        scores = limbeck("evaluate", str(out), "--test", data, *IMAGE, "--preset", preset)
        certificate = read_certificate(out)
        assert certificate.distilled is not None
        return {
            "command": " ".join(("limbeck distil RELEASE", *told, "--out SET")),
            "per_class": size,
            "settings": dict(certificate.distilled.settings),
            "seconds": made["seconds"],
            "seconds_per_picture": made["seconds"] / certificate.records,
            "accuracy": scores["accuracy"],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--generator", type=int)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--name", default="", help="put behind the name of the result")
    options = parser.parse_args()
    words = tuple(word for setting in options.settings for word in ("--set", setting))
    if options.generator is not None:
        words += ("--generator", str(options.generator))
    ways = (
        {"refined": words} if options.generator is None else {"refined": words, "drawn": (*words, "--set", "updates=0")}
    )
    certificate = read_certificate(options.release)
    result = {
        "data": options.data,
        "epsilon": finite_or_word(certificate.epsilon),
        "delta": certificate.delta,
        "source": {"records": certificate.records, "settings": dict(certificate.settings)},
        "preset": options.preset,
        "sets": {
            way: [
                measured(options.release, options.data, int(size), told, options.preset)
                for size in options.sizes.split(",")
            ]
            for way, told in ways.items()
        },
        "versions": dict(certificate.versions),
    }
    place = RESULTS / f"distilled-{options.data}-epsilon-{result['epsilon']:.3g}{options.name}.json"
    place.write_text(json.dumps(result, indent=2) + "\n")
    print(place)


if __name__ == "__main__":
    main()
