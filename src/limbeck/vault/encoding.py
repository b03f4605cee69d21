"""Raw values to the numbers that networks see: [-1, 1], by the schema's public range and nothing else."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from limbeck.privacy.schema import Schema


def encode(raw: NDArray[Any], schema: Schema, device: torch.device | str = "cpu") -> torch.Tensor:
    """Scale [low, high] to [-1, 1].

    Guarantee: a fixed function of each value alone (rule 6); out of range is clamped and what is not finite is the low
    end, silently and for every record alike (rule 8).
    """
    values = torch.from_numpy(raw).to(device, torch.float32)
    values = torch.nan_to_num(values, nan=schema.low, posinf=schema.high, neginf=schema.low).clamp_(
        schema.low, schema.high
    )
    return (values - schema.low).mul_(2 / (schema.high - schema.low)).sub_(1)
