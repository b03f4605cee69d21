"""continual: classes that come in stages, each from another party."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.options import (
    DataOrVault,
    Delta,
    Json,
    Label,
    LedgerPath,
    Root,
    SchemaPath,
    SetOfMethod,
    VaultPath,
    data_reference,
    epsilon_value,
    settings_by_method,
    text_of,
)
from limbeck.cli.output import Stopped, emit, reporter, table
from limbeck.errors import BadInput


def register(app: typer.Typer) -> None:
    app.command()(continual)


def continual(
    out: Annotated[Path, typer.Option("--out", help="Where releases and curves go; the same course goes on in it.")],
    epsilon: Annotated[str, typer.Option("--epsilon", help="The budget of every stage, for each method.")],
    data: DataOrVault = None,
    vault: VaultPath = None,
    methods: Annotated[
        str, typer.Option("--methods", help="Methods to compare, with commas; see 'limbeck methods'.")
    ] = "psg,dpmerf,dpsgd",
    delta: Delta = 1e-5,
    stages: Annotated[int, typer.Option("--stages", help="Into how many stages the classes are split, in order.")] = 5,
    settings: SetOfMethod = None,
    model: Annotated[
        str, typer.Option("--model", help="The classifier that is trained on synthetic sets.")
    ] = "convnet",
    preset: Annotated[str, typer.Option("--preset", help="How it is trained; see 'limbeck evaluate --help'.")] = "cpu",
    repeats: Annotated[int, typer.Option("--repeats", help="How many classifiers are averaged.")] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first classifier; the others follow.")] = 0,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    device: Annotated[str, typer.Option("--device", help="Where to compute: cpu, cuda, cuda:1 ...")] = "cpu",
    insecure_seed: Annotated[
        int | None, typer.Option("--insecure-seed", help="For tests only: predictable noise; nothing is releasable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Learn classes in stages, each from another party: sets per stage against a model that is handed on."""
    from limbeck.experiments.continual import run_continual
    from limbeck.experiments.continual_plan import Continual
    from limbeck.runs.request import Request, RunOptions

    if vault is not None:
        raise BadInput(
            "The parties of a course are parts of one data set with budgets of their own, and a vault in another process "
            "holds one data set with one budget. Run it where the ledger is."
        )
    reference = data_reference(data, schema, label, root)
    request = Request(
        data=reference,
        options=RunOptions(ledger=text_of(ledger), device=device, insecure_seed=insecure_seed),
    )
    value = epsilon_value(epsilon)
    assert value is not None
    spec = Continual(
        request=request,
        epsilon=value,
        delta=delta,
        methods=settings_by_method(methods, settings),
        stages=stages,
        model=model,
        preset=preset,
        repeats=repeats,
        seed=seed,
    )
    try:
        with reporter() as shown:
            result = run_continual(spec, out, shown)
    except KeyboardInterrupt:
        raise Stopped("Stopped; finished stages are kept. Give the same command again to go on.") from None
    emit(as_json, result, _lines(result, out))


def _lines(result: dict[str, Any], out: Path) -> list[str]:
    stages = [f"stage {place + 1}" for place in range(len(result["parties"]))]
    rows: list[tuple[object, ...]] = [("method", *stages, "epsilon of all stages")]
    for name, curve in result["curves"].items():
        rows.append((name, *(f"{mean:.2f}" for mean in curve["mean"]), curve["epsilon"]))
    owners = ["OWNER'S EDITION: scored on private records. Never share it."] if "edition" in result else []
    return [
        *owners,
        "mean accuracy on the stages so far, in percent:",
        *table(rows),
        f"delta {result['delta']:g}, {result['adjacency']}. Stages, {result['composition']}.",
        "Methods compared on the same records do add up in the ledger.",
        f"curves    {out / 'continual.png'}",
        f"figures   {out / 'continual.json'}",
    ]
