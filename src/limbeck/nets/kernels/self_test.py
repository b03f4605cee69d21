"""Do the fast kernels of this machine compute what the plain ones do? Each is tried on small public numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from limbeck.nets.kernels.fused import norm_relu_pool, plain_norm_relu_pool
from limbeck.nets.kernels.hardware import has_fast_bfloat16
from limbeck.nets.kernels.stacked import conv

# Single precision, and bfloat16 with its eight bits.
CLOSE, ROUGHLY = 1e-4, 3e-2


def off() -> dict[str, float]:
    """By kernel how far it is from the plain computation, relative to the largest value."""
    return {"norm-relu-pool": _fused(), "stacked convolution": _stacked()}


def is_sound(name: str, far: float) -> bool:
    rough = name == "stacked convolution" and has_fast_bfloat16(torch.device("cpu"))
    return far <= (ROUGHLY if rough else CLOSE)  # False for a NaN, too


def _fused() -> float:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(4, 8, 8, 8, generator=draw, requires_grad=True)
    gain, bias = torch.randn(8, generator=draw), torch.randn(8, generator=draw)
    fast, plain = norm_relu_pool(x, gain, bias, 1e-5, 2), plain_norm_relu_pool(x, gain, bias, 1e-5, 2)
    (slope,) = torch.autograd.grad(fast.square().sum(), x)
    (wanted,) = torch.autograd.grad(plain.square().sum(), x)
    return max(_apart(fast, plain), _apart(slope, wanted))


def _stacked() -> float:
    draw = torch.Generator().manual_seed(1)
    x, weight = torch.randn(2, 3, 6, 6, 4, generator=draw), torch.randn(2, 36, 5, generator=draw)
    fast = conv(x, weight, None, 3, padding=1)
    kernels = weight.view(2, 3, 3, 4, 5).permute(0, 4, 3, 1, 2)
    pairs = zip(x, kernels, strict=True)
    plain = torch.stack(
        [F.conv2d(one.permute(0, 3, 1, 2), kernel, padding=1).permute(0, 2, 3, 1) for one, kernel in pairs]
    )
    return _apart(fast, plain)


def _apart(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(((found - wanted).abs().max() / wanted.abs().max()).detach())
