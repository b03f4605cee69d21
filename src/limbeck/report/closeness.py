"""The result of `limbeck fidelity` as two small tables: how alike, and whether anything is repeated. For the owner alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.report.scores import finite
from limbeck.report.wording import number

# (name, where it stands below "set" and "real_train", what is good)
SCORES = (
    ("Inception score", ("inception_score", "mean"), "higher is better"),
    ("Fréchet classifier distance", ("frechet_classifier_distance",), "lower is better"),
    ("Precision", ("precision_recall", "precision"), "share of the set that looks real"),
    ("Recall", ("precision_recall", "recall"), "share of the real records that the set covers"),
)


@dataclass(frozen=True, kw_only=True)
class ClosenessView:
    """rows: (name, of the set, of as many real training records, what is good); facts: (name, value)."""

    rows: tuple[tuple[str, str, str, str], ...]
    facts: tuple[tuple[str, str], ...]
    suspicious: bool


def closeness_view(values: Mapping[str, Any]) -> ClosenessView:
    """Shows what is there; an entry that is missing has no row."""
    rows = [
        (name, number(_at(values, "set", *path), 4), number(_at(values, "real_train", *path), 4), good)
        for name, path, good in SCORES
        if finite(_at(values, "set", *path)) is not None
    ]
    if finite(_at(values, "fid", "set")) is not None:
        rows.append(
            (
                "FID",
                number(_at(values, "fid", "set"), 4),
                number(_at(values, "fid", "real_train"), 4),
                "lower is better",
            )
        )
    found = _at(values, "nearest")
    return ClosenessView(
        rows=tuple(rows),
        facts=tuple(_memorised(found)) if isinstance(found, Mapping) else (),
        suspicious=bool(_at(values, "nearest", "suspicious")),
    )


def _memorised(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = []
    if finite(found.get("from_train")) is not None:
        facts.append(
            (
                "Nearest real records",
                f"{number(found.get('from_train'))} of {number(found.get('neighbours'))} are training records; blind chance "
                f"gives {number(found.get('expected'), 4)} (p = {number(found.get('p_value'), 3)})",
            )
        )
    if finite(found.get("copies")) is not None:
        facts.append(
            (
                "Suspected copies",
                f"{number(found.get('copies'))} of training records, {number(found.get('heldout_copies'))} of held-out ones",
            )
        )
    distances = [_at(found, name, "median") for name in ("train_distance", "heldout_distance")]
    if None not in map(finite, distances):
        train, heldout = (number(distance, 4) for distance in distances)
        facts.append(
            ("Median distance", f"{train} to the nearest training record, {heldout} to the nearest held-out one")
        )
    return facts


def _at(values: Any, *path: str) -> Any:
    for name in path:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values
