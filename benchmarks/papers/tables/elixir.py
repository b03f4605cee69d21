"""Elixir beside the papers' methods, all of them made and scored here at one budget. No paper prints these figures.

50 records per class but for PSG, whose training on the set between two answers would take hours; Adult has 100 rows. Elixir's
second sets and its figures with the papers' training stand in docs/flagship.md.
"""

from __future__ import annotations

import functools

from benchmarks.papers.spec import NOT_PRINTED, Cell, Run, Settings, Table, make_table

DATA = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist", "CIFAR-10": "cifar10", "Adult": "adult"}
METHODS = {
    "Elixir": "elixir",
    "NDPDC": "ndpdc",
    "DP-MERF": "dpmerf",
    "LDPDC": "ldpdc",
    "PSG (10 per class)": "psg",
    "DataLens": "datalens",
    "GS-WGAN": "gswgan",
    "G-PATE": "gpate",
    "PATE-GAN": "pategan",
}
PICTURES_ONLY = ("gswgan",)
EPSILONS = {"elixir-1a": 0.2, "elixir-1b": 1.0, "elixir-1c": 10.0}
# The scales are made for pictures: a linear layer has a width of its own, and a row fewer numbers than DataLens' k.
ON_TABLES: dict[str, dict[str, Settings]] = {
    "ndpdc": {"small": {"I": 10, "width": 0}, "cpu": {"I": 2000, "width": 0}},
    "datalens": {"full": {"k": 27}},
}


def _cell(epsilon: float, row: str, column: str) -> Cell:
    method, data = METHODS[row], DATA[column]
    table = data == "adult"
    if table and method in PICTURES_ONLY:
        return NOT_PRINTED
    run = Run(
        name=f"{method}/{data}",
        data=data,
        method=method,
        models=("mlp", "linear") if table else ("convnet",),
        protocol="limbeck",
        epsilon=epsilon,
        settings={"per_class": 10 if method == "psg" else 50},
        at=ON_TABLES.get(method, {}) if table else {},
    )
    return Cell(run=run, model=run.models[0])


TABLES: tuple[Table, ...] = tuple(
    make_table(
        name=name,
        title=f"Elixir beside the papers' methods, epsilon {epsilon:g}",
        source="Limbeck's own comparison; no paper prints it",
        columns=tuple(DATA),
        rows=dict.fromkeys(METHODS, " | ".join("-" * len(DATA))),
        cell_of=functools.partial(_cell, epsilon),
        note="ConvNet, on Adult the MLP. `cpu` scale: NDPDC has 2000 iterations of width 64, PSG 40 runs of width 32; all others "
        "run as they were shipped on the day they were measured; their settings stand below.",
    )
    for name, epsilon in EPSILONS.items()
)
