"""compare: methods beside one another on the same data, budget and models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.options import (
    DataOrVault,
    Delta,
    Epsilon,
    Json,
    Label,
    LedgerPath,
    Models,
    Networks,
    OnlyPrice,
    PresetName,
    Root,
    SchemaPath,
    SeenSize,
    SetOfMethod,
    TestRecords,
    VaultPath,
    data_reference,
    epsilon_value,
    names_in,
    require_own_ledger,
    settings_by_method,
    text_of,
)
from limbeck.cli.output import Stopped, emit, reporter, table
from limbeck.errors import BadInput
from limbeck.privacy.unit import adjacency_and_unit


def register(app: typer.Typer) -> None:
    app.command()(compare)


def compare(
    methods: Annotated[str, typer.Option("--methods", help="Methods to compare, with commas; see 'limbeck methods'.")],
    out: Annotated[Path, typer.Option("--out", help="The comparison's folder: a new one, or one to go on with.")],
    data: DataOrVault = None,
    vault: VaultPath = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    repeats: Annotated[
        int, typer.Option("--repeats", help="How many sets to make by each method. Each is paid for.")
    ] = 1,
    settings: SetOfMethod = None,
    test: TestRecords = None,
    models: Models = None,
    preset: PresetName = None,
    networks: Networks = None,
    size: SeenSize = None,
    price: OnlyPrice = False,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    device: Annotated[str, typer.Option("--device", help="Where to compute.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Make and score several sets by each of some methods: accuracy, its spread over sets, seconds, epsilon.

    Every set is booked and paid for. The whole price is shown and checked first. The same command goes on after a stop.
    """
    from limbeck.experiments.comparison import run_comparison
    from limbeck.experiments.comparison_plan import Comparison
    from limbeck.runs.execution import checked_device
    from limbeck.runs.request import Request, RunOptions

    require_own_ledger(vault, "comparison", "compare")
    names = names_in(methods)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise BadInput(
            f"--methods {methods} names '{twice[0]}' twice; 'limbeck sweep' compares settings of one method."
        )
    checked_device(device)
    reference = data_reference(data, schema, label, root)
    assert reference.data is not None
    spec = Comparison(
        methods=settings_by_method(methods, settings),
        epsilon=epsilon_value(epsilon),
        delta=delta,
        repeats=repeats,
        test=test or reference.data,
        models=None if models is None else names_in(models),
        preset=preset,
        networks=networks,
        size=size,
    )
    request = Request(data=reference, options=RunOptions(ledger=text_of(ledger), device=device))
    with reporter() as shown:
        try:
            result = run_comparison(spec, request, out, shown, price)
        except KeyboardInterrupt:
            raise Stopped("Stopped; what was made and scored is kept. The same command goes on.") from None
    emit(as_json, result, _lines(result, out, price))


def _lines(result: dict[str, Any], out: Path, only_price: bool) -> list[str]:
    from limbeck.report.comparison_table import models_of, score_words, seconds_words, size_sentences

    cost = result["price"]
    total = (
        f"{cost['sets']} sets, epsilon {cost['epsilon']} and delta {cost['delta']} in all, "
        f"{adjacency_and_unit(cost['adjacency'], cost['unit'])}"
    )
    if only_price:
        rows = [("method", "epsilon of a set"), *((row["method"], row["epsilon"]) for row in result["methods"])]
        left = cost["to_pay"]
        return [*table(rows), f"{total}; still to pay: epsilon {left['epsilon']}, delta {left['delta']}"]
    models = models_of(result)
    lines: list[tuple[object, ...]] = [("method", *models, "epsilon", "seconds", "sets")]
    for row in result["methods"]:
        scores = [score_words(row["accuracy"].get(model), "+-") for model in models]
        lines.append((row["method"], *scores, row["epsilon"], seconds_words(row["seconds"]), row["sets"]))
    owners = ["OWNER'S EDITION: scored on private records. Never share it."] if "edition" in result else []
    files = [f"{what:<9}{out / name}" for what, name in WRITTEN]
    return [*owners, *table(lines), *filter(None, size_sentences(result)), total, *files]


WRITTEN = (("figures", "compare.json"), ("table", "compare.md"), ("picture", "compare.png"))
