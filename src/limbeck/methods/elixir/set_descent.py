"""How the set moves towards a step's answers: the newest and those of the replay buffer, one after the other.

The matching loss is a sum over classes, no layer mixes records, and Adam and the EMA work number by number. So a class's images
go all the way by themselves, with their own class's answers alone. The parts are groups of classes, always the same ones, so that
the set has the same bits whoever moves them; and a whole step is one piece of work, because a message for every answer would take
longer than what it saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from limbeck.methods.parts.matching import class_means, clipped_rows
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.team import Team, Work
from limbeck.vault.api import FeatureResidual

MOST_PARTS = 4  # for as many processes; smaller parts cost one process more time than they are worth
BETAS = (0.9, 0.99)
MOVED = (
    "parameter.0",
    "first.0",
    "second.0",
)  # of Adam's state, in the order of a result's first rows; the mean comes last


@dataclass(frozen=True, kw_only=True, eq=False)
class SetDescent(Work):
    """questions, and what the records answered to each: targets, (classes, numbers). labels are sorted.

    images, first, second, moves   where the set and Adam stand
    mean, average                  the EMA of the set, and how much of it stays at a move
    eta                            step size of Adam
    """

    kind: ClassVar[str] = "set_descent"
    questions: tuple[FeatureResidual, ...]
    targets: tuple[Tensor, ...]
    labels: Tensor
    images: Tensor
    first: Tensor
    second: Tensor
    moves: Tensor
    mean: Tensor
    average: float
    eta: float

    @property
    def parts(self) -> int:
        return min(len(self.targets[0]), MOST_PARTS)

    def done(self, part: int, device: torch.device) -> Tensor:
        """Images, both moments and the mean of this part's classes after the step, one above the other."""
        classes = torch.arange(len(self.targets[0])).tensor_split(self.parts)[part]
        start, end = int(classes[0]), int(classes[-1]) + 1
        rows = slice(*torch.searchsorted(self.labels.cpu(), torch.tensor([start, end])).tolist())
        images, mean = nn.Parameter(self.images[rows].to(device).clone()), self.mean[rows].to(device).clone()
        adam, labels = Adam([images], self.eta, BETAS), self.labels[rows].to(device)
        state = adam.state
        for name, value in (("first.0", self.first[rows]), ("second.0", self.second[rows]), ("moves", self.moves)):
            state[name].copy_(value)
        for question, target in zip(self.questions, self.targets, strict=True):
            adam.move((gradient(question, images, labels, target.to(device), start, end),))
            images.data.clamp_(-1, 1)
            mean.mul_(self.average).add_(images.data, alpha=1 - self.average)
        return torch.stack([*(state[name] for name in MOVED), mean])


def gradient(question: FeatureResidual, images: Tensor, labels: Tensor, target: Tensor, start: int, end: int) -> Tensor:
    """Of the matching loss of the classes from `start` to before `end`."""
    with torch.enable_grad():
        residuals = clipped_rows(question.rows(images, labels), 1.0)
        loss = (class_means(residuals, labels - start, end - start) - target[start:end]).square().sum()
    return torch.autograd.grad(loss, images)[0]


def move_on(
    adam: Adam,
    ema: Tensor,
    average: float,
    labels: Tensor,
    asked: list[tuple[FeatureResidual, Tensor]],
    team: Team,
) -> None:
    """The set and its EMA go on, in place, towards one answer after the other."""
    state = adam.state
    images, first, second = (state[name] for name in MOVED)
    questions, targets = zip(*asked, strict=True)
    work = SetDescent(
        questions=questions, targets=targets, labels=labels, images=images, first=first, second=second,
        moves=state["moves"], mean=ema, average=average, eta=adam.eta,
    )  # fmt: skip
    for value, moved in zip(
        (images, first, second, ema), torch.cat(team.share(work, images.device), dim=1), strict=True
    ):
        value.copy_(moved)
    state["moves"] += len(questions)
