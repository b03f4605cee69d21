"""evaluate: what a set is worth, in the accuracy of models trained on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Json, Label, Root, SchemaPath, data_reference
from limbeck.cli.output import emit, reporter, std_text, table
from limbeck.errors import BadInput

if TYPE_CHECKING:
    from limbeck.data import DataSource


def register(app: typer.Typer) -> None:
    app.command()(evaluate)


def evaluate(
    release: Annotated[Path | None, typer.Argument(help="A release folder. Leave it out to train on --real.")] = None,
    test: Annotated[
        str | None,
        typer.Option(
            "--test", help="Real test records: a named set (its test split) or a path. Default: those of --real."
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            help="What to train, with commas: all (nineteen), nets (the papers' six), classical (GS-WGAN's thirteen), "
            "or names such as convnet, resnet18, mlp, random-forest. Default: the preset's, else a few networks.",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats", help="How often to train each; those without chance once. Default: the preset's, mostly 3."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="How to train networks: paper (long), full, cpu (short), brief (real data); or a paper's own: psg, "
            "psg-full, dpdc, datalens, gs-wgan. Default: cpu on a CPU, else paper.",
        ),
    ] = None,
    calibrated: Annotated[
        bool,
        typer.Option(
            "--calibrated", help="Also divide by the accuracy on the real training records. Reads them: for the owner."
        ),
    ] = False,
    real: Annotated[
        str | None,
        typer.Option(
            "--real",
            help="The real training records, for --calibrated; without a release: train on them alone. For the owner.",
        ),
    ] = None,
    subsample: Annotated[
        int | None,
        typer.Option(
            "--subsample",
            help="Use at most this many real training records. Default: 10,000 for slow models, else all.",
        ),
    ] = None,
    control: Annotated[
        bool, typer.Option("--control", help="Also train on noise with the same labels: what the labels alone teach.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first fit; the others follow.")] = 0,
    device: Annotated[str, typer.Option("--device", help="Where to compute.")] = "cpu",
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the result to this JSON file.")] = None,
    as_json: Json = False,
) -> None:
    """Train models on a synthetic set alone and score them on real test records; a released model is scored itself."""
    from limbeck.evaluate.model import evaluate_model
    from limbeck.evaluate.real import evaluate_real
    from limbeck.evaluate.release import Yardsticks, evaluate_release
    from limbeck.files import as_json as json_bytes
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_result_place
    from limbeck.release.model import is_model
    from limbeck.runs.execution import checked_device

    checked_device(device)
    require_result_place(out)
    _refuse_odd_pairs(release, test, real, calibrated, subsample, control)
    text = {name: None if path is None else str(path) for name, path in (("schema", schema), ("root", root))}
    tested, trained = _sources(test, real, calibrated, {**text, "label": label})
    ready(tested, trained)
    names = None if models is None else [name.strip() for name in models.split(",") if name.strip()]
    with reporter() as shown:
        if release is None:
            assert trained is not None
            result = evaluate_real(trained, tested, names, preset, repeats, seed, device, shown, subsample)
        elif is_model(release):
            if names is not None or preset is not None or calibrated or control:
                raise BadInput(
                    f"{release} is a trained model, which is scored itself; leave --models and --preset, --calibrated "
                    "and --control out."
                )
            result = evaluate_model(release, tested, device)
        else:
            beside = Yardsticks(real=trained, subsample=subsample, control=control)
            result = evaluate_release(release, tested, names, preset, repeats, seed, device, shown, beside)
    if out is not None:
        write_atomic(out, json_bytes(result))
    emit(as_json, result, _lines(result))


def _refuse_odd_pairs(
    release: Path | None, test: str | None, real: str | None, calibrated: bool, subsample: int | None, control: bool
) -> None:
    if release is None and real is None:
        raise BadInput("Give a release folder, or real training records by --real.", "limbeck evaluate --help")
    if release is None and (calibrated or control):
        raise BadInput("--calibrated and --control stand beside a release; give its folder, or leave them out.")
    if release is not None and real is not None and not calibrated:
        raise BadInput("Beside a release, --real is for --calibrated; add that, or leave the release or --real out.")
    if release is not None and test is None:
        raise BadInput("Say by --test which real test records to score on.", "limbeck evaluate --help")
    if subsample is not None and real is None and not calibrated:
        raise BadInput("--subsample thins out real training records; it needs --calibrated or --real.")


def _sources(
    test: str | None, real: str | None, calibrated: bool, where: dict[str, str | None]
) -> tuple[DataSource, DataSource | None]:
    """The test records, and the real training records where they are asked for. Opening them reads none."""
    from limbeck.data.source import split_suffix

    def opened(data: str, split: str) -> DataSource:
        return data_reference(data, where["schema"], where["label"], where["root"]).source(split)

    given = test or real
    assert given is not None
    tested = opened(given if test else split_suffix(given)[0], "test")
    if not calibrated and real is None:
        return tested, None
    trained = opened(real or split_suffix(given)[0], "train")
    if trained.where == tested.where:
        raise BadInput(
            f"{trained.where} would be trained on and tested on; give other test records by --test, or other training "
            "records by --real."
        )
    return tested, trained


def _lines(result: Mapping[str, Any]) -> list[str]:
    if "rows" not in result:
        score = result["accuracy"]["model"]
        return [
            *table([("model", "accuracy"), ("the released model itself", f"{score['mean']:.2f}")]),
            f"majority class: {result['majority_rate']:.2f}",
            *_whose(result),
        ]
    extra = [
        name
        for name in ("best_on_test", "control", "ceiling", "calibrated")
        if any(name in row for row in result["rows"])
    ]
    rows: list[tuple[object, ...]] = [("model", "mean", "std", *(name.replace("_", " ") for name in extra), "runs")]
    for row in result["rows"]:
        rows.append(_cells(row, extra))
    lines = [
        *table(rows),
        f"majority class: {result['majority_rate']:.2f}; preset {result['preset']}; {result['labels']} labels",
    ]
    if result.get("classifiers_mean"):
        mean = result["classifiers_mean"]
        lines.append(f"mean of {mean['classifiers']} of GS-WGAN's 13 classifiers: {mean['mean']:.2f}")
    return lines + _remarks(result, extra) + _whose(result)


def _cells(row: Mapping[str, Any], extra: list[str]) -> tuple[object, ...]:
    if "mean" not in row:
        return (row["model"], "-", "-", *("-" for _ in extra), row["skipped"])
    found = [row.get(name) for name in extra]
    values = [value["mean"] if isinstance(value, Mapping) else value for value in found]
    shown = ["-" if value is None else f"{value:.2f}" for value in values]
    return (
        row["model"],
        f"{row['mean']:.2f}",
        std_text(row["std"]),
        *shown,
        " ".join(f"{run:.2f}" for run in row["runs"]),
    )


def _remarks(result: Mapping[str, Any], extra: list[str]) -> list[str]:
    lines = []
    if "best_on_test" in extra:
        lines.append("best on test is optimistic: chosen on the test set; mean is the last epoch")
    if "control" in extra:
        lines.append("control: trained on noise with the same labels")
    ceiling = result.get("ceiling")
    counts = {row["model"]: row["records"] for row in result["rows"]} if "trained_on" in result else {}
    if ceiling:
        counts, whole = ceiling["records"], ceiling["of_records"]
        lines.append(f"ceiling: trained on {ceiling['data']}, preset {ceiling['preset']}; calibrated is percent of it")
    else:
        whole = result["records"]
    thinned = [f"{model} ({count})" for model, count in counts.items() if count < whole]
    if thinned:
        lines.append(f"trained on some of the {whole} real records: {', '.join(thinned)}")
    if ceiling or "trained_on" in result:
        lines.append("These figures come from the real training records: for their owner, and never part of a release.")
    return lines


def _whose(result: Mapping[str, Any]) -> list[str]:
    return ["OWNER'S EDITION: scored on private records. Never share it."] if result.get("edition") == "owner" else []
