"""The ConvNet of the condensation papers: blocks of 3x3 convolution, instance norm, ReLU and average pooling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.errors import BadInput
from limbeck.nets.architectures.network import Network, Shape, image_shape
from limbeck.nets.kernels.fused import norm_relu_pool, worth_fusing

SMALLEST_POOLED_SIDE = 4  # an instance norm needs some pixels to normalise over: a map of one pixel becomes zero


DEPTHS = ((224, 6), (128, 5), (64, 4))  # blocks from a smaller side on, as in the condensation papers
USUAL_DEPTH = 3


def usual_depth(shape: Shape) -> int:
    """As many blocks as bring a picture to a map of 3 to 7 pixels a side, so that embeddings of all sizes are about as long.

    >>> [usual_depth((3, side, side)) for side in (28, 32, 64, 96, 128, 224)]
    [3, 3, 4, 4, 5, 6]
    """
    if len(shape) != 3:
        return USUAL_DEPTH
    return next((depth for side, depth in DEPTHS if min(shape[1:]) >= side), USUAL_DEPTH)


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """The public geometry of one block."""

    channels_in: int
    channels_out: int
    padding: int
    pool: int
    side_out: tuple[int, int]


def plan_blocks(shape: Shape, width: int, depth: int) -> list[BlockPlan]:
    """Sizes of every block. Pooling stops while there is still a map to normalise, so that 8x8 digits work too."""
    channels, height, wide = image_shape("convnet", shape)
    if min(height, wide) < 2:
        raise BadInput(f"A convnet needs images of at least 2x2 pixels, got shape={shape}. Use 'mlp'.")
    blocks = []
    for index in range(depth):
        padding = 3 if index == 0 and tuple(shape) == (1, 28, 28) else 1
        height, wide = height + 2 * (padding - 1), wide + 2 * (padding - 1)
        pool = 2 if min(height, wide) >= SMALLEST_POOLED_SIDE else 1
        height, wide = height // pool, wide // pool
        blocks.append(
            BlockPlan(channels_in=channels, channels_out=width, padding=padding, pool=pool, side_out=(height, wide))
        )
        channels = width
    return blocks


class Block(nn.Module):
    """One block. `fused` switches to the compiled layers, which are faster but only once differentiable and unknown to
    torch.func, so that gradient matching and per-record gradients must leave it off."""

    def __init__(self, plan: BlockPlan) -> None:
        super().__init__()
        self.pool = plan.pool
        self.padding = plan.padding
        self.fused = False
        self.conv = nn.Conv2d(plan.channels_in, plan.channels_out, 3, padding=plan.padding)
        self.norm = nn.GroupNorm(plan.channels_out, plan.channels_out)

    def forward(self, x: Tensor) -> Tensor:
        norm = self.norm
        if self.fused:
            # Without its bias: the norm subtracts it again, its gradient is zero, and adding that up is slow.
            maps = F.conv2d(x, self.conv.weight, padding=self.padding)
            return norm_relu_pool(maps, norm.weight, norm.bias, norm.eps, self.pool)
        activated = torch.relu(norm(self.conv(x)))
        return F.avg_pool2d(activated, self.pool) if self.pool > 1 else activated


def convnet(shape: Shape, classes: int, width: int, depth: int) -> Network:
    plans = plan_blocks(shape, width, depth)
    height, wide = plans[-1].side_out
    body = nn.Sequential(*(Block(plan) for plan in plans), nn.Flatten())
    return Network(body, width * height * wide, classes)


def use_fused_layers(network: nn.Module, shape: Shape) -> None:
    """For training loops that need first derivatives only. Small maps keep the plain layers: compiling does not pay."""
    for module in network.modules():
        if isinstance(module, Block):
            module.fused = worth_fusing(module.conv.weight.device, module.conv.out_channels * math.prod(shape[1:]))
