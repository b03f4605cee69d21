"""Wang et al., "DataLens": Table 1. Accuracy as a share, of a classifier trained on generated data; delta = 1e-5.

The paper reports the best of many epochs on the test set; our figures are scored at the end.
"""

from __future__ import annotations

from benchmarks.papers.spec import NO_DATA, SHARE, Cell, Run, Table, make_table

PAPER = "Wang et al., DataLens: Scalable Privacy Preserving Training via Gradient Compression and Aggregation"
DATA = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist"}
METHODS = {
    "DC-GAN": "dcgan",
    "DP-GAN": "dpgan",
    "PATE-GAN": "pategan",
    "G-PATE": "gpate",
    "GS-WGAN": "gswgan",
    "DataLens": "datalens",
}


def _cell(row: str, column: str) -> Cell:
    data, budget = row.split(", epsilon ")
    if data not in DATA:
        return NO_DATA
    method = METHODS[column]
    # The non-private column is printed once for both budgets.
    epsilon = float("inf") if method == "dcgan" else float(budget)
    run = Run(
        name=f"{method}-eps{epsilon:g}/{DATA[data]}",
        data=DATA[data],
        method=method,
        models=("cnn",),
        protocol="datalens",
        epsilon=epsilon,
        bulk=True,
    )
    return Cell(run=run, model="cnn")


TABLES: tuple[Table, ...] = (
    make_table(
        name="datalens-1",
        title="Generative models",
        source=f"{PAPER}, Table 1",
        columns=tuple(METHODS),
        rows={
            "MNIST, epsilon 1": "0.9653 | 0.4036 | 0.4168 | 0.5810 | 0.1432 | 0.7123",
            "MNIST, epsilon 10": "0.9653 | 0.8011 | 0.6667 | 0.8092 | 0.8075 | 0.8066",
            "Fashion-MNIST, epsilon 1": "0.8032 | 0.1053 | 0.4222 | 0.5567 | 0.1661 | 0.6478",
            "Fashion-MNIST, epsilon 10": "0.8032 | 0.6098 | 0.6218 | 0.6934 | 0.6579 | 0.7061",
            "CelebA-Gender, epsilon 1": "0.8149 | 0.5330 | 0.6068 | 0.6702 | 0.5901 | 0.7058",
            "CelebA-Gender, epsilon 10": "0.8149 | 0.5211 | 0.6535 | 0.6897 | 0.6136 | 0.7287",
            "CelebA-Hair, epsilon 1": "0.7678 | 0.3447 | 0.3789 | 0.4985 | 0.4203 | 0.6061",
            "CelebA-Hair, epsilon 10": "0.7678 | 0.3920 | 0.3900 | 0.6217 | 0.5225 | 0.6224",
            "Places365, epsilon 1": "0.7404 | 0.3200 | 0.3238 | 0.3483 | 0.3375 | 0.4313",
            "Places365, epsilon 10": "0.7404 | 0.3292 | 0.3796 | 0.3883 | 0.3725 | 0.4875",
        },
        cell_of=_cell,
        unit=SHARE,
        decimals=4,
        note="DC-GAN is not private; the paper prints it once per data set. The paper takes the best epoch on the test set, ours "
        "is the last one; both train a small CNN. `cpu` scale: 1000 records per class.",
    ),
)
