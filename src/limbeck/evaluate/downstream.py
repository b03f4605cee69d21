"""Downstream accuracy: what a network trained on the synthetic set alone knows about real test records.

Training reads only the synthetic set, so it costs no privacy. The score reads real test records: on public test sets it
is free, on private ones it belongs to the owner's report and never into a release.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.evaluate.presets import Preset, model_spec, preset_named
from limbeck.nets import NetSpec, Network, augment_each, build, use_fused_layers
from limbeck.nets.hardware import channels_last, has_fast_bfloat16

SCORED_AT_ONCE = 100
CACHED_PIXELS = 64 * 28 * 28


@dataclass(frozen=True)
class Score:
    """Accuracy in percent over the networks of one model. `labels` says what they were trained on: hard or soft."""

    mean: float
    std: float
    runs: tuple[float, ...]
    labels: str = "hard"


def train(
    model: str | NetSpec,
    x: Tensor,
    y: Tensor,
    classes: int,
    preset: Preset | str = "paper",
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Network:
    """A network trained on (x, y); y holds class indices (B,) or soft labels (B, classes).

    The same seed gives the same network on the same machine.
    """
    preset = preset_named(preset) if isinstance(preset, str) else preset
    _check(x, y, classes)
    device = torch.device(device)
    shape = tuple(x.shape[1:])
    spec = model_spec(model, shape, preset) if isinstance(model, str) else model
    network = build(spec, shape, classes, seed, device)
    if spec.kind == "convnet":
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        use_fused_layers(network, shape)
    generator = torch.Generator().manual_seed(seed)
    targets = y.to(device, torch.float32 if y.dim() == 2 else torch.long)
    _descend(network.train(), x.to(device, torch.float32), targets, preset, generator)
    return network.eval()


def _descend(network: Network, x: Tensor, targets: Tensor, preset: Preset, generator: torch.Generator) -> None:
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=preset.lr,
        momentum=preset.momentum,
        weight_decay=preset.weight_decay,
        fused=x.device.type in ("cpu", "cuda"),
    )
    for epoch in range(preset.epochs):
        for group in optimizer.param_groups:
            group["lr"] = preset.lr * (0.1 if epoch >= preset.epochs / 2 else 1.0)
        order = torch.randperm(x.shape[0], generator=generator).to(x.device)
        for rows in torch.split(order, preset.batch):
            records = augment_each(x[rows], preset.augment, generator)
            optimizer.zero_grad(set_to_none=True)
            _add_gradients(network, records, targets[rows])
            optimizer.step()


def _add_gradients(network: Network, x: Tensor, targets: Tensor) -> None:
    """The gradient of the mean loss; on a CPU in pieces whose maps stay in the cache, since no layer mixes records."""
    piece = x.shape[0]
    if x.device.type == "cpu" and x.dim() == 4:
        piece = max(1, CACHED_PIXELS // (x.shape[2] * x.shape[3]))
    for start in range(0, x.shape[0], piece):
        logits = _logits(network, x[start : start + piece])
        loss = F.cross_entropy(logits, targets[start : start + piece], reduction="sum") / x.shape[0]
        torch.autograd.backward(loss)


def _logits(network: Network, x: Tensor) -> Tensor:
    """Weights and optimiser stay in float32; only the products run in bfloat16, where the CPU has it."""
    images = x.dim() == 4
    with torch.autocast(x.device.type, torch.bfloat16, enabled=images and has_fast_bfloat16(x.device)):
        logits: Tensor = network(channels_last(x) if images else x)
    return logits.float()


def accuracy(network: Network, x: Tensor, y: Tensor) -> float:
    """Percent of the records whose largest logit is their class. Soft labels count by their largest entry."""
    _check_lengths(x, y)
    device = next(network.parameters()).device
    truth = (y.argmax(1) if y.dim() == 2 else y).to(device)
    right = 0
    with torch.no_grad():
        for start in range(0, x.shape[0], SCORED_AT_ONCE):
            records = x[start : start + SCORED_AT_ONCE].to(device, torch.float32)
            right += int((_logits(network, records).argmax(1) == truth[start : start + SCORED_AT_ONCE]).sum())
    return 100.0 * right / x.shape[0]


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
    """Mean and standard deviation over `repeats` networks of each model, each scored once, at the end.

    progress(done, total) is called after every network.
    """
    preset = preset_named(preset) if isinstance(preset, str) else preset
    if repeats < 1:
        raise BadInput(f"Expected repeats={repeats} to be at least 1.")
    for model in models:
        model_spec(model, tuple(x.shape[1:]), preset)  # refuse before the first hour of training, not after it
    scores: dict[str, Score] = {}
    for index, model in enumerate(models):
        runs = []
        for repeat in range(repeats):
            network = train(model, x, y, classes, preset, seed + repeat, device)
            runs.append(accuracy(network, test_x, test_y))
            if progress is not None:
                progress(index * repeats + repeat + 1, len(models) * repeats)
        std = statistics.stdev(runs) if repeats > 1 else 0.0
        scores[model] = Score(statistics.fmean(runs), std, tuple(runs), "soft" if y.dim() == 2 else "hard")
    return scores


def _check(x: Tensor, y: Tensor, classes: int) -> None:
    _check_lengths(x, y)
    if y.dim() == 2 and y.shape[1] != classes:
        raise BadInput(f"Expected soft labels with classes={classes} columns, got {y.shape[1]}.")
    if y.dim() == 1 and (y.is_floating_point() or int(y.min()) < 0 or int(y.max()) >= classes):
        raise BadInput(f"Expected whole labels from 0 to {classes - 1}, or soft labels of shape (records, {classes}).")


def _check_lengths(x: Tensor, y: Tensor) -> None:
    if x.shape[0] == 0 or x.shape[0] != y.shape[0]:
        raise BadInput(f"Expected as many labels as records, at least one; got {y.shape[0]} and {x.shape[0]}.")
