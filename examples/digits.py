"""Condense the digits that come with the package, check the release and see what it is worth. Takes seconds.

python examples/digits.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from limbeck import condense, load, plan, verify
from limbeck.api import evaluate


def main(folder: Path) -> None:
    print(f"it will cost epsilon {plan('digits', method='ldpdc', epsilon=1.0, per_class=10).plan.price.epsilon}")
    release = condense("digits", folder / "release", method="ldpdc", epsilon=1.0, per_class=10).release
    print(f"verified: epsilon {verify(release).epsilon}, records {load(release).x.shape}")
    print(
        f"accuracy of a linear classifier: {evaluate(release, 'digits', models=['linear'], repeats=1).means['linear']} %"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "limbeck-example"))
