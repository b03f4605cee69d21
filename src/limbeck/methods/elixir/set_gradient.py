"""How the set should move to be closer to one answer: the gradient of the matching loss, class by class.

The loss is a sum over classes, and no layer mixes records, so a class's images move by their own class's answer alone. The parts
are groups of classes, always the same ones, so that a gradient has the same bits whoever computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.methods.parts.matching import class_means, clipped_rows
from limbeck.methods.team import Work
from limbeck.vault.api import FeatureResidual

MOST_PARTS = 4  # for as many processes; smaller parts cost one process more time than they are worth


@dataclass(frozen=True, kw_only=True, eq=False)
class SetGradient(Work):
    """question, and what the records answered to it: target, (classes, numbers). labels are sorted."""

    kind: ClassVar[str] = "set_gradient"
    question: FeatureResidual
    target: Tensor
    images: Tensor
    labels: Tensor

    @property
    def parts(self) -> int:
        return min(len(self.target), MOST_PARTS)

    def done(self, part: int, device: torch.device) -> Tensor:
        """The gradient for the images of this part's classes."""
        classes = torch.arange(len(self.target)).tensor_split(self.parts)[part]
        first, last = int(classes[0]), int(classes[-1])
        rows = slice(*torch.searchsorted(self.labels.cpu(), torch.tensor([first, last + 1])).tolist())
        images, labels = self.images[rows].to(device).requires_grad_(True), self.labels[rows].to(device)
        with torch.enable_grad():
            residuals = clipped_rows(self.question.rows(images, labels), 1.0)
            means = class_means(residuals, labels - first, len(classes))
            loss = (means - self.target[first : last + 1].to(device)).square().sum()
        return torch.autograd.grad(loss, images)[0]
