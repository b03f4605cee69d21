"""Frechet distance between two sets of feature vectors, each taken as one Gaussian (Heusel et al., 2017).

With the pool features of an ImageNet Inception-v3 this is the FID; with the features of a reference classifier it is the Frechet
classifier distance. The two are on different scales and are never called by one name.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from limbeck.errors import BadInput


def frechet_distance(first: Tensor, second: Tensor) -> float:
    """|m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)) of the rows of two (records, features) tables.

    With S1 = A'A and S2 = B'B the trace of (S1 S2)^(1/2) is the sum of the singular values of AB', which stays real and
    exact where a covariance is singular, as that of a set with fewer records than features is.
    """
    if first.dim() != 2 or second.dim() != 2 or first.shape[1] != second.shape[1]:
        raise BadInput(
            f"Expected two tables of the same features, got shapes {tuple(first.shape)} and {tuple(second.shape)}."
        )
    if min(len(first), len(second)) < 2:
        raise BadInput(f"A Frechet distance needs at least 2 records on each side, got {len(first)} and {len(second)}.")
    factor1, factor2 = _factor(first), _factor(second)
    apart = (first.double().mean(0) - second.double().mean(0)).square().sum()
    overlap = torch.linalg.svdvals(factor1 @ factor2.T).sum()
    return max(0.0, float(apart + factor1.square().sum() + factor2.square().sum() - 2 * overlap))


def _factor(rows: Tensor) -> Tensor:
    """A matrix A with A'A = covariance of the rows, and no more rows than it needs."""
    centred = rows.double() - rows.double().mean(0)
    centred = centred / math.sqrt(len(rows) - 1)
    if len(rows) <= rows.shape[1]:
        return centred
    values, vectors = torch.linalg.eigh(centred.T @ centred)
    factor: Tensor = values.clamp_min(0).sqrt()[:, None] * vectors.T
    return factor
