"""Training a network on a small set of records: the loop that downstream evaluation and the methods share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.nets.architectures.convnet import Block, use_fused_layers
from limbeck.nets.architectures.network import Network
from limbeck.nets.kernels.hardware import channels_last, has_fast_bfloat16
from limbeck.nets.training.augment import augment_each

CACHED_PIXELS = 64 * 28 * 28


@dataclass(frozen=True, kw_only=True)
class TrainingSchedule:
    """How a network is trained: SGD with momentum, lr falls to a tenth after the share `decay_at` of the epochs.

    families: of per-record augmentation, one drawn per batch.
    """

    epochs: int
    batch: int = 256
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    decay_at: float = 0.5
    families: tuple[str, ...] = ()

    def lr_at(self, epoch: int) -> float:
        return self.lr * (0.1 if epoch >= self.decay_at * self.epochs else 1.0)


def prepare(network: Network, shape: Sequence[int]) -> Network:
    """The layout and the fused layers that train fastest."""
    if len(shape) == 3 and likes_channels_last(network):
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        use_fused_layers(network, tuple(shape))
    return network


def descend(
    network: Network,
    x: Tensor,
    targets: Tensor,
    schedule: TrainingSchedule,
    seed: int,
    after_epoch: Callable[[Network], None] | None = None,
    velocity: Sequence[Tensor] = (),
) -> None:
    """Train in place. Targets are class indices or soft labels. The same seed gives the same weights on the same machine.

    velocity: the momentum of each parameter where training goes on; it is moved in place too.
    """
    rng = torch.Generator().manual_seed(seed)
    last = likes_channels_last(network)
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=schedule.lr,
        momentum=schedule.momentum,
        weight_decay=schedule.weight_decay,
        fused=x.device.type in ("cpu", "cuda"),
    )
    for parameter, moving in zip(network.parameters(), velocity, strict=False):
        optimizer.state[parameter]["momentum_buffer"] = moving
    for epoch in range(schedule.epochs):
        for group in optimizer.param_groups:
            group["lr"] = schedule.lr_at(epoch)
        order = torch.randperm(x.shape[0], generator=rng).to(x.device)
        for rows in torch.split(order, schedule.batch):
            records = augment_each(x[rows], schedule.families, rng)
            optimizer.zero_grad(set_to_none=True)
            _add_gradients(network, records, targets[rows], last)
            optimizer.step()
        if after_epoch is not None:
            after_epoch(network.eval())
            network.train()


def _add_gradients(network: Network, x: Tensor, targets: Tensor, last: bool) -> None:
    """The gradient of the mean loss; on a CPU in pieces whose maps stay in the cache, since no layer mixes records."""
    piece = x.shape[0]
    if x.device.type == "cpu" and x.dim() == 4:
        piece = max(1, CACHED_PIXELS // (x.shape[2] * x.shape[3]))
    for start in range(0, x.shape[0], piece):
        logits = logits_of(network, x[start : start + piece], last)
        loss = F.cross_entropy(logits, targets[start : start + piece], reduction="sum") / x.shape[0]
        torch.autograd.backward(loss)


def likes_channels_last(network: Network) -> bool:
    """Convolutions do, but an instance norm other than the ConvNet's fused one is slow on such maps."""
    return not any(isinstance(layer, nn.GroupNorm) for layer in network.modules()) or any(
        isinstance(layer, Block) for layer in network.modules()
    )


def logits_of(network: Network, x: Tensor, last: bool) -> Tensor:
    """Weights and optimiser stay in float32; only the products run in bfloat16, where the CPU has it."""
    images = x.dim() == 4
    with torch.autocast(x.device.type, torch.bfloat16, enabled=images and has_fast_bfloat16(x.device)):
        logits: Tensor = network(channels_last(x) if images and last else x)
    return logits.float()
