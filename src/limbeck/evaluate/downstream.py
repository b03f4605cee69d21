"""Downstream accuracy: what a model trained on the synthetic set alone knows about real test records.

Training reads only the synthetic set, so it costs no privacy. The score reads real test records: on public test sets it
is free, on private ones it belongs to the owner's report and never into a release.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.evaluate.classical import RECIPES, accuracy_of
from limbeck.evaluate.models import build_model, choose
from limbeck.evaluate.presets import Preset, preset_named
from limbeck.nets import NetSpec, Network
from limbeck.nets.training.descent import descend, likes_channels_last, logits_of, prepare

SCORED_AT_ONCE = 100


@dataclass(frozen=True)
class Score:
    """Accuracy in percent over the fits of one model, each scored at its end; std is none after a single one.

    labels: what they were trained on, hard or soft. best: for presets that look at every epoch, the best one of each
    network on the test set; optimistic, and never part of `mean`. areas: under the ROC curve in percent, of each network
    where there are two classes, because with classes of unequal size accuracy alone says little.
    """

    mean: float
    std: float | None
    runs: tuple[float, ...]
    labels: str = "hard"
    best: tuple[float, ...] = ()
    areas: tuple[float, ...] = ()
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, eq=False)
class Task:
    """What is learnt from and what is asked about. y holds class indices, or soft labels (records, classes)."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor
    classes: int

    def __post_init__(self) -> None:
        _check(self.x, self.y, self.classes)
        _check_lengths(self.test_x, self.test_y)


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
    runs: list[float] = []
    best: list[float] = []
    areas: list[float] = []
    for repeat in range(fits(model, repeats)):
        if model in RECIPES:
            runs.append(_classical(model, task, seed + repeat))
        else:
            last, top, area = _network_run(model, task, preset, seed + repeat, device)
            runs.append(last)
            best += [] if top is None else [top]
            areas += [] if area is None else [area]
        if tick is not None:
            tick()
    return Score(
        statistics.fmean(runs),
        statistics.stdev(runs) if len(runs) > 1 else None,
        tuple(runs),
        "soft" if task.y.dim() == 2 and model not in RECIPES else "hard",
        tuple(best),
        tuple(areas),
        time.monotonic() - began,
    )


def _classical(model: str, task: Task, seed: int) -> float:
    hard, truth = _hard(task.y).numpy(), _hard(task.test_y).numpy()
    unit = [((records.to(torch.float32) + 1) / 2).numpy() for records in (task.x, task.test_x)]
    return accuracy_of(model, unit[0], hard, unit[1], truth, seed)


def _network_run(
    model: str, task: Task, preset: Preset, seed: int, device: torch.device | str
) -> tuple[float, float | None, float | None]:
    """The accuracy at the end, the best of all epochs where the preset asks for it, and the area at the end."""
    seen: list[float] = []

    def look(network: Network) -> None:
        seen.append(accuracy(network, task.test_x, task.test_y))

    network = train(model, task.x, task.y, task.classes, preset, seed, device, look if preset.every_epoch else None)
    area = area_under_curve(network, task.test_x, task.test_y) if task.classes == 2 else None
    if seen:
        return seen[-1], max(seen), area
    return accuracy(network, task.test_x, task.test_y), None, area


def evaluate(
    x: Tensor,
    y: Tensor,
    test_x: Tensor,
    test_y: Tensor,
    classes: int,
    models: Sequence[str] = ("convnet",),
    preset: Preset | str = "paper",
    repeats: int = 3,
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Score]:
    """Mean and standard deviation over `repeats` fits of each model, each scored at its end.

    A model of a group that cannot be trained here is left out. progress(done, total) is called after every fit.
    """
    preset = preset_named(preset) if isinstance(preset, str) else preset
    require_repeats(repeats)
    # Refuse a model before the first hour of training, not after it.
    chosen = [choice.model for choice in choose(models, tuple(x.shape[1:])) if not choice.skipped]
    task = Task(x, y, test_x, test_y, classes)
    done, total = 0, sum(fits(model, repeats) for model in chosen)

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return {model: score_model(model, task, preset, repeats, seed, device, tick) for model in chosen}


def require_repeats(repeats: int) -> None:
    if repeats < 1:
        raise BadInput(f"Expected repeats={repeats} to be at least 1.")


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
