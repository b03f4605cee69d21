"""curve: how good a set was after how much epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Json, Label, Root, SchemaPath, data_reference
from limbeck.cli.output import emit, reporter, std_text, table


def register(app: typer.Typer) -> None:
    app.command()(curve)


def curve(
    release: Annotated[Path, typer.Argument(help="A release whose method keeps sets of the way there (psg, dc, dsa).")],
    test: Annotated[str, typer.Option("--test", help="Real test records: a named set (its test split) or a path.")],
    model: Annotated[str, typer.Option("--model", help="What to train on each set.")] = "convnet",
    preset: Annotated[str | None, typer.Option("--preset", help="How to train; see 'limbeck evaluate --help'.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="How many networks for each set.")] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first network; the others follow.")] = 0,
    device: Annotated[str, typer.Option("--device", help="Where to compute.")] = "cpu",
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the curve to this JSON file.")] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Also draw the curve into this PNG file.")] = None,
    as_json: Json = False,
) -> None:
    """Score the sets that a run kept on the way, against the epsilon that it had spent by then. Costs nothing."""
    from limbeck.evaluate.privacy_curve import curve_of
    from limbeck.files import as_json as json_bytes
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_result_place
    from limbeck.report.figure import Line, line_picture
    from limbeck.runs.execution import checked_device

    checked_device(device)
    for path in (out, picture):
        require_result_place(path)
    source = data_reference(test, schema, label, root).source("test")
    ready(source)
    with reporter() as shown:
        result = curve_of(release, source, model, preset, repeats, seed, device, shown)
    points = result["points"]
    if out is not None:
        write_atomic(out, json_bytes(result))
    if picture is not None:
        by_epsilon = all(isinstance(point["epsilon"], float) for point in points)
        line = Line(
            x=[point["epsilon" if by_epsilon else "step"] for point in points],
            mean=[point["accuracy"] for point in points],
            std=[point["std"] for point in points],
        )
        titles = {"title": result["title"], "x_title": result["x"] if by_epsilon else "answers"}
        write_atomic(picture, line_picture({model: line}, y_title="accuracy, %", **titles))
    rows = [("answers", "epsilon", "accuracy", "std")] + [
        (point["step"], point["epsilon"], f"{point['accuracy']:.2f}", std_text(point["std"])) for point in points
    ]
    emit(as_json, result, [result["title"], *table(rows)])
