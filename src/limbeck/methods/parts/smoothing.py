"""Pictures of noise, or of noisy votes, smoothed: what neighbouring pixels share outlasts the average, and noise does not."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def smoothed(pictures: Tensor, std: float) -> Tensor:
    """(n, channels, height, width), every channel smoothed by a Gaussian; 0 beyond the border."""
    reach = math.ceil(3 * std)
    line = torch.exp(-torch.arange(-reach, reach + 1).square() / (2 * std**2))
    line = (line / line.sum()).to(pictures)
    planes = pictures.flatten(0, 1)[:, None]
    planes = F.conv2d(planes, line.view(1, 1, -1, 1), padding=(reach, 0))
    return F.conv2d(planes, line.view(1, 1, 1, -1), padding=(0, reach)).view(pictures.shape)
