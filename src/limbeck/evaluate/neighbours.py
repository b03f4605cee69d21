"""Distances to the nearest real records: precision and recall, and whether a set repeats what it was made from.

Precision and recall: Kynkaanniemi et al., "Improved Precision and Recall Metric for Assessing Generative Models". A point
lies on a set's manifold if it is no farther from some record of the set than that record's k-th neighbour within the set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy.stats import hypergeom
from torch import Tensor

from limbeck.errors import BadInput

ROWS_AT_ONCE = 256
NEIGHBOURS = 3
COPY_RATIO = 3.0
SUSPICION = 0.01


@dataclass(frozen=True, kw_only=True)
class PrecisionRecall:
    """precision: share of the set on the real manifold; recall: share of the real records on the set's manifold.

    None is what a file does not hold.
    """

    precision: float | None
    recall: float | None
    k: int | None
    records: int | None


@dataclass(frozen=True, kw_only=True)
class Memorisation:
    """What the nearest real records of a set say. It reads private records, so it is the owner's alone.

    neighbours      distinct real records that are the nearest one of some record of the set
    from_train      how many of these are training records, and
    expected        how many would be if the set knew nothing of which records were trained on
    p_value         the chance of at least `from_train` then
    copies          records of the set three times nearer to one training record than to any other real record
    heldout_copies  the same for a held-out record, which can only be by chance

    None is what a file does not hold.
    """

    train_records: int | None
    heldout_records: int | None
    neighbours: int | None
    from_train: int | None
    expected: float | None
    p_value: float | None
    copies: int | None
    heldout_copies: int | None
    suspicious: bool
    train_distance: dict[str, float] | None
    heldout_distance: dict[str, float] | None


def precision_recall(real: Tensor, synthetic: Tensor, k: int = NEIGHBOURS, seed: int = 0) -> PrecisionRecall:
    """Of the larger side as many rows are drawn as the smaller one has: a denser manifold reaches less far."""
    count = min(len(real), len(synthetic))
    if count <= k:
        raise BadInput(f"Precision and recall with k={k} need more than {k} records on each side, got {count}.")
    generator = torch.Generator().manual_seed(seed)
    real, synthetic = (rows[torch.randperm(len(rows), generator=generator)[:count]] for rows in (real, synthetic))
    return PrecisionRecall(
        precision=_covered(synthetic, real, k), recall=_covered(real, synthetic, k), k=k, records=count
    )


def _covered(points: Tensor, manifold: Tensor, k: int) -> float:
    """The share of the points that lie on the manifold of a set."""
    # Each row is its own nearest neighbour, so the k-th other one has index k.
    radii = nearest(manifold, manifold, k + 1)[0][:, k]
    inside = [(torch.cdist(part, manifold) <= radii).any(1) for part in torch.split(points, ROWS_AT_ONCE)]
    return float(torch.cat(inside).double().mean())


def nearest(points: Tensor, others: Tensor, count: int = 1) -> tuple[Tensor, Tensor]:
    """Distances and indices of the `count` nearest rows of `others`, (points, count), nearest first."""
    parts = [torch.cdist(part, others).topk(count, largest=False) for part in torch.split(points, ROWS_AT_ONCE)]
    return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def memorisation(synthetic: Tensor, train: Tensor, heldout: Tensor) -> Memorisation:
    """Are the nearest real records of a set more often training records than chance has it? Rows are flat records.

    Which real records are nearest depends on all real records together. If the set is independent of how they were split
    into training and held-out ones, the training records among them are a draw without replacement, which gives an exact
    p-value. Distinct neighbours are counted, because noisy records often share one. It works on records and not on a
    classifier's features: a classifier knows its training records, and would tell them apart by itself.
    """
    if min(len(train), len(heldout)) < 2 or len(synthetic) < 1:
        raise BadInput(
            f"The memorisation check needs records on all sides, got {len(synthetic)} synthetic, {len(train)} training "
            f"and {len(heldout)} held-out ones."
        )
    near_train, near_heldout = nearest(synthetic, train, 2), nearest(synthetic, heldout, 2)
    by_train, by_heldout = near_train[0][:, 0], near_heldout[0][:, 0]
    ordered = torch.cat([near_train[0], near_heldout[0]], 1).sort(1).values
    # One number per real record; a record that both sides hold tells nothing and is left out.
    indices = torch.where(by_train < by_heldout, near_train[1][:, 0], near_heldout[1][:, 0] + len(train))
    decided = by_train != by_heldout
    copied = decided & (COPY_RATIO * ordered[:, 0] < ordered[:, 1])
    neighbours = torch.unique(indices[decided])
    from_train = int((neighbours < len(train)).sum())
    p_value = _chance(neighbours, len(train), len(heldout))
    return Memorisation(
        train_records=len(train),
        heldout_records=len(heldout),
        neighbours=len(neighbours),
        from_train=from_train,
        expected=len(neighbours) * len(train) / (len(train) + len(heldout)),
        p_value=p_value,
        copies=int((indices[copied] < len(train)).sum()),
        heldout_copies=int((indices[copied] >= len(train)).sum()),
        suspicious=min(p_value, _chance(torch.unique(indices[copied]), len(train), len(heldout))) < SUSPICION,
        train_distance=summary(by_train),
        heldout_distance=summary(by_heldout),
    )


def _chance(indices: Tensor, train: int, heldout: int) -> float:
    """The chance that a blind draw of as many real records holds at least as many training records."""
    from_train = int((indices < train).sum())
    return float(hypergeom.sf(from_train - 1, train + heldout, train, len(indices))) if len(indices) else 1.0


def summary(distances: Tensor) -> dict[str, float]:
    """The smallest, the median and the mean distance."""
    return {
        "min": float(distances.min()),
        "median": float(distances.median()),
        "mean": float(distances.mean()),
    }
