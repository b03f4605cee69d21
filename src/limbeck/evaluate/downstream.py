"""Downstream accuracy: what a model trained on the synthetic set alone knows about real test records.

Training reads only the synthetic set, so it costs no privacy. The score reads real test records: on public test sets it
is free, on private ones it belongs to the owner's report and never into a release.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.evaluate.by_class import area_under_curves, confusions, f1_of_classes
from limbeck.evaluate.classical import RECIPES, accuracy_of, answers_of
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import build_model
from limbeck.evaluate.presets import Preset, preset_named
from limbeck.nets import NetSpec, Network
from limbeck.nets.training.descent import descend, likes_channels_last, logits_of, prepare

SCORED_AT_ONCE = 100
MOST_CLASSES = 100  # of a matrix of confusions, which grows with their square


@dataclass(frozen=True)
class Score:
    """Accuracy in percent over the fits of one model, each scored at its end; std is none after a single one.

    runs: of each fit the accuracy, over several test sets their mean. labels: what they were trained on, hard or soft.
    best: for presets that look at every epoch, the best one of each network on the test set; optimistic, and never part of
    `mean`. areas: under the ROC curve in percent, of each network where there are two classes, because with classes of
    unequal size accuracy alone says little; of a table for every model, over more classes the mean of one against the rest.
    f1: of a table, of each fit and each class, in percent. by_test: of each fit its accuracy on each test set.
    confusion: over all fits, test records by true class and by answer; where there is one test set.
    """

    mean: float
    std: float | None
    runs: tuple[float, ...]
    labels: str = "hard"
    best: tuple[float, ...] = ()
    areas: tuple[float, ...] = ()
    f1: tuple[tuple[float | None, ...], ...] = ()
    by_test: tuple[tuple[float, ...], ...] = field(default=(), compare=False)
    confusion: tuple[tuple[int, ...], ...] = field(default=(), compare=False)
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, eq=False)
class Task:
    """What is trained on, and the test sets. y holds class indices, or soft labels (records, classes).

    each_class: whether every class is also scored for itself, on a test set that is alone.
    """

    x: Tensor
    y: Tensor
    tests: tuple[Labelled, ...]
    classes: int
    each_class: bool = False

    def __post_init__(self) -> None:
        _check(self.x, self.y, self.classes)
        for test in self.tests:
            _check_lengths(test.x, test.y)


def train(
    model: str | NetSpec,
    x: Tensor,
    y: Tensor,
    classes: int,
    preset: Preset | str = "paper",
    seed: int = 0,
    device: torch.device | str = "cpu",
    after_epoch: Callable[[Network], None] | None = None,
) -> Network:
    """A network trained on (x, y); y holds class indices (B,) or soft labels (B, classes).

    The same seed gives the same network on the same machine.
    """
    preset = preset_named(preset) if isinstance(preset, str) else preset
    _check(x, y, classes)
    device = torch.device(device)
    shape = tuple(x.shape[1:])
    network = prepare(build_model(model, shape, classes, preset, seed, device), shape)
    targets = y.to(device, torch.float32 if y.dim() == 2 else torch.long)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # for dropout, the one layer that draws from the global generator
        descend(network.train(), x.to(device, torch.float32), targets, preset.course, seed, after_epoch)
    return network.eval()


def accuracy(network: Network, x: Tensor, y: Tensor) -> float:
    """Percent of the records whose largest logit is their class. Soft labels count by their largest entry."""
    right = _logits(network, x, y).argmax(1) == _hard(y)
    return 100.0 * int(right.sum()) / x.shape[0]


def area_under_curve(network: Network, x: Tensor, y: Tensor) -> float | None:
    """The area under the ROC curve in percent, for two classes that are both there."""
    logits, truth = _logits(network, x, y), _hard(y)
    if logits.shape[1] != 2 or int(truth.min()) == int(truth.max()):
        return None
    from sklearn.metrics import roc_auc_score

    return 100.0 * float(roc_auc_score(truth.numpy(), (logits[:, 1] - logits[:, 0]).numpy()))


@torch.no_grad()
def _logits(network: Network, x: Tensor, y: Tensor) -> Tensor:
    _check_lengths(x, y)
    device, last = next(network.parameters()).device, likes_channels_last(network)
    parts = torch.split(x, SCORED_AT_ONCE)
    return torch.cat([logits_of(network, part.to(device, torch.float32), last).cpu() for part in parts])


def _hard(y: Tensor) -> Tensor:
    return (y.argmax(1) if y.dim() == 2 else y).cpu()


def fits(model: str, repeats: int) -> int:
    """How often a model is fitted: a classifier without chance gives the same answer every time."""
    return repeats if model not in RECIPES or RECIPES[model].random else 1


def score_model(
    model: str,
    task: Task,
    preset: Preset,
    repeats: int,
    seed: int = 0,
    device: torch.device | str = "cpu",
    tick: Callable[[], None] | None = None,
) -> Score:
    """Fit a model `fits(model, repeats)` times with successive seeds, and score each fit. tick() is called after each."""
    began = time.monotonic()
    found = []
    for repeat in range(fits(model, repeats)):
        if model in RECIPES:
            found.append(_classical_fit(model, task, seed + repeat))
        else:
            found.append(_network_fit(model, task, preset, seed + repeat, device))
        if tick is not None:
            tick()
    runs = tuple(statistics.fmean(fit.accuracies) for fit in found)
    return Score(
        statistics.fmean(runs),
        statistics.stdev(runs) if len(runs) > 1 else None,
        runs,
        "soft" if task.y.dim() == 2 and model not in RECIPES else "hard",
        tuple(fit.best for fit in found if fit.best is not None),
        tuple(fit.area for fit in found if fit.area is not None),
        tuple(fit.f1 for fit in found if fit.f1),
        tuple(fit.accuracies for fit in found),
        _added([fit.confusion for fit in found if fit.confusion is not None]),
        time.monotonic() - began,
    )


def _added(matrices: list[NDArray[np.int64]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, sum(matrices[1:], matrices[0]).tolist())) if matrices else ()


class _Fit(NamedTuple):
    """The accuracy on each test set at the end; where there is one test set also of the best epoch, and by class."""

    accuracies: tuple[float, ...]
    best: float | None = None
    area: float | None = None
    f1: tuple[float | None, ...] = ()
    confusion: NDArray[np.int64] | None = None


def _scored(truth: NDArray[np.int64], answers: NDArray[np.int64], scores: NDArray[np.float64], classes: int) -> _Fit:
    """One fit on one test set, with every class scored for itself."""
    right = 100.0 * float((answers == truth).mean())
    areas, f1 = area_under_curves(truth, scores), f1_of_classes(truth, answers, classes)
    return _Fit((right,), None, areas, f1, _confusion(truth, answers, classes))


def _confusion(truth: NDArray[np.int64], answers: NDArray[np.int64], classes: int) -> NDArray[np.int64] | None:
    return confusions(truth, answers, classes) if classes <= MOST_CLASSES else None


def _classical_fit(model: str, task: Task, seed: int) -> _Fit:
    hard, x = _hard(task.y).numpy(), _unit(task.x)
    if task.each_class and len(task.tests) == 1:
        (test,) = task.tests
        return _scored(
            _hard(test.y).numpy(), *answers_of(model, x, hard, _unit(test.x), task.classes, seed), task.classes
        )
    return _Fit(tuple(accuracy_of(model, x, hard, _unit(test.x), _hard(test.y).numpy(), seed) for test in task.tests))


def _unit(x: Tensor) -> NDArray[np.float32]:
    """Records in [-1, 1] as the classifiers' [0, 1]."""
    return ((x.to(torch.float32) + 1) / 2).numpy()


