"""Evaluation results as tables, and which of them may be in a release.

An evaluation is the JSON that `limbeck evaluate --out FILE` writes. A score on records is a statement about these records:
it may be released only if they are public. So the release edition takes an evaluation that the owner has marked with
`"edition": "release"`, or one that proves that it was scored on a public benchmark (limbeck.data.benchmark); and it shows
what real training records reach (the ceiling) only where these are proved to be a public benchmark too. Everything else is
for the owner's edition, also an evaluation of an older version, which has the name of its test set and no proof.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data.benchmark import benchmark_in
from limbeck.errors import BadInput, DataNotFound, NotReleasable
from limbeck.evaluate.models import MODELS
from limbeck.privacy.queries import finite_or_word
from limbeck.release.certificate import Certificate
from limbeck.release.editions import RELEASE

LARGEST_FILE = 4_000_000


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """Per cent; None where there is none. `skipped` says why a model has no score."""

    model: str
    mean: float | None
    std: float | None
    runs: tuple[float, ...]
    ceiling: float | None
    control: float | None
    skipped: str = ""


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    test: str
    preset: str
    labels: str
    repeats: int | None
    majority: float | None
    classifiers: tuple[int, float] | None  # of how many classical models the mean is, and the mean
    rows: tuple[ScoreRow, ...]

    @property
    def has_ceiling(self) -> bool:
        return any(row.ceiling is not None for row in self.rows)

    @property
    def has_control(self) -> bool:
        return any(row.control is not None for row in self.rows)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object from a file of the owner, or a sentence that says what is wrong with it."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadInput(f"{path} is too large for {what} ({path.stat().st_size} bytes).")
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except (OSError, ValueError, RecursionError):
        raise BadInput(f"{path} cannot be read as JSON.") from None
    if not isinstance(values, dict):
        raise BadInput(f"{path} holds no JSON object, so it is no {what}.")
    return values


def require_fit(evaluation: Mapping[str, Any], certificate: Certificate, path: Path) -> None:
    """Refuse the scores of another release: they would be read as this one's."""
    if not isinstance(evaluation.get("accuracy"), Mapping):
        raise BadInput(f"{path} holds no accuracy, so it is no evaluation of a release.", "limbeck evaluate --help")
    if "release" not in evaluation:
        raise BadInput(f"{path} does not say which release it evaluates.", "limbeck evaluate --help")
    for name, stated in shared_entries(certificate).items():
        if name in evaluation and evaluation[name] != stated:
            raise BadInput(
                f"{path} is the evaluation of another release: it says {name}={evaluation[name]}, the certificate says "
                f"{stated}."
            )


def shared_entries(certificate: Certificate) -> dict[str, Any]:
    """What a result of `limbeck evaluate` or `limbeck fidelity` repeats from the certificate, under the same names."""
    return {
        "method": certificate.method,
        "epsilon": finite_or_word(certificate.epsilon),
        "records": certificate.records,
    }


def require_public(evaluation: Mapping[str, Any], what: str) -> None:
    """Guarantee: returns only if the scores are of public records, by the owner's own word or by proof."""
    edition = evaluation.get("edition")
    if edition is not None and edition != RELEASE:
        raise NotReleasable(
            f"{what} is marked as the owner's: its scores come from records that are not a named public set, and nobody "
            "paid for them. It belongs into the owner's edition (--edition owner). If these records are public, say so in the "
            'file with "edition": "release".'
        )
    if edition is None and benchmark_in(evaluation, "test") is None:
        raise NotReleasable(
            f"{what} was scored on {evaluation.get('test', 'unknown records')}, and it does not prove that this is a public "
            "benchmark; files of older versions never do. Evaluate again; or use --edition owner if these records are "
            'private; or, if they are public, say so in the file with "edition": "release".'
        )


def public_part(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """What of an evaluation may be in a release: no path of the owner's machine, no score of real training records."""
    part = dict(evaluation)
    test = benchmark_in(part, "test")
    part["test"] = "public test records" if test is None else test.text
    if benchmark_in(part, "real") is None:
        part.pop("ceiling", None)
        rows = part.get("rows")
        listed = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        # What else stands in a row may come from the real training records.
        part["rows"] = [{name: row[name] for name in ("model", "skipped") if name in row} for row in listed]
    return part


def score_table(evaluation: Mapping[str, Any]) -> ScoreTable:
    """As far as the evaluation has an entry, it is shown; a score that is no number shows as none."""
    ceilings, controls = dict(_means(evaluation.get("ceiling"))), dict(_means(evaluation.get("control")))
    rows = []
    for name, score in sorted(_scores(evaluation.get("accuracy")), key=_by_kind):
        runs = score.get("runs")
        rows.append(
            ScoreRow(
                model=name,
                mean=finite(score.get("mean")),
                std=finite(score.get("std")),
                runs=tuple(run for run in (runs if isinstance(runs, list) else []) if finite(run) is not None),
                ceiling=ceilings.get(name),
                control=controls.get(name),
            )
        )
    rows += _skipped(evaluation.get("rows"))
    repeats = evaluation.get("repeats")
    return ScoreTable(
        test=str(evaluation.get("test", "unknown")),
        preset=str(evaluation.get("preset", "unknown")),
        labels=str(evaluation.get("labels", "hard")),
        repeats=repeats if isinstance(repeats, int) else None,
        majority=finite(evaluation.get("majority_rate")),
        classifiers=_classifiers(evaluation.get("classifiers_mean")),
        rows=tuple(rows),
    )


def _by_kind(entry: tuple[str, Any]) -> int:
    """The papers' architectures first, then their classifiers, as on the screen; JSON has them by the alphabet."""
    return MODELS.index(entry[0]) if entry[0] in MODELS else len(MODELS)


def _scores(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(model, score) pairs of {"model": {"mean": ...}}, or of the same under "accuracy"."""
    if isinstance(value, Mapping) and isinstance(value.get("accuracy"), Mapping):
        value = value["accuracy"]
    if isinstance(value, Mapping):
        for name, score in value.items():
            yield str(name), score if isinstance(score, Mapping) else {"mean": score}


def _skipped(value: Any) -> list[ScoreRow]:
    """Models that could not be trained, with the reason: leaving them out would flatter the table."""
    rows = [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
    return [
        ScoreRow(
            model=str(row.get("model", "-")),
            mean=None,
            std=None,
            runs=(),
            ceiling=None,
            control=None,
            skipped=str(row["skipped"]),
        )
        for row in rows
        if row.get("skipped")
    ]


def _classifiers(value: Any) -> tuple[int, float] | None:
    if not isinstance(value, Mapping):
        return None
    count, mean = finite(value.get("classifiers")), finite(value.get("mean"))
    return None if count is None or mean is None else (int(count), mean)


def _means(value: Any) -> Iterator[tuple[str, float]]:
    for name, score in _scores(value):
        mean = finite(score.get("mean"))
        if mean is not None:
            yield name, mean


def finite(value: Any) -> float | None:
    try:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if is_number and math.isfinite(value) else None
    except OverflowError:  # a whole number that no float holds
        return None
