"""Two models that learn from a small set within milliseconds: logistic regression, and boosted trees as XGBoost grows them.

What a set is worth is what they make of it, so thousands of sets can be tried. Both are written for a class against the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Singles = NDArray[np.float32]
Flags = NDArray[np.bool_]

# XGBoost's own defaults: step size, depth of a tree, what leaves are held back by, and the least second derivative in a leaf.
RATE, DEPTH, HELD, LEAST = 0.3, 6, 1.0, 1.0
LEAST_GAIN = 1e-6
NEWTON_STEPS, NEAR = 10, 1e-3
FAR = 30.0  # log odds beyond which a chance is 0 or 1


def logistic(x: Numbers, y: Numbers) -> tuple[Numbers, float]:
    """Weights and constant of the log odds, as scikit-learn's defaults make them of standardised numbers.

    x: (rows, numbers). y: (rows,) 1 for the class, 0 for others.
    """
    mean, spread = x.mean(0), x.std(0)
    spread = np.where(spread > 1e-6, spread, 1.0)
    z = (x - mean) / spread
    basis = None
    if len(z) < z.shape[1]:  # the weights lie in the span of the rows: a smaller equation says the same
        basis, triangle = np.linalg.qr(z.T)
        z = triangle.T
    z = np.concatenate([z, np.ones((len(z), 1))], axis=1)
    held = np.append(np.ones(z.shape[1] - 1), 1e-6)
    weights = np.zeros(z.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = chance_of(z @ weights)
        curve = (z * np.maximum(chance * (1 - chance), 1e-6)[:, None]).T @ z + np.diag(held)
        step = np.linalg.solve(curve, z.T @ (chance - y) + held * weights)
        weights -= step
        if np.abs(step).max() < NEAR:
            break
    own = (weights[:-1] if basis is None else basis @ weights[:-1]) / spread
    return own, float(weights[-1] - mean @ own)


def boosted(values: Singles, y: Numbers, judged: Singles, rounds: int) -> Numbers:
    """Log odds of the judged rows after so many trees.

    values: (rows, columns). judged: (columns, judged rows), of other rows. A tree is cut where XGBoost cuts it: left is what lies
    below the next larger value that the column has among all rows.
    """
    columns, edges = _splits(values)
    left = (values[:, columns] < edges).astype(np.float32)
    seen: dict[int, Flags] = {}

    def left_of(split: int) -> Flags:
        if split not in seen:
            seen[split] = judged[columns[split]] < edges[split]
        return seen[split]

    share = np.clip(y.mean(), 1e-3, 1 - 1e-3)
    own = np.full(len(y), np.log(share / (1 - share)))
    odds = np.full(judged.shape[1], own[0], dtype=np.float32)
    for _ in range(rounds if len(edges) else 0):
        chance = chance_of(own)
        slopes = np.stack([chance - y, chance * (1 - chance)]).astype(np.float32)
        if slopes[1].sum() < 2 * LEAST or not _grow(left, slopes, left_of, own, odds):
            break
    return odds.astype(np.float64)


def _splits(values: Singles) -> tuple[NDArray[np.int64], Singles]:
    """The column of every cut between two values, and the upper one of them."""
    edges = [np.unique(column)[1:] for column in values.T]
    return np.repeat(np.arange(len(edges)), [len(each) for each in edges]), np.concatenate(edges)


def _grow(left: Singles, slopes: Singles, left_of: Callable[[int], Flags], own: Numbers, odds: Singles) -> bool:
    """Add one tree to both, level by level. Whether it has a split at all: without, no later tree has."""
    nodes = [np.ones(len(odds), dtype=np.bool_)]  # which of the judged rows lie in each node
    node = np.zeros(len(own), dtype=np.int64)
    for depth in range(DEPTH + 1):
        inside = node == np.arange(len(nodes))[:, None]
        parts = inside * slopes[:, None]
        total = parts.sum(2)
        best = _best_splits(parts, total, left) if depth < DEPTH else [-1] * len(nodes)
        below: list[Flags] = []
        node = np.full(len(own), -1)
        for place, split in enumerate(best):
            if split < 0:
                value = -RATE * float(total[0, place]) / (float(total[1, place]) + HELD)
                own[inside[place]] += value
                odds += nodes[place] * np.float32(value)
                continue
            is_left, judged = left[:, split] > 0, left_of(split)
            node[inside[place]] = len(below) + ~is_left[inside[place]]
            below += [nodes[place] & judged, nodes[place] & ~judged]
        if not below:
            return depth > 0
        nodes = below
    return True


def _best_splits(parts: Singles, total: Singles, left: Singles) -> list[int]:
    """For each node the split that gains most; -1: none gains anything."""
    found = [-1] * parts.shape[1]
    large = np.flatnonzero(total[1] >= 2 * LEAST)  # others have no two halves that are heavy enough
    parts, total = parts[:, large], total[:, large]
    slope, curve = (parts.reshape(-1, parts.shape[2]) @ left).reshape(*parts.shape[:2], left.shape[1])
    other_slope, other_curve = total[0][:, None] - slope, total[1][:, None] - curve
    gain = slope**2 / (curve + HELD) + other_slope**2 / (other_curve + HELD)
    gain[(curve < LEAST) | (other_curve < LEAST)] = 0
    best = gain.argmax(1)
    gained = gain.max(1) - total[0] ** 2 / (total[1] + HELD)
    for place, split, more in zip(large.tolist(), best.tolist(), gained.tolist(), strict=True):
        if more > LEAST_GAIN:
            found[place] = split
    return found


def chance_of(odds: Numbers) -> Numbers:
    chance: Numbers = 1 / (1 + np.exp(-np.clip(odds, -FAR, FAR)))
    return chance
