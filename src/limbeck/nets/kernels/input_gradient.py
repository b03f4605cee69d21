"""The gradient of a convolution with respect to its input, also where the input has few channels.

Libraries block convolutions by channels, and with one or three of them most of a block is empty: for the first layer of a
narrow network this gradient alone takes longer than everything else together. There it is one matrix product, which weighs
every pixel's flow with each number of the weight, and a compiled pass that shifts the products to their positions and adds up.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.kernels.fused import run_piece
from limbeck.nets.kernels.hardware import channels_last

FEW = 32  # numbers in a patch up to which the matrix product beats the library
SIDE = 3  # of the kernels that are shifted here


def input_gradient(flow: Tensor, weight: Tensor, padding: int, side: tuple[int, int], compiled: bool) -> Tensor:
    """(B, H, W, out) gradients with respect to the maps of `conv2d(x, weight, padding=padding)` -> (B, *side, in)."""
    if compiled and weight[0].numel() <= FEW and weight.shape[2:] == (SIDE, SIDE):
        return _shifted_products(flow, weight, padding)
    # Only the shape and layout of the input are looked at.
    size = (len(flow), weight.shape[1], *side)
    unread = torch.empty(size, dtype=flow.dtype, device=flow.device, memory_format=torch.channels_last)
    result: Tensor = torch.ops.aten.convolution_backward(
        flow.permute(0, 3, 1, 2), unread, channels_last(weight), None,
        [1, 1], [padding, padding], [1, 1], False, [0, 0], 1, [True, False, False],
    )[0]  # fmt: skip
    return result.permute(0, 2, 3, 1).contiguous()


def _shifted_products(flow: Tensor, weight: Tensor, padding: int) -> Tensor:
    records, high, wide, out = flow.shape
    each = weight.permute(2, 3, 1, 0).reshape(-1, out).contiguous()
    products = (each @ flow.reshape(records, -1, out).mT).view(records, -1, high, wide)
    rim = SIDE - 1 - padding  # what the shifts reach beyond the maps; below zero, what they do not reach
    result: Tensor = run_piece(shift_piece, True, F.pad(products, (rim,) * 4) if rim else products, SIDE)
    return result.permute(0, 2, 3, 1).contiguous()


def shift_piece(products: Tensor, side: int) -> Tensor:
    """(B, taps * channels, H, W) -> (B, channels, h, w): at each pixel the sum of what it is weighed with by every tap of
    a kernel of this side."""
    channels = products.shape[1] // side**2
    height, width = (size + 1 - side for size in products.shape[2:])
    sums = []
    for channel in range(channels):
        total: Tensor | None = None
        for tap in range(side**2):
            down, right = side - 1 - tap // side, side - 1 - tap % side
            part = products[:, tap * channels + channel, down : down + height, right : right + width].float()
            total = part if total is None else total + part
        assert total is not None
        sums.append(total)
    return torch.stack(sums, dim=1).to(products.dtype)
