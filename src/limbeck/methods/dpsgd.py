"""DP-SGD: a classifier trained by noised gradient steps. The discriminative reference for every synthetic set.

Abadi et al., "Deep Learning with Differential Privacy", Algorithm 1; with topagg=norm, TopAgg for DP-SGD: DataLens,
Algorithm 4. The model is a release like a set: every step is a query, booked before the first record is read.

Where we differ, and why:
- The noised sum is divided by the expected batch, which is public; a realised batch size is not.
- Every gradient is clipped to a small C, so that nearly all have norm C: the step size alone then sets the pace.
- Momentum, and an EMA of the weights that is released instead of the last ones (settings eta, momentum and average). All
  of that works on answers and costs nothing.
- topagg=norm compares sums of squares with k |g|^2, as the paper's text and its noise say; its listing prints k |g|.
- topagg=dimension keeps a share k of the coordinates. It bounds no norm, so its noise is that of plain DP-SGD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import Chosen, Logbook, Method, TrainedModel, given, unflattened
from limbeck.methods.settings import setting
from limbeck.nets import NetSpec, build
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, Map, NetworkGradient, TopGradient

RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class KeptShare(Chosen):
    k: float


@dataclass(frozen=True, kw_only=True)
class DPSGD(Method):
    """T, B, C, eta and average were chosen on held-out training records of MNIST; eta also on Adult's.

    T               steps
    B               expected batch: every record is in a step with chance B / N
    C               clip on the gradient of one record, over all weights together
    sigma           noise std / sensitivity
    eta, momentum   descent on the weights
    average         decay of the EMA of the weights that is released; 0 releases the last weights
    net, width, depth  the classifier ('auto': ConvNet for images, softmax regression for tables)
    topagg          'none', 'norm' (DataLens) or 'dimension': which coordinates of a gradient are kept
    k               share of the squared norm, or of the coordinates, that is kept (left out: 0.8, without topagg all)
    start           'random' weights, or the fingerprint of the released model that `run_from` is given
    """

    name: ClassVar[str] = "dpsgd"
    title: ClassVar[str] = "DP-SGD classifier"
    paper: ClassVar[str] = (
        "Abadi et al., Deep Learning with Differential Privacy; TopAgg: Wang et al., DataLens, Algorithm 4"
    )
    needs: ClassVar[str] = "two minutes on two cores for 28x28 images; images or tables; releases a model, not a set"
    makes: ClassVar[str] = "model"

    per_class: int = setting(0, least=0, most=0, note="because this method trains a model and makes no set")
    T: int = setting(300, least=1)
    B: int = setting(1024, least=1)
    C: float = setting(0.1, above=0)
    sigma: float | None = setting(None, above=0)
    eta: float = setting(8.0, above=0)
    momentum: float = setting(0.9, least=0, below=1)
    average: float = setting(0.95, least=0, below=1)
    net: str = setting("auto")
    width: int = setting(0, least=0, note="where 0 is the usual width")
    depth: int = setting(0, least=0, note="where 0 is the usual depth")
    topagg: str = setting("none", choices=("none", "norm", "dimension"))
    k: float | None = setting(None, above=0, most=1)
    start: str = setting(RANDOM)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.topagg == "none" and self.k not in (None, 1.0):
            raise BadSettings(f"k={self.k} keeps a share of the gradient only with topagg=norm or topagg=dimension.")

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def chosen(self, schema: Schema, epsilon: float | None = None) -> KeptShare:
        return KeptShare(k=self.share)

    @property
    def share(self) -> float:
        """k, or the default for this topagg."""
        return given(self.k, 1.0 if self.topagg == "none" else 0.8)

    def check(self, schema: Schema) -> None:
        super().check(schema)
        build(self.classifier(schema), schema.shape, len(schema.classes), seed=0)  # refuses what it cannot read

    def classifier(self, schema: Schema) -> NetSpec:
        if self.net == "auto" and not schema.is_image:
            return NetSpec(kind="mlp", width=self.width or 128, depth=self.depth or 1)
        kind = "convnet" if self.net == "auto" else self.net
        usual = {"convnet": 16, "linear": 64}
        return NetSpec(kind=kind, width=self.width or usual.get(kind, 128), depth=self.depth or 3)

    def rate(self, schema: Schema) -> float:
        return min(1.0, self.B / schema.records)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        return (
            ClippedSum(
                label="gradients",
                map="network_gradient" if self.topagg == "none" else "top_gradient",
                clip=self.sensitivity,
                noise_multiplier=noise_multiplier,
                rate=(self.rate(schema),),
                by_class=False,
                count=self.T,
            ),
        )

    @property
    def sensitivity(self) -> float:
        """What one record adds to a sum, at most: C, and sqrt(k) C where a share k of its squared norm is kept."""
        return self.C * math.sqrt(self.share) if self.topagg == "norm" else self.C

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> TrainedModel:
        if self.start != RANDOM:
            raise BadSettings(f"The model {self.start:.12} that this run starts from was not given.")
        net = self.classifier(schema)
        network = build(net, schema.shape, len(schema.classes), self.seed_at("weights"))
        weights = {name: value.detach() for name, value in network.named_parameters()}
        return self._descend(TrainedModel(net, weights), schema, ask, logbook)

    def run_from(
        self, start: TrainedModel, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device
    ) -> TrainedModel:
        if start.fingerprint() != self.start:
            raise BadSettings("The model to start from is not the one that the plan names.")
        if start.net != self.classifier(schema):
            raise BadSettings(f"The model to start from is a {start.net}, the plan trains a {self.classifier(schema)}.")
        return self._descend(start, schema, ask, logbook)

    def _descend(self, start: TrainedModel, schema: Schema, ask: Ask, logbook: Logbook) -> TrainedModel:
        expected = self.rate(schema) * schema.records  # public; the size of a sample is not (rule 3)
        weights = torch.cat([value.flatten() for value in start.weights.values()]).clone()
        velocity, ema = torch.zeros_like(weights), weights.clone()
        state = {"weights": weights, "velocity": velocity, "average": ema}
        for step in logbook.steps(self.T, state, "gradients"):
            noisy_sum = ask("gradients", step, self._map(schema, start, weights)).tensor()
            velocity.mul_(self.momentum).add_(noisy_sum / expected)
            weights.sub_(self.eta * velocity)
            # The EMA decays faster in the first steps, or it would hold on to the start.
            ema.lerp_(weights, 1 - min(self.average, (1 + step) / (10 + step)))
        return TrainedModel(start.net, unflattened(ema if self.average else weights, start.weights))

    def _map(self, schema: Schema, start: TrainedModel, weights: Tensor) -> Map:
        gradient = NetworkGradient(
            net=start.net,
            shape=schema.shape,
            classes=len(schema.classes),
            weights=unflattened(weights.clone(), start.weights),
        )
        if self.topagg == "none":
            return gradient
        return TopGradient(gradient=gradient, clip=self.C, share=self.share, keep=self.topagg)
