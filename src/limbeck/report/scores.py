"""Evaluation results as tables, and which of them may be in a release.

An evaluation is the JSON that `limbeck evaluate --out FILE` writes. A score on records is a statement about these records:
it may be released only if they are public. So the release edition takes an evaluation that the owner has marked with
`"edition": "release"`, or one that proves that it was scored on a public benchmark (limbeck.data.benchmark); and it shows
what real training records reach (the ceiling) only where these are proved to be a public benchmark too. Everything else is
for the owner's edition, also an evaluation of an older version, which has the name of its test set and no proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, NotReleasable
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.decoded import DECODED
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.models import MODELS
from limbeck.evaluate.row import Row
from limbeck.evaluate.target_score import TargetScore
from limbeck.privacy.numbers import finite_or_word
from limbeck.release.certificate import Certificate
from limbeck.release.editions import RELEASE


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """Per cent; None where there is none. `skipped` says why a model has no score. f1: by class, of a table."""

    model: str
    mean: float | None
    std: float | None
    runs: tuple[float, ...]
    ceiling: float | None
    control: float | None
    area: float | None = None
    f1: tuple[tuple[str, float | None], ...] = ()
    library: str = ""
    skipped: str = ""
    confusion: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    test: str
    preset: str
    labels: str
    repeats: int | None
    majority: float | None
    classifiers: tuple[int, float] | None  # of how many classical models the mean is, and the mean
    rows: tuple[ScoreRow, ...]
    decoded: bool = False
    size: int | None = None
    targets: tuple[TargetScore, ...] = ()

    @property
    def has_ceiling(self) -> bool:
        return any(row.ceiling is not None for row in self.rows)

    @property
    def has_area(self) -> bool:
        return any(row.area is not None for row in self.rows)

    @property
    def has_f1(self) -> bool:
        return any(row.f1 for row in self.rows)

    @property
    def has_control(self) -> bool:
        return any(row.control is not None for row in self.rows)


def require_fit(evaluation: Evaluation, certificate: Certificate, path: Path) -> None:
    """Refuse the scores of another release: they would be read as this one's."""
    if evaluation.accuracy is None:
        raise BadInput(f"{path} holds no accuracy, so it is no evaluation of a release.", "limbeck evaluate --help")
    if evaluation.release is None:
        raise BadInput(f"{path} does not say which release it evaluates.", "limbeck evaluate --help")
    stated = shared_entries(certificate)
    for name, value in {
        "method": evaluation.method,
        "epsilon": evaluation.epsilon,
        "records": evaluation.records,
    }.items():
        if value is not None and value != stated[name]:
            raise BadInput(
                f"{path} is the evaluation of another release: it says {name}={value}, the certificate says {stated[name]}."
            )


def shared_entries(certificate: Certificate) -> dict[str, Any]:
    """What a result of `limbeck evaluate` or `limbeck fidelity` repeats from the certificate, under the same names."""
    return {
        "method": certificate.method,
        "epsilon": finite_or_word(certificate.epsilon),
        "records": certificate.records,
    }


def require_public(evaluation: Evaluation, what: str) -> None:
    """Guarantee: returns only if the scores are of public records, by the owner's own word or by proof."""
    provenance = evaluation.provenance
    if provenance.edition is not None and provenance.edition != RELEASE:
        raise NotReleasable(
            f"{what} is marked as the owner's: its scores come from records that are not a named public set, and nobody "
            "paid for them. It belongs into the owner's edition (--edition owner). If these records are public, say so in the "
            'file with "edition": "release".'
        )
    if provenance.edition is None and provenance.benchmark("test") is None:
        raise NotReleasable(
            f"{what} was scored on {evaluation.test or 'unknown records'}, and it does not prove that this is a public "
            "benchmark; files of older versions never do. Evaluate again; or use --edition owner if these records are "
            'private; or, if they are public, say so in the file with "edition": "release".'
        )


def score_table(evaluation: Evaluation) -> ScoreTable:
    """As far as the evaluation has an entry, it is shown; a score that is no number shows as none."""
    ceilings = {} if evaluation.ceiling is None else evaluation.ceiling.accuracy
    controls = {} if evaluation.control is None else evaluation.control.accuracy
    found, rows = evaluation.classifiers_mean, {row.model: row for row in evaluation.rows or ()}
    return ScoreTable(
        test=evaluation.test or "unknown",
        preset=evaluation.preset or "unknown",
        labels=evaluation.labels or "hard",
        repeats=evaluation.repeats,
        majority=evaluation.majority_rate,
        classifiers=None if found is None else (found.classifiers, found.mean),
        rows=(
            *(
                ScoreRow(
                    model=model,
                    mean=score.mean,
                    std=score.std,
                    runs=score.runs,
                    ceiling=_mean(ceilings, model),
                    control=_mean(controls, model),
                    area=_area(rows.get(model)),
                    f1=_f1(rows.get(model)),
                    library=(rows[model].library or "") if model in rows else "",
                    confusion=rows[model].confusion if model in rows else None,
                )
                for model, score in sorted((evaluation.accuracy or {}).items(), key=_by_kind)
            ),
            *_skipped(evaluation.rows or ()),
        ),
        decoded=evaluation.form == DECODED,
        size=evaluation.size,
        targets=evaluation.targets or (),
    )


def _area(row: Row | None) -> float | None:
    return None if row is None or row.area_under_curve is None else row.area_under_curve.mean


def _f1(row: Row | None) -> tuple[tuple[str, float | None], ...]:
    return () if row is None else tuple((name, each.mean) for name, each in (row.f1 or {}).items())


def _by_kind(entry: tuple[str, Any]) -> int:
    """The papers' architectures first, then their classifiers, as on the screen; JSON has them by the alphabet."""
    return MODELS.index(entry[0]) if entry[0] in MODELS else len(MODELS)


def _mean(accuracies: Mapping[str, Accuracy], model: str) -> float | None:
    return accuracies[model].mean if model in accuracies else None


def _skipped(rows: Sequence[Row]) -> list[ScoreRow]:
    """Models that could not be trained, with the reason: leaving them out would flatter the table."""
    return [
        ScoreRow(model=row.model, mean=None, std=None, runs=(), ceiling=None, control=None, skipped=row.skipped)
        for row in rows
        if row.skipped
    ]
