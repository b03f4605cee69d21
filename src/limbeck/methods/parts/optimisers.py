"""Descents whose whole state are tensors that a checkpoint can hold."""

from __future__ import annotations

import torch
from torch import Tensor


class Momentum:
    """Gradient descent with momentum on the images, in place."""

    def __init__(self, images: Tensor, eta: float, momentum: float) -> None:
        self.images, self.velocity = images, torch.zeros_like(images)
        self._eta, self._momentum = eta, momentum

    def move(self, gradient: Tensor) -> None:
        self.velocity.mul_(self._momentum).add_(gradient)
        self.images.sub_(self._eta * self.velocity)

    @property
    def state(self) -> dict[str, Tensor]:
        return {"images": self.images, "velocity": self.velocity}


class Adam:
    """Adam, with moments that a checkpoint can hold."""

    def __init__(
        self, parameters: list[torch.nn.Parameter], eta: float, betas: tuple[float, float] = (0.9, 0.999)
    ) -> None:
        self.parameters, self.eta, self._betas = parameters, eta, betas
        self._first = [torch.zeros_like(value, requires_grad=False) for value in parameters]
        self._second = [torch.zeros_like(value, requires_grad=False) for value in parameters]
        self._moves = torch.zeros(())

    @property
    def state(self) -> dict[str, Tensor]:
        tensors = {"moves": self._moves}
        for index, triple in enumerate(zip(self.parameters, self._first, self._second, strict=True)):
            for name, tensor in zip(("parameter", "first", "second"), triple, strict=True):
                tensors[f"{name}.{index}"] = tensor.detach()
        return tensors

    @torch.no_grad()
    def move(self, gradients: tuple[Tensor, ...]) -> None:
        self._moves += 1
        beta1, beta2 = self._betas
        for value, gradient, first, second in zip(self.parameters, gradients, self._first, self._second, strict=True):
            first.mul_(beta1).add_((1 - beta1) * gradient)
            second.mul_(beta2).add_((1 - beta2) * gradient.square())
            scale = (second / (1 - beta2 ** float(self._moves))).sqrt() + 1e-8
            value.sub_(self.eta * first / (1 - beta1 ** float(self._moves)) / scale)
