"""Chen, Kerkouche and Fritz, "Private Set Generation with Discriminative Information": Table 1, in its two parts.

Test accuracy in percent of ConvNets trained on the set; delta = 1e-5. Generators are used with 6000 records per class ("full").
"""

from __future__ import annotations

from benchmarks.papers.spec import NOT_PRINTED, REAL, Cell, Run, Settings, Table, make_table

PAPER = "Chen, Kerkouche and Fritz, Private Set Generation with Discriminative Information"
DATA = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist"}
METHODS = {
    "Real": REAL,
    "DP-SGD": "dpsgd",
    "DP-CGAN": "dpcgan",
    "G-PATE": "gpate",
    "DataLens": "datalens",
    "GS-WGAN": "gswgan",
    "DP-MERF": "dpmerf",
    "DP-Sinkhorn": "dpsinkhorn",
    "PSG": "psg",
    "PSG (20 per class)": "psg",
}
ABSENT = {("DP-CGAN", 1.0), ("GS-WGAN", 1.0), ("DP-Sinkhorn", 1.0)}  # the paper leaves these out


def _run(row: str, data: str, epsilon: float, size: str) -> Run:
    method = METHODS[row]
    made, bulk = METHODS[row] != "dpsgd", size == "full"
    settings: Settings = {"per_class": int(size)} if made and not bulk else {}
    return Run(
        name=f"{method}-{size}/{data}" if method == REAL else f"{method}-{size}-eps{epsilon:g}/{data}",
        data=data,
        method=method,
        models=("convnet",) if made else ("model",),
        protocol="psg",
        epsilon=None if method == REAL else epsilon,
        settings=settings,
        bulk=bulk and made,
    )


def _budget(row: str, column: str) -> Cell:
    data, epsilon = column.split(", epsilon ")
    if (row, float(epsilon)) in ABSENT:
        return NOT_PRINTED
    return Cell(run=_run(row, DATA[data], float(epsilon), "20" if METHODS[row] == "psg" else "full"), model="convnet")


def _size(row: str, column: str) -> Cell:
    data, size = column.split(", ")
    made = METHODS[row] != "dpsgd"
    if (METHODS[row] == "psg" and size == "full") or (not made and size != "full"):
        return NOT_PRINTED
    return Cell(run=_run(row, DATA[data], 10.0, size), model="convnet" if made else "model")


TABLES: tuple[Table, ...] = (
    make_table(
        name="psg-1a",
        title="Privacy budgets",
        source=f"{PAPER}, Table 1 (a)",
        columns=("MNIST, epsilon 1", "MNIST, epsilon 10", "Fashion-MNIST, epsilon 1", "Fashion-MNIST, epsilon 10"),
        rows={
            "DP-CGAN": "- | 52.5 | - | 50.2",
            "G-PATE": "58.8 | 80.9 | 58.1 | 69.3",
            "DataLens": "71.2 | 80.7 | 64.8 | 70.6",
            "GS-WGAN": "- | 84.9 | - | 63.1",
            "DP-MERF": "72.7 | 85.7 | 61.2 | 72.4",
            "DP-Sinkhorn": "- | 83.2 | - | 71.1",
            "PSG (20 per class)": "80.9 | 95.6 | 70.2 | 77.7",
        },
        cell_of=_budget,
        note="G-PATE's figures at epsilon 1 are as printed here; DataLens prints 0.5810 and 0.5567 for them. `cpu` scale: "
        "generators make 1000 records per class; PSG matches a ConvNet of width 32 in 40 runs.",
    ),
    make_table(
        name="psg-1b",
        title="Records per class, epsilon 10",
        source=f"{PAPER}, Table 1 (b)",
        columns=tuple(f"{data}, {size}" for data in DATA for size in ("10", "20", "full")),
        rows={
            "Real": "93.6 | 95.9 | 99.6 | 74.4 | 77.4 | 93.5",
            "DP-SGD": "- | - | 96.5 | - | - | 82.9",
            "DP-CGAN": "57.4 | 57.1 | 52.5 | 51.4 | 53.0 | 50.2",
            "GS-WGAN": "83.3 | 85.5 | 84.9 | 58.7 | 59.5 | 63.1",
            "DP-MERF": "80.2 | 83.2 | 85.7 | 66.6 | 67.9 | 72.4",
            "PSG": "94.9 | 95.6 | - | 75.6 | 77.7 | -",
        },
        cell_of=_size,
        note="Real: records of the training set, drawn at random, without privacy. DP-SGD is a classifier trained on all "
        "records, not a set. `cpu` scale: full is 1000 records per class instead of 6000; PSG matches a ConvNet of width 32 in "
        "40 runs (R = 40, T = 5, K = 20, eta 1, start 0.3).",
    ),
)