def _network_fit(model: str, task: Task, preset: Preset, seed: int, device: torch.device | str) -> _Fit:
    seen: list[float] = []
    first = task.tests[0]
    alone = len(task.tests) == 1

    def look(network: Network) -> None:
        seen.append(accuracy(network, first.x, first.y))

    watched = look if preset.every_epoch and alone else None
    network = train(model, task.x, task.y, task.classes, preset, seed, device, watched)
    if task.each_class and alone:
        logits = _logits(network, first.x, first.y).double()
        fit = _scored(_hard(first.y).numpy(), logits.argmax(1).numpy(), logits.softmax(1).numpy(), task.classes)
        return fit._replace(best=max(seen) if seen else None)
    area = area_under_curve(network, first.x, first.y) if task.classes == 2 and alone else None
    if alone:
        truth, answers = _hard(first.y).numpy(), _logits(network, first.x, first.y).argmax(1).numpy()
        right = seen[-1] if seen else 100.0 * int((answers == truth).sum()) / len(truth)
        return _Fit((right,), max(seen) if seen else None, area, (), _confusion(truth, answers, task.classes))
    return _Fit(tuple(accuracy(network, test.x, test.y) for test in task.tests), None, area)


def _check(x: Tensor, y: Tensor, classes: int) -> None:
    _check_lengths(x, y)
    if y.dim() == 2 and y.shape[1] != classes:
        raise BadInput(f"Expected soft labels with classes={classes} columns, got {y.shape[1]}.")
    if y.dim() == 1 and (y.is_floating_point() or int(y.min()) < 0 or int(y.max()) >= classes):
        raise BadInput(f"Expected whole labels from 0 to {classes - 1}, or soft labels of shape (records, {classes}).")
    if not bool(torch.isfinite(x).all()):
        raise BadInput("The set to train on holds numbers that are not finite, so nothing can be learnt from it.")


def _check_lengths(x: Tensor, y: Tensor) -> None:
    if x.shape[0] == 0 or x.shape[0] != y.shape[0]:
        raise BadInput(f"Expected as many labels as records, at least one; got {y.shape[0]} and {x.shape[0]}.")
