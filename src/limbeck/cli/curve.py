"""curve: how good a set was after how much epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Json, Label, Root, SchemaPath, SeenSize, data_reference
from limbeck.cli.output import emit, reporter, std_text, table

if TYPE_CHECKING:
    from limbeck.evaluate.privacy_curve import PrivacyCurve


def register(app: typer.Typer) -> None:
    app.command()(curve)


def curve(
    release: Annotated[Path, typer.Argument(help="A release whose method keeps sets of the way there (psg, dc, dsa).")],
    test: Annotated[str, typer.Option("--test", help="Real test records: a named set (its test split) or a path.")],
    model: Annotated[str, typer.Option("--model", help="What to train on each set.")] = "convnet",
    preset: Annotated[str | None, typer.Option("--preset", help="How to train; see 'limbeck evaluate --help'.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="How many networks for each set.")] = 3,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first network; the others follow.")] = 0,
    size: SeenSize = None,
    device: Annotated[str, typer.Option("--device", help="Where to compute.")] = "cpu",
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the curve to this JSON file.")] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="Also draw the curve into this PNG file.")] = None,
    as_json: Json = False,
) -> None:
    """Score the sets that a run kept on the way, against the epsilon that it had spent by then. Costs nothing."""
    from limbeck.evaluate.privacy_curve import privacy_curve
    from limbeck.evaluate.protocol import EvaluationProtocol
    from limbeck.files import as_json as json_bytes
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_result_path
    from limbeck.release.statement import public_schema
    from limbeck.runs.execution import checked_device

    checked_device(device)
    for path in (out, picture):
        require_result_path(path)
    source = data_reference(test, schema, label, root).source("test", public_schema(release))
    ready(source)
    protocol = EvaluationProtocol(models=(model,), preset=preset, repeats=repeats, seed=seed, device=device, size=size)
    with reporter() as shown:
        result = privacy_curve(release, source, protocol, shown)
    if out is not None:
        write_atomic(out, json_bytes(result.to_dict()))
    if picture is not None:
        write_atomic(picture, _picture(result))
    rows: list[tuple[object, ...]] = [("answers", "epsilon", "accuracy", "std")]
    rows += [
        (point.step, point.epsilon, f"{point.accuracy.mean:.2f}", std_text(point.accuracy.std))
        for point in result.points
    ]
    form = [] if result.form is None else [f"trained on {result.form} rows"]
    emit(as_json, result.to_dict(), [result.title or "", *table(rows), *form])


def _picture(curve: PrivacyCurve) -> bytes:
    from limbeck.evaluate.reading import finite
    from limbeck.report.figure import Line, line_picture

    line = Line(
        x=[finite(point.epsilon if curve.by_epsilon else point.step) or 0.0 for point in curve.points],
        mean=[point.accuracy.mean or 0.0 for point in curve.points],
        std=[point.accuracy.std for point in curve.points],
    )
    x_title = (curve.x or "") if curve.by_epsilon else "answers"
    return line_picture({curve.model or "": line}, title=curve.title or "", x_title=x_title, y_title="accuracy, %")
