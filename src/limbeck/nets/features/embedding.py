"""Embeddings of random networks, as fast as a CPU allows.

Feature matching asks a new random network at every iteration, forward for real records and forward and backward to the
pixels for synthetic ones. Nothing else of a network is ever needed, and that buys speed: no weight gradients, no
convolution bias (the instance norm takes it away again), one compiled pass for norm, ReLU and pooling, bfloat16
convolutions where the CPU has them, and chunks of records whose maps stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from limbeck.errors import BadInput
from limbeck.nets.architectures.build import build
from limbeck.nets.architectures.convnet import Block, plan_blocks
from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.architectures.spec import NetSpec
from limbeck.nets.kernels.fused import fused_backward, fused_forward, worth_fusing
from limbeck.nets.kernels.hardware import channels_last, has_fast_bfloat16
from limbeck.nets.kernels.input_gradient import input_gradient

PRECISIONS = ("auto", "float32", "bfloat16")
CHUNK_NUMBERS = 4_000_000  # numbers in the largest map of one chunk; a few of these fit a last-level cache


class FrozenEmbedding:
    """The embedding of a freshly initialised network, differentiable with respect to the records only.

    It starts on `device` and moves to that of the records. With `weights` (of the network's body) it is that of a network
    that has been trained.

    precision: "float32", "bfloat16" (convolutions in bfloat16, sums and norms in float32), or "auto", which is
        bfloat16 for convnets on a CPU with bfloat16 instructions and float32 anywhere else.

    Guarantee: row i depends on record i alone.
    """

    def __init__(
        self,
        spec: NetSpec,
        shape: Shape,
        seed: int,
        *,
        precision: str = "auto",
        device: torch.device | str = "cpu",
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise BadInput(f"Unknown precision={precision!r}. Choose one of {', '.join(PRECISIONS)}.")
        self.shape = tuple(shape)
        self.spec = spec
        self.precision = precision
        self._network = build(spec, self.shape, 1, seed).requires_grad_(False)
        if weights is not None:
            self._network.body.load_state_dict(dict(weights))
        self.features = self._network.features
        self._place(torch.device(device))

    def _place(self, device: torch.device) -> None:
        self.device = device
        self.dtype = _resolve(self.precision, self.spec, device)
        self._network = self._network.to(device)
        self._layers = _frozen_layers(self._network, self.shape, self.dtype, device)

    def __call__(self, x: Tensor) -> Tensor:
        if tuple(x.shape[1:]) != self.shape:
            raise BadInput(f"Expected records of shape={self.shape}, got {tuple(x.shape[1:])}.")
        if x.device != self.device:
            self._place(x.device)
        if x.shape[0] == 0:
            return x.new_zeros(0, self.features)
        if self._layers is None:
            return self._plain(x)
        if torch.is_grad_enabled() and x.requires_grad:
            embedded: Tensor = _Chunked.apply(x, self._layers)  # type: ignore[no-untyped-call]
            return embedded
        with torch.no_grad():
            return torch.cat([_forward(part, self._layers, None) for part in _chunks(x, self._layers)])

    def _plain(self, x: Tensor) -> Tensor:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            return self._network.embed(x).to(x.dtype)


def records_at_once(spec: NetSpec, shape: Shape) -> int:
    """How many records pass together: as many as keep their largest map in the cache. Other networks have small maps."""
    if spec.kind != "convnet":
        return CHUNK_NUMBERS
    (high, wide), largest = shape[1:], 1
    for plan in plan_blocks(shape, spec.width, spec.depth):
        grow = 2 * plan.padding - 2
        largest = max(largest, plan.channels_out * (high + grow) * (wide + grow))
        high, wide = plan.side_out
    return max(1, CHUNK_NUMBERS // largest)


class _Layer:
    """Weights of one block in the layout the fast path wants."""

    def __init__(self, block: Block, side: tuple[int, int], dtype: torch.dtype) -> None:
        self.weight = channels_last(block.conv.weight.detach().to(dtype))
        self.gain = block.norm.weight.detach()
        self.bias = block.norm.bias.detach()
        self.eps = block.norm.eps
        self.padding = block.padding
        self.pool = block.pool
        self.side = side  # of the map that enters
        self.map_size = self.weight.shape[0] * math.prod(size + 2 * self.padding - 2 for size in side)


def _resolve(precision: str, spec: NetSpec, device: torch.device) -> torch.dtype:
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    return torch.bfloat16 if spec.kind == "convnet" and has_fast_bfloat16(device) else torch.float32


def _frozen_layers(network: Network, shape: Shape, dtype: torch.dtype, device: torch.device) -> list[_Layer] | None:
    layers, side = [], (0, 0) if len(shape) != 3 else (shape[1], shape[2])
    for module in network.body.modules():
        if isinstance(module, Block):
            layer = _Layer(module, side, dtype)
            grow = 2 * layer.padding - 2
            side = ((side[0] + grow) // layer.pool, (side[1] + grow) // layer.pool)
            layers.append(layer)
    if not layers or not worth_fusing(device, layers[0].map_size):
        return None
    return layers


def _chunks(x: Tensor, layers: list[_Layer]) -> tuple[Tensor, ...]:
    most = max(1, CHUNK_NUMBERS // max(layer.map_size for layer in layers))
    return x.tensor_split(math.ceil(x.shape[0] / most))


def _forward(x: Tensor, layers: list[_Layer], keep: list[Tensor] | None) -> Tensor:
    maps = channels_last(x.to(layers[0].weight.dtype))
    for layer in layers:
        # Convolution without its bias: the norm would subtract it again.
        y = F.conv2d(maps, layer.weight, padding=layer.padding).permute(0, 2, 3, 1).contiguous()
        pooled, mean, rstd = fused_forward(y, layer.gain, layer.bias, layer.eps, layer.pool)
        if keep is not None:
            keep += [y, mean, rstd]
        maps = pooled.permute(0, 3, 1, 2)
    return maps.flatten(1).to(x.dtype)


def _backward(grad: Tensor, layers: list[_Layer], kept: list[Tensor]) -> Tensor:
    last = kept[-3]
    height, width = last.shape[1] // layers[-1].pool, last.shape[2] // layers[-1].pool
    flow = grad.to(last.dtype).view(grad.shape[0], -1, height, width).permute(0, 2, 3, 1).contiguous()
    for index in reversed(range(len(layers))):
        layer = layers[index]
        y, mean, rstd = kept[3 * index : 3 * index + 3]
        flow, _, _ = fused_backward(y, mean, rstd, layer.gain, layer.bias, flow, layer.pool)
        flow = input_gradient(flow, layer.weight, layer.padding, layer.side, compiled=True)
    return flow.permute(0, 3, 1, 2)


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, layers: list[_Layer]) -> Tensor:
        kept: list[Tensor] = []
        parts = _chunks(x, layers)
        embedded = torch.cat([_forward(part, layers, kept) for part in parts])
        ctx.save_for_backward(*kept)
        ctx.layers, ctx.sizes, ctx.dtype = layers, [part.shape[0] for part in parts], x.dtype
        return embedded

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        kept, step = ctx.saved_tensors, 3 * len(ctx.layers)
        flows = [
            _backward(part, ctx.layers, list(kept[step * index : step * (index + 1)]))
            for index, part in enumerate(torch.split(grad, ctx.sizes))
        ]
        return torch.cat([flow.to(ctx.dtype) for flow in flows]), None
