"""The result of `limbeck fidelity` as two small tables: how alike, and whether anything is repeated. For the owner alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from limbeck.evaluate.fidelity_result import Closeness, Fidelity
from limbeck.evaluate.neighbours import Memorisation
from limbeck.report.wording import number

# (name, the score of one side, what is good)
SCORES: tuple[tuple[str, Callable[[Closeness], float | None], str], ...] = (
    ("Inception score", lambda side: side.mean_inception_score, "higher is better"),
    ("Fréchet classifier distance", lambda side: side.frechet_classifier_distance, "lower is better"),
    ("Precision", lambda side: side.precision, "share of the set that looks real"),
    ("Recall", lambda side: side.recall, "share of the real records that the set covers"),
)


@dataclass(frozen=True, kw_only=True)
class ClosenessView:
    """rows: (name, of the set, of as many real training records, what is good); facts: (name, value)."""

    rows: tuple[tuple[str, str, str, str], ...]
    facts: tuple[tuple[str, str], ...]
    suspicious: bool


def closeness_view(fidelity: Fidelity) -> ClosenessView:
    """Shows what is there; an entry that is missing has no row."""
    rows = [
        (name, number(score(fidelity.set), 4), number(score(fidelity.real_train), 4), good)
        for name, score, good in SCORES
        if score(fidelity.set) is not None
    ]
    fid = fidelity.fid
    if fid is not None and fid.set is not None:
        rows.append(("FID", number(fid.set, 4), number(fid.real_train, 4), "lower is better"))
    nearest = fidelity.nearest
    return ClosenessView(
        rows=tuple(rows),
        facts=() if nearest is None else tuple(_memorised(nearest)),
        suspicious=nearest is not None and nearest.suspicious,
    )


def _memorised(found: Memorisation) -> list[tuple[str, str]]:
    facts = []
    if found.from_train is not None:
        facts.append(
            (
                "Nearest real records",
                f"{number(found.from_train)} of {number(found.neighbours)} are training records; blind chance "
                f"gives {number(found.expected, 4)} (p = {number(found.p_value, 3)})",
            )
        )
    if found.copies is not None:
        facts.append(
            (
                "Suspected copies",
                f"{number(found.copies)} of training records, {number(found.heldout_copies)} of held-out ones",
            )
        )
    train, heldout = _median(found.train_distance), _median(found.heldout_distance)
    if train is not None and heldout is not None:
        facts.append(
            (
                "Median distance",
                f"{number(train, 4)} to the nearest training record, {number(heldout, 4)} to the nearest held-out one",
            )
        )
    return facts


def _median(distance: Mapping[str, float] | None) -> float | None:
    return None if distance is None else distance.get("median")
