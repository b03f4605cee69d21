"""What this machine does fast, and the memory layout it likes."""

from __future__ import annotations

import torch
from torch import Tensor


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 products run in hardware on this CPU (emulated ones are slower than float32)."""
    if device.type != "cpu":
        return False
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, name, bool)()) for name in checks)


def channels_last(x: Tensor) -> Tensor:
    """A copy of (B, C, H, W) with the channels innermost.

    contiguous() would leave one-channel tensors as they are, and the convolution would then answer channels first.
    """
    return torch.empty_like(x, memory_format=torch.channels_last).copy_(x)
