"""privacy, evaluate, verify: everything that measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.options import Delta, Epsilon, Json, Label, Root, SchemaPath, epsilon_value
from limbeck.cli.output import emit, reporter, table
from limbeck.errors import BadInput, OutputFault
from limbeck.queries import finite_or_word

ReleaseFolder = Annotated[Path, typer.Argument(help="A release folder.")]


def register(app: typer.Typer) -> None:
    app.command()(privacy)
    app.command()(evaluate)
    app.command()(verify)


def privacy(
    rate: Annotated[
        float, typer.Option("--rate", help="The chance of a record to be in one sample; 1 for no sampling.")
    ],
    steps: Annotated[int, typer.Option("--steps", help="How many noised answers are given.")],
    noise_multiplier: Annotated[
        float | None,
        typer.Option("--noise-multiplier", help="Standard deviation of the noise / sensitivity of one answer."),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    as_json: Json = False,
) -> None:
    """Compute epsilon from the noise, or the noise that an epsilon needs. Touches no data and no budget."""
    from limbeck.accounting import calibrate_sampled_gaussian, sampled_gaussian
    from limbeck.queries import require_positive

    target = epsilon_value(epsilon)
    if (noise_multiplier is None) == (target is None):
        raise BadInput("Give exactly one of --noise-multiplier and --epsilon.")
    extra: dict[str, Any] = {}
    if target is not None:
        noise_multiplier = calibrate_sampled_gaussian(rate, steps, target, delta)
        extra["noise_multiplier_rdp"] = calibrate_sampled_gaussian(rate, steps, target, delta, "rdp")
    assert noise_multiplier is not None
    require_positive("noise_multiplier", noise_multiplier)
    price = sampled_gaussian(rate, steps, noise_multiplier, delta)
    values = {**price.to_dict(), "rate": rate, "steps": steps, "noise_multiplier": noise_multiplier, **extra}
    rows = [(name, "-" if value is None else value) for name, value in values.items()]
    emit(as_json, values, table(rows))


def evaluate(
    release: ReleaseFolder,
    test: Annotated[str, typer.Option("--test", help="Real test records: a named set (its test split) or a path.")],
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            help="Networks to train, with commas: convnet, mlp, lenet, linear. Tables take mlp and linear.",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="How many networks to train of each kind.")] = 3,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="How to train: paper (long), full (large sets) or cpu (short). Default: cpu on a CPU, else paper.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first network; the others follow.")] = 0,
    device: Annotated[str, typer.Option("--device", help="Where to compute.")] = "cpu",
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the result to this JSON file.")] = None,
    as_json: Json = False,
) -> None:
    """Train networks on a synthetic set alone and score them on real test records."""
    from limbeck.condense import Request, checked_device
    from limbeck.data.writer import write_atomic
    from limbeck.evaluate.release import evaluate_release
    from limbeck.release import as_json as json_bytes

    checked_device(device)
    if out is not None and not out.parent.is_dir():
        raise OutputFault(f"The folder {out.parent} for the result does not exist.")
    request = Request(
        data=test, schema=None if schema is None else str(schema), label=label, root=None if root is None else str(root)
    )
    names = None if models is None else [name.strip() for name in models.split(",") if name.strip()]
    with reporter() as shown:
        result = evaluate_release(release, request.source("test"), names, preset, repeats, seed, device, shown)
    if out is not None:
        write_atomic(out, json_bytes(result))
    rows: list[tuple[object, ...]] = [("model", "mean", "std", "runs")]
    for name, score in result["accuracy"].items():
        runs = " ".join(f"{run:.2f}" for run in score["runs"])
        rows.append((name, f"{score['mean']:.2f}", f"{score['std']:.2f}", runs))
    lines = [
        *table(rows),
        f"majority class: {result['majority_rate']:.2f}; preset {result['preset']}; {result['labels']} labels",
    ]
    emit(as_json, result, lines)


def verify(
    release: ReleaseFolder,
    key: Annotated[str | None, typer.Option("--key", help="The owner's public key, if you know it.")] = None,
    as_json: Json = False,
) -> None:
    """Check a release: its epsilon computed again, every file unchanged, the signature whole, safe to share."""
    from limbeck import certificate as certificates

    certificate = certificates.verify(release, key)
    certificates.require_releasable(certificate)
    values = {
        "verified": True,
        "release": str(release),
        "epsilon": finite_or_word(certificate["epsilon"])
        if isinstance(certificate["epsilon"], float)
        else certificate["epsilon"],
        "delta": certificate["delta"],
        "adjacency": certificate["adjacency"],
        "unit": certificate["unit"],
        "releasable": certificate["releasable"],
        "files": len(certificate["files"]),
        "public_key": certificate["signature"]["public_key"],
    }
    lines = [
        f"verified: epsilon {values['epsilon']}, delta {values['delta']:g}, {values['adjacency']}, unit {values['unit']}",
        f"{values['files']} files unchanged; signed by {values['public_key']}",
    ]
    emit(as_json, values, lines)
