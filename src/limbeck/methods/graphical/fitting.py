"""From noised marginals to the graphical model that explains them best: mirror descent (McKenna, Sheldon and Miklau 2019).

The model has the largest entropy among those with its marginals. A step adds the gradient of the squared error, weighed by how
precise each marginal was measured, to the log potentials; its length is found by halving (Armijo).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from limbeck.methods.graphical.junction_tree import Clique, JunctionTree
from limbeck.methods.graphical.model import GraphicalModel

HALVINGS = 25
ENOUGH = 1e-9  # of the loss: a step that gains less is the last one


@dataclass(frozen=True, eq=False)
class Measurement:
    """Of the columns at these places, in rising order: how many records lie in each cell, and the std of the noise on it."""

    places: Clique
    counts: Tensor
    noise: Tensor


def combined(measured: Sequence[Measurement]) -> dict[Clique, Measurement]:
    """What was measured twice is weighed by its precision."""
    found: dict[Clique, Measurement] = {}
    for each in measured:
        if each.places in found:
            first, old, new = found[each.places], found[each.places].noise ** -2, each.noise**-2
            mean = (first.counts * old + each.counts * new) / (old + new)
            each = Measurement(each.places, mean, (old + new) ** -0.5)
        found[each.places] = each
    return found


def fitted(model: GraphicalModel, measured: Sequence[Measurement], total: float, steps: int) -> GraphicalModel:
    """The model after so many steps from here, on a tree that holds all that was measured. total: how many records there are."""
    goals = combined(measured)
    model = model.on(JunctionTree.of(model.tree.sizes, [*model.tree.cliques, *goals]))
    # In shares of all records, and with the sum of all weights as the unit of the loss.
    weights = {places: (total / goal.noise) ** 2 for places, goal in goals.items()}
    unit = float(sum(weight.mean() for weight in weights.values()))
    targets = {places: (goal.counts / total, weights[places] / unit) for places, goal in goals.items()}
    loss, slopes, at = _loss(model, targets)
    length = 2.0 * len(goals)
    for _ in range(steps):
        length *= 2
        for _ in range(HALVINGS):
            tried = model.moved({places: -length * slope for places, slope in slopes.items()})
            new_loss, new_slopes, new_at = _loss(tried, targets)
            gain = sum(float((slopes[places] * (at[places] - new_at[places])).sum()) for places in slopes)
            if loss - new_loss >= 0.5 * gain:
                break
            length /= 2
        else:
            break
        done = loss - new_loss <= ENOUGH * loss
        model, loss, slopes, at = tried, new_loss, new_slopes, new_at
        if done:
            break
    return model


def _loss(
    model: GraphicalModel, targets: Mapping[Clique, tuple[Tensor, Tensor]]
) -> tuple[float, dict[Clique, Tensor], dict[Clique, Tensor]]:
    """Half of the weighed squared error, its slope for each tuple, and the model's own marginals."""
    loss, slopes, at = 0.0, {}, {}
    for places, (target, weight) in targets.items():
        at[places] = model.marginal(places)
        apart = at[places] - target.reshape(at[places].shape)
        slopes[places] = weight.reshape(apart.shape) * apart
        loss += 0.5 * float((slopes[places] * apart).sum())
    return loss, slopes, at
