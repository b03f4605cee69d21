"""Sets of several methods side by side, each method's first pictures of every class in a column of its own:

python -m benchmarks.pictures docs/images/side-by-side-mnist.png Elixir=RELEASE NDPDC=RELEASE ...
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

from limbeck.release.reader import read_release
from limbeck.report.pictures import image_grid

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PER_CLASS = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", nargs="+", help="TITLE=RELEASE")
    options = parser.parse_args()
    figure, panels = plt.subplots(1, len(options.sets), figsize=(2.2 * len(options.sets), 4), layout="constrained")
    for axes, (title, _, folder) in zip(panels, (word.partition("=") for word in options.sets), strict=True):
        made = read_release(Path(folder))
        axes.imshow(image_grid(made.x, made.y, made.schema, columns=PER_CLASS), cmap="gray", interpolation="nearest")
        axes.set_title(f"{title}\nepsilon {made.certificate.epsilon:.2f}", fontsize=9)
        axes.axis("off")
    figure.savefig(options.out, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
