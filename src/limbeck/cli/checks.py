"""privacy, verify: everything that computes again what is claimed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.options import Delta, Epsilon, Json, epsilon_value
from limbeck.cli.output import emit, table
from limbeck.errors import BadInput
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.unit import UNIT_RECORD, unit_words

if TYPE_CHECKING:
    from limbeck.release.federated import Federated

ReleaseFolder = Annotated[Path, typer.Argument(help="A release folder.")]


def register(app: typer.Typer) -> None:
    app.command()(privacy)
    app.command()(verify)


def privacy(
    rate: Annotated[
        float,
        typer.Option("--rate", help="The chance of a record, or a person, to be in one sample; 1 for no sampling."),
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
    from limbeck.privacy.accounting import sampled_gaussian
    from limbeck.privacy.calibration import calibrate_sampled_gaussian
    from limbeck.privacy.numbers import require_positive

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


def verify(
    release: ReleaseFolder,
    key: Annotated[str | None, typer.Option("--key", help="The owner's public key, if you know it.")] = None,
    as_json: Json = False,
) -> None:
    """Check a release: its epsilon computed again, every file unchanged, the signature whole, safe to share."""
    from limbeck.release import verification
    from limbeck.release.known_faults import known_faults

    certificate = verification.verify(release, key)
    verification.require_releasable(certificate)
    values: dict[str, Any] = {
        "verified": True,
        "release": str(release),
        "epsilon": finite_or_word(certificate.epsilon),
        "delta": certificate.delta,
        "adjacency": certificate.adjacency,
        "unit": certificate.unit,
        "releasable": certificate.releasable,
        "files": len(certificate.files),
        "public_key": None if certificate.signature is None else certificate.signature.public_key,
        "known_faults": known_faults(certificate),
    }
    constraints = certificate.public_assumptions.constraints
    if constraints:
        values["constraints_kept"] = len(constraints)
    unit = certificate.unit if certificate.unit == UNIT_RECORD else unit_words(certificate.unit)
    lines = [
        f"verified: epsilon {values['epsilon']}, delta {values['delta']:g}, {values['adjacency']}, unit {unit}",
        f"{values['files']} files unchanged; signed by {values['public_key']}",
        *([f"every row keeps to the {len(constraints)} declared constraints"] if constraints else []),
        *(f"BUT: {fault}" for fault in values["known_faults"]),
    ]
    if certificate.federation is not None:
        values["federation"] = _federation_values(certificate.federation)
        lines += _federation_lines(certificate.federation)
    if certificate.distilled is not None:
        source = certificate.distilled.source
        values["distilled"] = {"sha256": certificate.distilled.sha256, "public_key": source["signature"]["public_key"]}
        lines.append(
            f"distilled from a release with this very epsilon, whose certificate is whole, too; that one signed by "
            f"{source['signature']['public_key']}"
        )
    if certificate.joined is not None:
        parts = [
            {name: part[name] for name in ("dataset", "epsilon", "delta", "records")}
            | {"public_key": part["signature"]["public_key"]}
            for part in certificate.joined.parts
        ]
        values["joined"] = parts
        lines.append(f"joined of {len(parts)} owners' sets; that they hold different records is the owners' word")
        lines += table([(f"  {part['dataset']}", part["epsilon"], part["public_key"]) for part in parts])
    emit(as_json, values, lines)


def _federation_values(federation: Federated) -> dict[str, Any]:
    terms = federation.terms
    return {
        "sites": dict(zip(terms.sites, terms.keys, strict=True)),
        "noise": terms.noise,
        "collusion": terms.collusion,
        "terms": terms.digest(),
        "views": federation.views.to_dict(),
    }


def _federation_lines(federation: Federated) -> list[str]:
    """What it costs seen from where, and who signed; each owner's key is for the reader to compare."""
    terms, found = federation.terms, federation.views
    return [
        f"{len(terms.sites)} sites, noise {terms.noise}, up to {terms.collusion} of them may tell the server; epsilon",
        *table(
            [
                ("  against the server", finite_or_word(found.server.epsilon)),
                ("  against the public, if no site tells", finite_or_word(found.public.epsilon)),
                ("  against the server and all other sites", finite_or_word(found.all_told.epsilon)),
                *([("  for a whole site as the unit", finite_or_word(found.site.epsilon))] if found.site else []),
                *((f"  {site} signed with", key) for site, key in zip(terms.sites, terms.keys, strict=True)),
            ]
        ),
    ]
