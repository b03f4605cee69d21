"""fidelity: how much a set is like the real records, for the owner's eyes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Json, Label, Root, SchemaPath, data_reference
from limbeck.cli.output import emit, reporter, table


def register(app: typer.Typer) -> None:
    app.command()(fidelity)


def fidelity(
    release: Annotated[Path, typer.Argument(help="A release folder with a synthetic set.")],
    data: Annotated[
        str, typer.Option("--data", help="The private records that the set was made from: a named set or a path.")
    ],
    test: Annotated[
        str | None,
        typer.Option("--test", help="Real records that it was not made from. Default: the test split of --data."),
    ] = None,
    inception: Annotated[
        Path | None,
        typer.Option("--inception", help="Weights of Inception-v3 as a safetensors file; adds the FID proper."),
    ] = None,
    most: Annotated[
        int | None, typer.Option("--most", help="Compare with at most this many real test records. Default: all.")
    ] = None,
    judge_epochs: Annotated[
        int | None,
        typer.Option("--judge-epochs", help="How long to train the judge. Default: 5 epochs, more for small sets."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="Where to train the judge.")] = "cpu",
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the result to this JSON file.")] = None,
    as_json: Json = False,
) -> None:
    """Score a set against the private records: Inception Score, Frechet distance, precision, recall, memorisation.

    It reads private records and costs no budget, so the result is yours alone: never share it.
    """
    from limbeck.evaluate.fidelity import Options, fidelity_of_release
    from limbeck.files import as_json as json_bytes
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_result_place
    from limbeck.runs.execution import checked_device

    checked_device(device)
    require_result_place(out, "Figures of private records are")
    options = Options(inception=inception, most=most, epochs=judge_epochs, device=device)
    train = data_reference(data, schema, label, root).source("train")
    tested = data_reference(test or data, schema, label, root).source("test")
    ready(train, tested)
    with reporter() as shown:
        result = fidelity_of_release(release, train, tested, options, shown)
    if out is not None:
        write_atomic(out, json_bytes(result))
    emit(as_json, result, _lines(result))


def _lines(result: dict[str, Any]) -> list[str]:
    ours, real, judge = result["set"], result["real_train"], result["judge"]
    rows: list[tuple[object, ...]] = [("", "set", "as many real training records")]
    rows.append(("inception score", _score(ours["inception_score"]), _score(real["inception_score"])))
    name = "frechet_classifier_distance"
    rows.append(("Frechet classifier distance (no FID)", f"{ours[name]:.4g}", f"{real[name]:.4g}"))
    if result["fid"] is not None:
        fid = result["fid"]
        rows.append((f"FID ({fid['weights']} weights)", f"{fid['set']:.4g}", f"{fid['real_train']:.4g}"))
    for name in ("precision", "recall"):
        rows.append((name, *(f"{side['precision_recall'][name]:.3f}" for side in (ours, real))))
    nearest = result["nearest"]
    verdict = "MORE than chance has it: look at the set" if nearest["suspicious"] else "no more than chance has it"
    return [
        "OWNER'S EDITION: measured on private records. Never share it.",
        *table(rows),
        f"real test records: inception score {_score(result['real_test']['inception_score'])}",
        f"nearest real records: {nearest['from_train']} of {nearest['neighbours']} are training records, "
        f"{nearest['expected']:.1f} expected, p = {nearest['p_value']:.3g}: {verdict}",
        f"near copies of one training record: {nearest['copies']}, of one test record: {nearest['heldout_copies']}",
        f"judge: {judge['kind']}, {judge['epochs']} epochs, {judge['test_accuracy']:.2f} % of the test records right",
    ]


def _score(values: dict[str, Any]) -> str:
    spread = "" if values["std"] is None else f" +- {values['std']:.3f}"
    return f"{values['mean']:.3f}{spread}"
