"""sweep: accuracy against epsilon, noise, iterations or set size."""

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
    MethodOrDefault,
    Models,
    Networks,
    OnlyPrice,
    PresetName,
    Root,
    SchemaPath,
    SeenSize,
    Set,
    TestRecords,
    VaultPath,
    data_reference,
    epsilon_value,
    names_in,
    require_own_ledger,
    settings_from,
    text_of,
)
from limbeck.cli.output import Stopped, emit, reporter, table
from limbeck.errors import BadInput
from limbeck.privacy.unit import adjacency_and_unit


def register(app: typer.Typer) -> None:
    app.command()(sweep)


def sweep(
    vary: Annotated[
        list[str],
        typer.Option("--vary", help="What to vary, as key=value,value: epsilon or a setting. May be repeated."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The sweep's folder: a new one, or one to go on with.")],
    data: DataOrVault = None,
    vault: VaultPath = None,
    method: MethodOrDefault = None,
    repeat: Annotated[
        int, typer.Option("--repeat", help="How many sets to make at every point. Each is paid for.")
    ] = 1,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    settings: Set = None,
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
    """Make and score sets at many points: accuracy against epsilon, noise, iterations, set size.

    Every set is booked and paid for. The whole price is shown and checked first. The same command goes on after a stop.
    """
    from limbeck.experiments.sweep import run_sweep
    from limbeck.experiments.sweep_plan import Sweep
    from limbeck.methods import default_method
    from limbeck.runs.execution import checked_device
    from limbeck.runs.request import Request, RunOptions

    require_own_ledger(vault, "sweep", "sweep")
    checked_device(device)
    reference = data_reference(data, schema, label, root)
    request = Request(data=reference, options=RunOptions(ledger=text_of(ledger), device=device))
    assert reference.data is not None
    spec = Sweep(
        method=method or default_method(reference.source().schema),
        vary=_varied(vary),
        settings=settings_from(settings, None),
        epsilon=epsilon_value(epsilon),
        delta=delta,
        repeat=repeat,
        test=test or reference.data,
        models=None if models is None else names_in(models),
        preset=preset,
        networks=networks,
        size=size,
    )
    with reporter() as shown:
        try:
            result = run_sweep(spec, request, out, shown, price)
        except KeyboardInterrupt:
            raise Stopped("Stopped; what was made and scored is kept. The same command goes on.") from None
    emit(as_json, result, _lines(result, out, price))


def _varied(pairs: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        key, equals, values = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise BadInput(f"--vary takes key=value,value, got '{pair}'.", "limbeck sweep --help")
        if key in found:
            raise BadInput(f"'{key}' is varied twice; give all its values in one --vary.")
        found[key] = names_in(values)
    return found


def _lines(result: dict[str, Any], out: Path, only_price: bool) -> list[str]:
    from limbeck.report.comparison_table import score_words

    keys = list(result["points"][0]["values"])
    models = [] if only_price else list(result["points"][0]["accuracy"])
    rows: list[tuple[object, ...]] = [(*keys, *(["booked"] if only_price or keys != ["epsilon"] else []), *models)]
    booked = len(rows[0]) > len(keys) + len(models)
    for point in result["points"]:
        scores = [score_words(point["accuracy"].get(model), "+-") for model in models]
        rows.append((*point["values"].values(), *([point["epsilon"]] if booked else []), *scores))
    cost = result["price"]
    adjacency = adjacency_and_unit(cost["adjacency"], cost["unit"])
    total = f"{cost['sets']} sets, epsilon {cost['epsilon']} and delta {cost['delta']} in all, {adjacency}"
    if only_price:
        left = cost["to_pay"]
        return [*table(rows), f"{total}; still to pay: epsilon {left['epsilon']}, delta {left['delta']}"]
    owners = ["OWNER'S EDITION: scored on private records. Never share it."] if "edition" in result else []
    return [*owners, *table(rows), total, f"figures  {out / 'sweep.json'}", f"curve    {out / 'curve.png'}"]
