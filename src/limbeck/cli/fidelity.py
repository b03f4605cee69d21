"""fidelity: how much a set is like the real records, for the owner's eyes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.options import Json, Label, Root, SchemaPath, data_reference
from limbeck.cli.output import emit, reporter, table

if TYPE_CHECKING:
    from limbeck.evaluate.fidelity_result import Fidelity, Reference
    from limbeck.evaluate.inception_score import InceptionScore
    from limbeck.evaluate.neighbours import Memorisation
    from limbeck.evaluate.table_marginals import TableMarginals


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

    A table has no Inception Score; it is compared column by column and pair by pair, on its decoded rows.
    It reads private records and costs no budget, so the result is yours alone: never share it.
    """
    from limbeck.evaluate.fidelity import Options, fidelity_of_release
    from limbeck.files import as_json as json_bytes
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_result_path
    from limbeck.release.statement import public_schema
    from limbeck.runs.execution import checked_device

    checked_device(device)
    require_result_path(out, "Figures of private records are")
    options = Options(inception=inception, most=most, epochs=judge_epochs, device=device)
    stated = public_schema(release)
    train = data_reference(data, schema, label, root).source("train", stated)
    tested = data_reference(test or data, schema, label, root).source("test", stated)
    ready(train, tested)
    with reporter() as shown:
        result = fidelity_of_release(release, train, tested, options, shown)
    if out is not None:
        write_atomic(out, json_bytes(result.to_dict()))
    emit(as_json, result.to_dict(), _lines(result))


def _lines(result: Fidelity) -> list[str]:
    sides = (result.set, result.real_train)
    rows: list[tuple[object, ...]] = [("", "set", "as many real training records")]
    if result.set.inception_score is not None:
        rows.append(("inception score", *(_score(side.inception_score) for side in sides)))
    distances = (_figure(side.frechet_classifier_distance, ".4g") for side in sides)
    rows.append(("Frechet classifier distance (no FID)", *distances))
    fid = result.fid
    if fid is not None:
        rows.append((f"FID ({fid.weights} weights)", _figure(fid.set, ".4g"), _figure(fid.real_train, ".4g")))
    rows.append(("precision", *(_figure(side.precision, ".3f") for side in sides)))
    rows.append(("recall", *(_figure(side.recall, ".3f") for side in sides)))
    return [
        "OWNER'S EDITION: measured on private records. Never share it.",
        *table(rows),
        *([] if result.real_test is None else [f"real test records: inception score {_score(result.real_test)}"]),
        *([] if result.marginals is None else _of_a_table(result.marginals)),
        *([] if result.nearest is None else _memorised(result.nearest)),
        _judged_by(result.reference),
    ]


def _judged_by(reference: Reference) -> str:
    if reference.spec["kind"] == "none":
        return "judge: none, because there is no label to learn; distances are between encoded rows"
    right = _figure(reference.test_accuracy, ".2f")
    return f"judge: {reference.spec['kind']}, {reference.epochs} epochs, {right} % of the test records right"


def _of_a_table(found: TableMarginals) -> list[str]:
    """How far from the real training rows, in total variation: 0 is the same, 1 has nothing in common."""
    rows: list[tuple[object, ...]] = [("total variation from the real training rows", "set", "real test rows")]
    rows.append(("mean of the columns", _figure(found.one_way, ".4f"), _figure(found.real_one_way, ".4f")))
    rows.append(("mean of all pairs of columns", _figure(found.two_way, ".4f"), _figure(found.real_two_way, ".4f")))
    worst = sorted(found.columns, key=lambda column: -(column.total_variation or 0))[:3]
    named = ", ".join(f"{column.name} {_figure(column.total_variation, '.4f')}" for column in worst)
    lost = sum(each.shares.synthetic == 0 for each in found.rare)
    broken = f"rows that break a constraint: {found.broken} of the set, {found.real_broken} of the real training rows"
    correlated = found.correlations
    apart = (
        [] if correlated is None else [f"correlations differ by {_figure(correlated.mean_error, '.3f')} in the mean"]
    )
    return [
        *table(rows),
        *apart,
        *([] if found.broken is None else [broken]),
        f"farthest columns: {named}",
        f"rare categories (at most 1 % of the real rows): {len(found.rare)}, of which {lost} are not in the set",
    ]


def _memorised(nearest: Memorisation) -> list[str]:
    verdict = "MORE than chance has it: look at the set" if nearest.suspicious else "no more than chance has it"
    return [
        f"nearest real records: {nearest.from_train} of {nearest.neighbours} are training records, "
        f"{_figure(nearest.expected, '.1f')} expected, p = {_figure(nearest.p_value, '.3g')}: {verdict}",
        f"near copies of one training record: {nearest.copies}, of one test record: {nearest.heldout_copies}",
    ]


def _score(score: InceptionScore | None) -> str:
    if score is None:
        return "-"
    spread = "" if score.std is None else f" +- {score.std:.3f}"
    return f"{_figure(score.mean, '.3f')}{spread}"


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
