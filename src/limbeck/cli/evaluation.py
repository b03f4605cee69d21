"""evaluate: what a set is worth, in the accuracy of models trained on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Json, Label, Root, SchemaPath, SeenSize, data_reference
from limbeck.cli.output import emit, reporter, std_text, table
from limbeck.errors import BadInput

if TYPE_CHECKING:
    from limbeck.data import DataSource
    from limbeck.evaluate.accuracy import Accuracy
    from limbeck.evaluate.evaluation import Evaluation
    from limbeck.evaluate.row import Row
    from limbeck.evaluate.target_score import TargetScore

MOST_CLASSES = 8


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
            "tables (logistic regression, boosted trees, an MLP), or names such as convnet, mlp, random-forest. "
            "Default: the preset's, else tables for a table and one convnet for pictures.",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            "--repeats",
            help="How often to train each; those without chance once. Default: the preset's, mostly 3; 1 for pictures where "
            "neither models nor a preset are named.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="How to train networks: paper (long), full, cpu (short), quick (shorter), brief (real data); or a paper's own: "
            "psg, psg-full, dpdc, datalens, gs-wgan. Default: cpu (quick above 64x64, as seen) on a CPU, else paper.",
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
    size: SeenSize = None,
    device: Annotated[str, typer.Option("--device", help="Where to compute.")] = "cpu",
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the result to this JSON file.")] = None,
    as_json: Json = False,
) -> None:
    """Train models on a synthetic set alone and score them on real test records; a released model is scored itself."""
    from limbeck.evaluate.protocol import EvaluationProtocol
    from limbeck.evaluate.real import evaluate_real
    from limbeck.evaluate.release import Baselines, evaluate_release
    from limbeck.evaluate.released_model import evaluate_model
    from limbeck.files import as_json as json_bytes
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_result_path
    from limbeck.release.model import is_model
    from limbeck.runs.execution import checked_device

    checked_device(device)
    require_result_path(out)
    _refuse_odd_pairs(release, test, real, calibrated, subsample, control)
    text = {name: None if path is None else str(path) for name, path in (("schema", schema), ("root", root))}
    tested, trained = _sources(test, real, calibrated, {**text, "label": label}, release)
    ready(tested, trained)
    names = None if models is None else tuple(name.strip() for name in models.split(",") if name.strip())
    protocol = EvaluationProtocol(models=names, preset=preset, repeats=repeats, seed=seed, device=device, size=size)
    with reporter() as shown:
        if release is None:
            assert trained is not None
            result = evaluate_real(trained, tested, protocol, shown, subsample)
        elif is_model(release):
            if names is not None or preset is not None or calibrated or control or size:
                raise BadInput(
                    f"{release} is a trained model, which is scored itself; leave --models and --preset, --calibrated, "
                    "--control and --size out."
                )
            result = evaluate_model(release, tested, device)
        else:
            baselines = Baselines(real=trained, subsample=subsample, control=control)
            result = evaluate_release(release, tested, protocol, shown, baselines)
    if out is not None:
        write_atomic(out, json_bytes(result.to_dict()))
    emit(as_json, result.to_dict(), _lines(result))


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
    test: str | None, real: str | None, calibrated: bool, where: dict[str, str | None], release: Path | None
) -> tuple[DataSource, DataSource | None]:
    """The test records, and the real training records where they are asked for. Opening them reads none.

    A path without a schema has that of the release.
    """
    from limbeck.data.source import split_suffix
    from limbeck.release.statement import public_schema

    default = None if release is None else public_schema(release)

    def opened(data: str, split: str) -> DataSource:
        return data_reference(data, where["schema"], where["label"], where["root"]).source(split, default)

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


def _lines(result: Evaluation) -> list[str]:
    majority = f"majority class: {_two_digits(result.majority_rate)}"
    if result.rows is None:
        score = (result.accuracy or {})["model"]
        return [
            *table([("model", "accuracy"), ("the released model itself", _two_digits(score.mean))]),
            majority,
            *_whose(result),
        ]
    if not result.rows:
        return [*_targets(result), *_whose(result)]
    extra = [name for name, value in EXTRA.items() if any(value(row) is not None for row in result.rows)]
    rows: list[tuple[object, ...]] = [("model", "mean", "std", *extra, "runs")]
    rows += [_cells(row, extra) for row in result.rows]
    form = (
        "" if result.form is None else f"; {result.form} {'numbers of set.npz' if result.form == 'exact' else 'rows'}"
    )
    lines = [
        *table(rows),
        *_by_class(result.rows),
        f"{majority}; preset {result.preset}; {result.labels} labels{form}{_size(result)}",
    ]
    mean = result.classifiers_mean
    if mean is not None:
        lines.append(f"mean of {mean.classifiers} of GS-WGAN's 13 classifiers: {mean.mean:.2f}")
    return lines + _targets(result) + _remarks(result, extra) + _whose(result)


def _size(result: Evaluation) -> str:
    """Of pictures that were averaged down, how far."""
    return "" if result.size is None else f"; pictures averaged down to {result.size} pixels a side"


def _targets(result: Evaluation) -> list[str]:
    """Each target of a table with each model: of a number R2 and the mean absolute error, of a category accuracy and AUC."""
    if not result.targets:
        return []
    kept: dict[str, Callable[[TargetScore], Accuracy | None]] = {
        "R2": lambda each: each.r2,
        "MAE": lambda each: each.mae,
        "accuracy": lambda each: each.accuracy,
        "AUC": lambda each: each.area_under_curve,
    }
    measures = {name: value for name, value in kept.items() if any(value(each) for each in result.targets)}
    has_ceiling = any(each.ceiling is not None for each in result.targets)
    rows: list[tuple[object, ...]] = [("target", "model", *measures, *(["ceiling"] if has_ceiling else []))]
    for each in result.targets:
        cells = [_brief(None if (found := value(each)) is None else found.mean) for value in measures.values()]
        rows.append((each.target, each.model, *cells, *([_brief(each.ceiling)] if has_ceiling else [])))
    skipped = [f"{each.target}, {each.model}: {each.skipped}" for each in result.targets if each.skipped]
    return [*table(rows), *skipped]


def _brief(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _by_class(rows: Sequence[Row]) -> list[str]:
    """F1 of each class, of a few classes; of more in the JSON object."""
    scored = [(row.model, row.f1) for row in rows if row.f1]
    names = list(scored[0][1]) if scored else []
    if not 0 < len(names) <= MOST_CLASSES:
        return []
    cells = [(model, *(_two_digits(f1[name].mean if name in f1 else None) for name in names)) for model, f1 in scored]
    return table([("F1 of class", *names), *cells])


# Columns that stand in the table only where some row has a value.
EXTRA: dict[str, Callable[[Row], float | None]] = {
    "AUC": lambda row: None if row.area_under_curve is None else row.area_under_curve.mean,
    "best on test": lambda row: None if row.best_on_test is None else row.best_on_test.mean,
    "control": lambda row: row.control,
    "ceiling": lambda row: row.ceiling,
    "calibrated": lambda row: row.calibrated,
}


def _cells(row: Row, extra: list[str]) -> tuple[object, ...]:
    if row.accuracy is None:
        return (row.model, "-", "-", *("-" for _ in extra), row.skipped)
    return (
        row.model,
        _two_digits(row.accuracy.mean),
        std_text(row.accuracy.std),
        *(_two_digits(EXTRA[name](row)) for name in extra),
        " ".join(f"{run:.2f}" for run in row.accuracy.runs),
    )


def _two_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _remarks(result: Evaluation, extra: list[str]) -> list[str]:
    lines = [f"{row.model} by {row.library}" for row in result.rows or () if row.library]
    if "best on test" in extra:
        lines.append("best on test is optimistic: chosen on the test set; mean is the last epoch")
    if "control" in extra:
        lines.append("control: trained on noise with the same labels")
    counts: Mapping[str, int | None] = {}
    available: int | str | None = None
    ceiling = result.ceiling
    if ceiling is not None:
        counts, available = ceiling.records, ceiling.of_records
        lines.append(f"ceiling: trained on {ceiling.data}, preset {ceiling.preset}; calibrated is percent of it")
    elif result.trained_on is not None:
        counts, available = {row.model: row.records for row in result.rows or ()}, result.records
    most = available if isinstance(available, int) else 0
    some = [(model, count) for model, count in counts.items() if count is not None and count < most]
    if some:
        thinned = ", ".join(f"{model} ({count})" for model, count in some)
        lines.append(f"trained on some of the {available} real records: {thinned}")
    if ceiling is not None or result.trained_on is not None:
        lines.append("These figures come from the real training records: for their owner, and never part of a release.")
    return lines


def _whose(result: Evaluation) -> list[str]:
    return ["OWNER'S EDITION: scored on private records. Never share it."] if result.provenance.is_owners else []
