"""What feature-matching methods share: which network embeds, how the synthetic set starts, and the descent on it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import Method, SyntheticSet
from limbeck.nets import Augmentation, NetSpec
from limbeck.schema import Schema
from limbeck.vault.api import RandomFeatures


@dataclass(frozen=True, kw_only=True)
class FeatureMatching(Method):
    """I: iterations. eta, momentum: of the descent on the set. net, width: the extractor ('auto': ConvNet for images, one
    linear layer of 64 for tables, width 0 = its usual one). augment: siamese augmentation with the schema's families."""

    I: int = 10_000  # noqa: E741  the paper's symbol
    eta: float = 1.0
    momentum: float = 0.5
    net: str = "auto"
    width: int = 0
    augment: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.I < 1:
            raise BadSettings(f"I must be at least 1, got I={self.I}.")
        if not self.eta > 0:
            raise BadSettings(f"eta must be positive, got eta={self.eta}.")
        if not 0 <= self.momentum < 1:
            raise BadSettings(f"momentum must lie in [0, 1), got momentum={self.momentum}.")
        if self.width < 0:
            raise BadSettings(f"width must be 0 (the usual one) or positive, got width={self.width}.")

    def extractor(self, schema: Schema) -> NetSpec:
        kind = self.net if self.net != "auto" else "convnet" if schema.is_image else "linear"
        return NetSpec(kind=kind, width=self.width or (64 if kind == "linear" else 128))

    def features(self, schema: Schema, step: int, with_count: bool = False) -> RandomFeatures:
        """A fresh random network and fresh augmentation parameters for each iteration."""
        families = schema.augmentation if self.augment and schema.is_image else ()
        return RandomFeatures(
            net=self.extractor(schema),
            shape=schema.shape,
            seed=self.seed_at("network", step),
            augmentation=Augmentation(families) if families else None,
            with_count=with_count,
        )

    def start(self, schema: Schema, device: torch.device) -> Tensor:
        """S ~ N(0, I)."""
        noise = torch.randn((len(schema.classes) * self.per_class, *schema.shape), generator=self.generator("start"))
        return noise.to(device)

    def descend(self, images: Tensor, velocity: Tensor, loss: Tensor) -> None:
        """One step of gradient descent with momentum on the synthetic set, in place."""
        (gradient,) = torch.autograd.grad(loss, images)
        with torch.no_grad():
            velocity.mul_(self.momentum).add_(gradient)
            images.sub_(self.eta * velocity)

    def finished(self, schema: Schema, images: Tensor) -> SyntheticSet:
        return SyntheticSet(images.detach().cpu().numpy(), self.labels(schema).numpy())
