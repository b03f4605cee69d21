"""Instance norm, ReLU and average pooling as one operation.

After the convolutions these three are the rest of a ConvNet's time, all of it spent moving maps through memory. Written
as one pass for the statistics and one for the result, and compiled, they cost next to nothing on a CPU. Without a C++
compiler, on other devices and for small maps the same numbers come from the ordinary PyTorch layers.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

logger = logging.getLogger(__name__)

WORTH_COMPILING = 32 * 16 * 16  # numbers in one record's map: below this, compiling costs more than it saves


def forward_piece(y: Tensor, gain: Tensor, bias: Tensor, eps: float, pool: int) -> tuple[Tensor, Tensor, Tensor]:
    """(B, H, W, C) maps -> pooled maps, and the mean and 1/std of every record and channel."""
    wide = _wide(y)
    mean = wide.mean((1, 2))
    variance = (wide * wide).mean((1, 2)) - mean * mean
    rstd = torch.rsqrt(variance.clamp_min(0) + eps)
    scale = (rstd * gain)[:, None, None]
    shift = (bias - mean * rstd * gain)[:, None, None]
    height, width = y.shape[1] // pool * pool, y.shape[2] // pool * pool
    # The sum over the pool's corners is written out, because slices compile to straight vector code.
    corners = [wide[:, i:height:pool, j:width:pool] for i in range(pool) for j in range(pool)]
    pooled = torch.relu(corners[0] * scale + shift)
    for corner in corners[1:]:
        pooled = pooled + torch.relu(corner * scale + shift)
    return (pooled / (pool * pool)).to(y.dtype), mean, rstd


def backward_piece(
    y: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor, bias: Tensor, grad: Tensor, pool: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients with respect to the maps, and per record to gain and bias."""
    spread = _spread(_wide(grad), pool, y)
    normal = (_wide(y) - mean[:, None, None]) * rstd[:, None, None]
    passed = torch.where(normal * gain + bias > 0, spread, 0.0)
    sum_passed = passed.sum((1, 2))
    sum_product = (passed * normal).sum((1, 2))
    pixels = y.shape[1] * y.shape[2]
    centred = passed - (sum_passed / pixels)[:, None, None] - normal * (sum_product / pixels)[:, None, None]
    return ((rstd * gain)[:, None, None] * centred).to(y.dtype), sum_product, sum_passed


def _wide(maps: Tensor) -> Tensor:
    """Norms are computed in float32 at least, whatever the convolutions are in."""
    return maps.to(torch.promote_types(maps.dtype, torch.float32))


def tangent_forward_piece(
    y: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor, bias: Tensor, moved: Tensor, pool: int
) -> tuple[Tensor, Tensor, Tensor]:
    """How the pooled maps move when the maps y move; and per record and channel the means of moved and moved * normal."""
    height, width = y.shape[1] // pool * pool, y.shape[2] // pool * pool
    shift, scale = mean[:, None, None], rstd[:, None, None]
    normal = (y - shift) * scale
    centre = moved.mean((1, 2))
    slope = (moved * normal).mean((1, 2))
    result = torch.zeros_like(moved[:, 0:height:pool, 0:width:pool])
    for i in range(pool):
        for j in range(pool):
            corner = (y[:, i:height:pool, j:width:pool] - shift) * scale
            turned = moved[:, i:height:pool, j:width:pool] - centre[:, None, None] - corner * slope[:, None, None]
            result = result + torch.where(corner * gain + bias > 0, turned * scale * gain, 0.0)
    return result / (pool * pool), centre, slope


def tangent_backward_piece(
    y: Tensor,
    mean: Tensor,
    rstd: Tensor,
    gain: Tensor,
    bias: Tensor,
    moved: Tensor,
    centre: Tensor,
    slope: Tensor,
    grad: Tensor,
    moved_grad: Tensor,
    pool: int,
) -> Tensor:
    """How the first result of `backward_piece` moves when y moves by `moved` and grad by `moved_grad`."""
    pixels = y.shape[1] * y.shape[2]
    normal = (y - mean[:, None, None]) * rstd[:, None, None]
    # As a number: a condition that is used twice compiles to code that is ten times slower.
    open_gate = (normal * gain + bias > 0).to(y.dtype)
    passed, moved_passed = open_gate * _spread(grad, pool, y), open_gate * _spread(moved_grad, pool, y)
    first, second = passed.sum((1, 2)) / pixels, (passed * normal).sum((1, 2)) / pixels
    moved_first = moved_passed.sum((1, 2)) / pixels
    # The mean of passed * moved_normal, written out: sums of sums would keep the compiler from making one pass of it.
    product = (passed * moved).sum((1, 2)) / pixels - centre * first - slope * second
    moved_second = (moved_passed * normal).sum((1, 2)) / pixels + rstd * product
    moved_normal = rstd[:, None, None] * (moved - centre[:, None, None] - normal * slope[:, None, None])
    still = passed - first[:, None, None] - normal * second[:, None, None]
    moving = moved_passed - moved_first[:, None, None] - moved_normal * second[:, None, None]
    moving = moving - normal * moved_second[:, None, None]
    # 1/std moves by -slope / std^2.
    return (gain * rstd)[:, None, None] * (moving - (rstd * slope)[:, None, None] * still)


