"""Chen, Orekondy and Fritz, "GS-WGAN", supplement: Table A1. Accuracy as a share of thirteen classifiers on MNIST, epsilon 10."""

from __future__ import annotations

from benchmarks.papers.spec import AVERAGE, REAL, SHARE, Cell, Run, Table, make_table

PAPER = (
    "Chen, Orekondy and Fritz, GS-WGAN: A Gradient-Sanitized Approach for Learning Differentially Private Generators"
)
METHODS = {
    "Real": REAL,
    "GAN (not private)": "gan",
    "G-PATE": "gpate",
    "DP-SGD GAN": "dpcgan",
    "DP-MERF": "dpmerf",
    "DP-MERF AE": "dpmerf-ae",
    "GS-WGAN": "gswgan",
}
MODELS = {
    "MLP": "mlp-100",
    "CNN": "cnn",
    "adaboost": "adaboost",
    "bagging": "bagging",
    "bernoulli nb": "bernoulli-nb",
    "decision tree": "decision-tree",
    "gaussian nb": "gaussian-nb",
    "gbm": "gbm",
    "lda": "lda",
    "linear svc": "linear-svc",
    "logistic reg": "logistic-reg",
    "random forest": "random-forest",
    "xgboost": "xgboost",
}


def _cell(row: str, column: str) -> Cell:
    method = METHODS[column]
    private = method not in (REAL, "gan")
    run = Run(
        name=f"{method}/mnist",
        data="mnist",
        method=method,
        models=tuple(MODELS.values()),
        protocol="gs-wgan",
        epsilon=10.0 if private else None if method == REAL else float("inf"),
        bulk=True,
    )
    return Cell(run=run, model=AVERAGE if row == "Average" else MODELS[row])


TABLES: tuple[Table, ...] = (
    make_table(
        name="gswgan-a1",
        title="Thirteen classifiers, MNIST, epsilon 10",
        source=f"{PAPER}, supplement, Table A1",
        columns=tuple(METHODS),
        rows={
            "MLP": "0.98 | 0.84 | 0.25 | 0.60 | 0.63 | 0.54 | 0.79",
            "CNN": "0.99 | 0.84 | 0.51 | 0.64 | 0.63 | 0.68 | 0.80",
            "adaboost": "0.73 | 0.28 | 0.11 | 0.32 | 0.38 | 0.21 | 0.21",
            "bagging": "0.93 | 0.46 | 0.36 | 0.44 | 0.43 | 0.33 | 0.45",
            "bernoulli nb": "0.84 | 0.80 | 0.71 | 0.62 | 0.76 | 0.50 | 0.77",
            "decision tree": "0.88 | 0.40 | 0.13 | 0.36 | 0.29 | 0.27 | 0.35",
            "gaussian nb": "0.56 | 0.71 | 0.61 | 0.37 | 0.57 | 0.17 | 0.64",
            "gbm": "0.91 | 0.50 | 0.11 | 0.45 | 0.36 | 0.20 | 0.39",
            "lda": "0.88 | 0.84 | 0.60 | 0.59 | 0.72 | 0.55 | 0.78",
            "linear svc": "0.92 | 0.81 | 0.24 | 0.56 | 0.58 | 0.43 | 0.76",
            "logistic reg": "0.93 | 0.83 | 0.26 | 0.60 | 0.66 | 0.55 | 0.79",
            "random forest": "0.97 | 0.39 | 0.33 | 0.63 | 0.66 | 0.45 | 0.52",
            "xgboost": "0.91 | 0.44 | 0.15 | 0.60 | 0.70 | 0.54 | 0.50",
            "Average": "0.88 | 0.63 | 0.34 | 0.52 | 0.57 | 0.42 | 0.60",
        },
        cell_of=_cell,
        unit=SHARE,
        decimals=3,
        note="Real: records of the training set, without privacy. The paper's own accountant amplifies each image of a batch "
        "although one critic answers for all of them, so its GS-WGAN column stands for a far larger epsilon than 10. "
        "`cpu` scale: 1000 records per class, one fit of each classifier.",
    ),
)
