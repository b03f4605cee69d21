"""Forward, backward and tangent passes of a ConvNet, written out.

Gradient matching needs three things that automatic differentiation gives slowly: the gradient of every single record, the
gradient of a set, and how the latter changes with the set's pixels. Here they are chains of convolutions with one
compiled pass for norm, ReLU and pooling in between. Maps are (records, height, width, channels) throughout.

The bias of a convolution has no part in any of this: the instance norm takes it away again, and its gradient is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.nets.architectures.convnet import Block
from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.kernels.fused import (
    fused_backward,
    fused_forward,
    fused_tangent_backward,
    fused_tangent_forward,
    worth_fusing,
)
from limbeck.nets.kernels.hardware import channels_last
from limbeck.nets.kernels.input_gradient import input_gradient

THIN = 32  # numbers in a patch up to which a matrix product beats the library's grouped convolution

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class LayerTrace:
    """What one block saw and sent back: its input, its convolution's maps with their statistics, and the gradients with
    respect to those maps and, per record, to gain and bias of the norm."""

    maps_in: Tensor
    maps: Tensor
    mean: Tensor
    rstd: Tensor
    flow_in: Tensor
    flow: Tensor
    gain_rows: Tensor
    bias_rows: Tensor


@dataclass(frozen=True, eq=False)
class Trace:
    """One forward and backward pass over some records. `delta` is the gradient with respect to the logits."""

    layers: tuple[LayerTrace, ...]
    features: Tensor
    probabilities: Tensor
    delta: Tensor


class ConvNetPasses:
    """The passes of one ConvNet whose weights are given with each call, named as in the network itself."""

    def __init__(self, network: Network, shape: Shape, device: torch.device) -> None:
        self._blocks = [module for module in network.body.children() if isinstance(module, Block)]
        self.depth = len(self._blocks)
        self._fused = worth_fusing(device, self._blocks[0].conv.out_channels * shape[1] * shape[2])

    @staticmethod
    def fit(network: Network) -> bool:
        body = list(network.body.children())
        return bool(body) and isinstance(body[0], Block)

    def padding(self, index: int) -> int:
        return self._blocks[index].padding

    def trace(self, weights: Weights, x: Tensor, y: Tensor, scale: float = 1.0, score: bool = False) -> Trace:
        """Gradients of scale * sum of cross-entropies; with `score`, of the sum of -logit[y], which has no softmax."""
        entered, kept = x.permute(0, 2, 3, 1).contiguous(), []
        for index, block in enumerate(self._blocks):
            maps = convolved(entered, weights[f"body.{index}.conv.weight"], block.padding)
            gain, bias = _norm_of(weights, index)
            left, mean, rstd = fused_forward(maps, gain, bias, block.norm.eps, block.pool, self._fused)
            kept.append((entered, maps, mean, rstd))
            entered = left
        features = entered.permute(0, 3, 1, 2).flatten(1)
        logits = F.linear(features, weights["head.weight"], weights["head.bias"])
        probabilities = torch.softmax(logits, dim=1)
        chosen = F.one_hot(y, logits.shape[1]).to(logits.dtype)
        delta = -scale * chosen if score else scale * (probabilities - chosen)
        flow = _as_maps(delta @ weights["head.weight"], entered.shape)
        layers: list[LayerTrace] = []
        for index in reversed(range(self.depth)):
            entered, maps, mean, rstd = kept[index]
            gain, bias = _norm_of(weights, index)
            block = self._blocks[index]
            down, gain_rows, bias_rows = fused_backward(maps, mean, rstd, gain, bias, flow, block.pool, self._fused)
            layers.insert(0, LayerTrace(entered, maps, mean, rstd, flow, down, gain_rows, bias_rows))
            if index:
                weight = weights[f"body.{index}.conv.weight"]
                flow = input_gradient(down, weight, block.padding, side_of(entered), self._fused)
        return Trace(tuple(layers), features, probabilities, delta)

    def gradient(self, weights: Weights, trace: Trace) -> dict[str, Tensor]:
        """The gradient with respect to every weight, summed over the records of the trace."""
        total = {name: torch.zeros_like(value) for name, value in weights.items() if name.endswith("conv.bias")}
        for index, layer in enumerate(trace.layers):
            name = f"body.{index}"
            total[f"{name}.conv.weight"] = weight_gradient(
                layer.maps_in, layer.flow, weights[f"{name}.conv.weight"], self.padding(index)
            )
            total[f"{name}.norm.weight"], total[f"{name}.norm.bias"] = layer.gain_rows.sum(0), layer.bias_rows.sum(0)
        total["head.weight"], total["head.bias"] = trace.delta.T @ trace.features, trace.delta.sum(0)
        return {name: total[name] for name in weights}

    def pixel_gradient(self, weights: Weights, trace: Trace, direction: Weights, scale: float = 1.0) -> Tensor:
        """d <direction, gradient of the weights> / d x, as the tangent of the gradient of x when the weights move.

        Both are the same mixed second derivative. `direction` moves the convolutions and the last layer; what it says about
        norms and biases must be zero.
        """
        moved: Tensor | None = None  # tangent of the maps that enter a block; the records themselves stand still
        tangents: list[tuple[Tensor, Tensor, Tensor]] = []
        for index, layer in enumerate(trace.layers):
            weight, change = (source[f"body.{index}.conv.weight"] for source in (weights, direction))
            if moved is None:
                moved_maps = convolved(layer.maps_in, change, self.padding(index))
            else:
                both = torch.cat([moved, layer.maps_in], dim=3), torch.cat([weight, change], dim=1)
                moved_maps = convolved(*both, self.padding(index))
            gain, bias = _norm_of(weights, index)
            pool = self._blocks[index].pool
            moved, centre, slope = fused_tangent_forward(
                layer.maps, layer.mean, layer.rstd, gain, bias, moved_maps, pool, self._fused
            )
            tangents.append((moved_maps, centre, slope))
        assert moved is not None
        return self._tangent_backward(weights, trace, direction, moved, tangents, scale)

    def _tangent_backward(
        self,
        weights: Weights,
        trace: Trace,
        direction: Weights,
        moved: Tensor,
        tangents: list[tuple[Tensor, Tensor, Tensor]],
        scale: float,
    ) -> Tensor:
        moved_features = moved.permute(0, 3, 1, 2).flatten(1)
        moved_logits = moved_features @ weights["head.weight"].T + trace.features @ direction["head.weight"].T
        p = trace.probabilities
        moved_delta = scale * p * (moved_logits - (p * moved_logits).sum(1, keepdim=True))
        flow = _as_maps(moved_delta @ weights["head.weight"] + trace.delta @ direction["head.weight"], moved.shape)
        for index in reversed(range(self.depth)):
            layer = trace.layers[index]
            gain, bias = _norm_of(weights, index)
            flow = fused_tangent_backward(
                layer.maps, layer.mean, layer.rstd, gain, bias, *tangents[index], layer.flow_in, flow,
                self._blocks[index].pool, self._fused,
            )  # fmt: skip
            weight, change = (source[f"body.{index}.conv.weight"] for source in (weights, direction))
            both = torch.cat([flow, layer.flow], dim=3), torch.cat([weight, change], dim=0)
            flow = input_gradient(*both, self.padding(index), side_of(layer.maps_in), self._fused)
        return flow.permute(0, 3, 1, 2)


def convolved(maps: Tensor, weight: Tensor, padding: int) -> Tensor:
    result = F.conv2d(maps.permute(0, 3, 1, 2), channels_last(weight), padding=padding)
    return result.permute(0, 2, 3, 1).contiguous()


def side_of(maps: Tensor) -> tuple[int, int]:
    return maps.shape[1], maps.shape[2]


def weight_gradient(maps: Tensor, flow: Tensor, weight: Tensor, padding: int) -> Tensor:
    """The gradient with respect to the weight of `convolved`, summed over records."""
    result: Tensor = torch.ops.aten.convolution_backward(
        flow.permute(0, 3, 1, 2), maps.permute(0, 3, 1, 2), channels_last(weight), None,
        [1, 1], [padding, padding], [1, 1], False, [0, 0], 1, [False, True, False],
    )[1]  # fmt: skip
    return result.contiguous()


def weight_gradients(maps: Tensor, flow: Tensor, weight: Tensor, padding: int) -> Tensor:
    """The same for each record by itself: (records, out, patch), in the order of the weight's numbers."""
    records, (out, channels, high, wide) = len(maps), weight.shape
    if not records:
        return maps.new_zeros(0, out, channels * high * wide)
    if weight[0].numel() <= THIN:
        columns = F.unfold(maps.permute(0, 3, 1, 2), (high, wide), padding=padding)
        return torch.bmm(columns, flow.flatten(1, 2)).mT
    # Records become the groups of one convolution, so that nothing is added up across them.
    grouped = [tensor.permute(0, 3, 1, 2).reshape(1, -1, *tensor.shape[1:3]) for tensor in (maps, flow)]
    unread = torch.empty((records * out, channels, high, wide), dtype=maps.dtype, device=maps.device)
    result: Tensor = torch.ops.aten.convolution_backward(
        grouped[1], grouped[0], unread, None,
        [1, 1], [padding, padding], [1, 1], False, [0, 0], records, [False, True, False],
    )[1]  # fmt: skip
    return result.view(records, out, channels * high * wide)


def _norm_of(weights: Weights, index: int) -> tuple[Tensor, Tensor]:
    return weights[f"body.{index}.norm.weight"], weights[f"body.{index}.norm.bias"]


def _as_maps(rows: Tensor, shape: torch.Size) -> Tensor:
    """Flat features (channels first) -> maps with the channels last."""
    return rows.view(shape[0], shape[3], shape[1], shape[2]).permute(0, 2, 3, 1).contiguous()