def _spread(grad: Tensor, pool: int, y: Tensor) -> Tensor:
    """The gradient of average pooling: each number shared out to the pixels that it is the mean of."""
    records, height, width, channels = y.shape
    spread = grad[:, :, None, :, None].expand(-1, -1, pool, -1, pool, -1) / (pool * pool)
    spread = spread.reshape(records, grad.shape[1] * pool, grad.shape[2] * pool, channels)
    if spread.shape[1:3] != y.shape[1:3]:
        spread = F.pad(spread, (0, 0, 0, width - spread.shape[2], 0, height - spread.shape[1]))
    return spread


@functools.cache
def _compiled(piece: Callable[..., Any], key: object) -> Callable[..., Any]:
    # One function per map size (the key), so that only the number of records is dynamic. The compiler remembers by a
    # function's name and line which sizes it has seen differ; under one name every size would become dynamic, and slow.
    name = f"{piece.__name__}_{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"
    own = types.FunctionType(piece.__code__.replace(co_name=name, co_qualname=name), piece.__globals__, name)
    return torch.compile(own, dynamic=None)


def run_piece(piece: Callable[..., Any], compiled: bool, y: Tensor, *args: Any) -> Any:
    """Call a piece, compiled for maps of y's size and the last argument, a plain number; records come first in every tensor."""
    if not compiled:
        return piece(y, *args)
    torch._dynamo.maybe_mark_dynamic(y, 0)
    for other in args:
        if isinstance(other, Tensor) and other.dim() > 1:
            torch._dynamo.maybe_mark_dynamic(other, 0)
    pool = args[-1]
    return _compiled(piece, (y.shape[1:], y.dtype, pool))(y, *args)


@functools.cache
def compiler_works() -> bool:
    """Whether torch.compile can build CPU code here. LIMBECK_COMPILE=0 says no without trying."""
    if os.environ.get("LIMBECK_COMPILE", "1") == "0":
        return False
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the compiler imports on its first use is not the user's concern
            torch.compile(lambda x: torch.relu(x) + 1, dynamic=False)(torch.zeros(64))
    except (RuntimeError, ImportError, OSError) as reason:  # no compiler, or a broken one: do without
        logger.warning("torch.compile does not work here, continuing without it: %s", str(reason).splitlines()[0])
        return False
    return True


def worth_fusing(device: torch.device, size: int) -> bool:
    """size: of the first and largest map that one record fills."""
    return device.type == "cpu" and size >= WORTH_COMPILING and compiler_works()


def fused_forward(
    y: Tensor, gain: Tensor, bias: Tensor, eps: float, pool: int, compiled: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    result: tuple[Tensor, Tensor, Tensor] = run_piece(forward_piece, compiled, y, gain, bias, eps, pool)
    return result


def fused_backward(
    y: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor, bias: Tensor, grad: Tensor, pool: int, compiled: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    result: tuple[Tensor, Tensor, Tensor] = run_piece(backward_piece, compiled, y, mean, rstd, gain, bias, grad, pool)
    return result


def fused_tangent_forward(
    y: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor, bias: Tensor, moved: Tensor, pool: int, compiled: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    result: tuple[Tensor, Tensor, Tensor] = run_piece(
        tangent_forward_piece, compiled, y, mean, rstd, gain, bias, moved, pool
    )
    return result


def fused_tangent_backward(
    y: Tensor,
    mean: Tensor,
    rstd: Tensor,
    gain: Tensor,
    bias: Tensor,
    moved: Tensor,
    centre: Tensor,
    slope: Tensor,
    grad: Tensor,
    moved_grad: Tensor,
    pool: int,
    compiled: bool = True,
) -> Tensor:
    given = (mean, rstd, gain, bias, moved, centre, slope, grad, moved_grad, pool)
    result: Tensor = run_piece(tangent_backward_piece, compiled, y, *given)
    return result


class _NormReluPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, gain: Tensor, bias: Tensor, eps: float, pool: int) -> Tensor:
        y = x.permute(0, 2, 3, 1).contiguous()
        pooled, mean, rstd = fused_forward(y, gain, bias, eps, pool)
        ctx.save_for_backward(y, mean, rstd, gain, bias)
        ctx.pool = pool  # type: ignore[attr-defined]
        return pooled.permute(0, 3, 1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, mean, rstd, gain, bias = ctx.saved_tensors
        grad = grad.permute(0, 2, 3, 1).contiguous()
        grad_y, grad_gain, grad_bias = fused_backward(y, mean, rstd, gain, bias, grad, ctx.pool)
        return grad_y.permute(0, 3, 1, 2), grad_gain.sum(0), grad_bias.sum(0), None, None


def norm_relu_pool(x: Tensor, gain: Tensor, bias: Tensor, eps: float, pool: int) -> Tensor:
    """avg_pool(relu(instance_norm(x))) of (B, C, H, W) maps; not twice differentiable where it is compiled."""
    if x.device.type == "cpu" and compiler_works():
        return _NormReluPool.apply(x, gain, bias, eps, pool)  # type: ignore[no-any-return,no-untyped-call]
    return plain_norm_relu_pool(x, gain, bias, eps, pool)


def plain_norm_relu_pool(x: Tensor, gain: Tensor, bias: Tensor, eps: float, pool: int) -> Tensor:
    activated = torch.relu(F.group_norm(x, x.shape[1], gain.to(x.dtype), bias.to(x.dtype), eps))
    return F.avg_pool2d(activated, pool) if pool > 1 else activated
