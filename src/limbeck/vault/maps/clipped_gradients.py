"""The sum of clipped per-record gradients of a network, without holding the gradient of every record.

One forward and one backward pass over a few records at a time leave, at each layer, what entered it and the gradient of
what left it. `layer_gradients.py` makes norms and weighted sums of the records' gradients of the two.

Clipping is over all weights of a record together; with `per_layer` each weight tensor has an equal share of the bound.

The passes are in single precision, in blocks of one shape (`blocks.py`). All sums over records are in double precision, and on
the grid of the query they are sums of whole numbers, so that they are exact in any order.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limbeck.errors import BadInput
from limbeck.nets import Network
from limbeck.nets.training.passes import ConvNetPasses, Weights, weight_gradients
from limbeck.vault.maps.blocks import block_size, blocks
from limbeck.vault.maps.bound import Bound
from limbeck.vault.maps.layer_gradients import Held, Part, layer_parts, only_kept, product

# Factors are rounded; clipping to a hair less keeps the bound a true one.
SAFE = 1 - 4e-6
UNDERFLOW = 1e-15  # more than squares that are too small for single precision can add to a norm
ENTROPY, SCORE, RECONSTRUCTION = LOSSES = ("cross-entropy", "score", "reconstruction")
NUMBERS_AT_ONCE = 1_000_000  # of held gradients and of the largest map, so that both stay in the cache


class ClippedGradients:
    """Sums of clipped per-record gradients of one network at given weights.

    loss: of a record, by the network's outputs for it and its label (`LOSSES`)
    """

    def __init__(
        self, network: Network, shape: tuple[int, ...], weights: Weights, device: torch.device, loss: str = ENTROPY
    ) -> None:
        require_no_mixing(network)
        _require_fit(network, weights)
        if loss == RECONSTRUCTION and ConvNetPasses.fit(network):
            raise BadInput("A convnet makes no record of its features; use an autoencoder.")
        self._network = network.to(device).requires_grad_(False)
        self._weights = {name: value.to(device) for name, value in weights.items()}
        self._passes = ConvNetPasses(network, shape, device) if ConvNetPasses.fit(network) else None
        if self._passes is None:
            self._network.load_state_dict(self._weights)
        self._block, self._kind = self.block_of(network, shape), loss

    @staticmethod
    def block_of(network: Network, shape: tuple[int, ...]) -> int:
        """How many records had better pass at a time: by public sizes only."""
        return block_size(_records_at_once(network, shape))

    def clipped_sum(self, x: Tensor, y: Tensor, bound: Bound, per_layer: bool = False) -> Tensor:
        """(dimension,) in double precision, in the order of the weights. Guarantee: that of `add_clipped`."""
        total = self.zeros(1)
        for real, (part, labels, row) in blocks(self._block, x, y, torch.zeros_like(y)):
            self.add_clipped(total, part, labels, row, real, bound, per_layer)
        return total[0]

    def zeros(self, count: int) -> Tensor:
        """The sums over no record: (count, dimension)."""
        first = next(iter(self._weights.values()))
        dimension = sum(value.numel() for value in self._weights.values())
        return torch.zeros(count, dimension, dtype=torch.float64, device=first.device)

    def add_clipped(
        self, total: Tensor, x: Tensor, y: Tensor, row: Tensor, real: int, bound: Bound, per_layer: bool = False
    ) -> None:
        """Add the first `real` records of a block to the rows of `total` that `row` names, in the bound's units.

        Guarantee: adding or removing one record moves `total` by at most the clip in L2 norm, rounding included. A record whose
        gradient is not finite adds nothing.
        """
        parts = self.parts(x, y)
        squares = _squares(parts)
        finite = squares.isfinite().all(0)
        if not finite.all():
            parts, squares = {name: part.only(finite) for name, part in parts.items()}, only_kept(squares.T, finite).T
        if per_layer:
            each = bound.share(len(parts))
            factors = torch.stack(
                [_factors(own, each, {name: part}) for own, (name, part) in zip(squares, parts.items(), strict=True)]
            )
        else:
            factors = _factors(squares.sum(0), bound, parts).expand(len(parts), -1)
        counted = torch.arange(len(x), device=x.device) < real
        for index in sorted(set(row[:real].tolist())):
            mine = (counted & (row == index)).double()
            sums = {
                name: part.weighted(factor * mine, bound.step)
                for (name, part), factor in zip(parts.items(), factors, strict=True)
            }
            total[index] += torch.cat([sums[name] for name in self._weights])

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        """(records, dimension): the gradient of every record, in one pass, for maps that need each one by itself."""
        parts = self.parts(x, y)
        return torch.cat([parts[name].each() for name in self._weights], dim=1)

    def measured_rows(self, x: Tensor, y: Tensor) -> Tensor:
        """Every gradient by itself, and with it the lengths that it is clipped and rounded by."""
        parts = self.parts(x, y)
        lengths = torch.stack([part.lengths() for part in parts.values()])
        return torch.cat([_squares(parts).T, lengths.T, *(part.each().double() for part in parts.values())], dim=1)

    def parts(self, x: Tensor, y: Tensor) -> dict[str, Part]:
        return self._convnet_parts(x, y) if self._passes is not None else self._hooked_parts(x, y)

    def _convnet_parts(self, x: Tensor, y: Tensor) -> dict[str, Part]:
        assert self._passes is not None
        trace = self._passes.trace(self._weights, x, y, score=self._kind == SCORE)
        parts: dict[str, Part] = {}
        for index, layer in enumerate(trace.layers):
            name, weight = f"body.{index}", self._weights[f"body.{index}.conv.weight"]
            rows = weight_gradients(layer.maps_in, layer.flow, weight, self._passes.padding(index))
            parts[f"{name}.conv.weight"] = Held(rows)
            parts[f"{name}.conv.bias"] = Held(torch.zeros_like(layer.bias_rows))
            parts[f"{name}.norm.weight"], parts[f"{name}.norm.bias"] = Held(layer.gain_rows), Held(layer.bias_rows)
        parts["head.weight"] = product(trace.features[:, None], trace.delta[:, None])
        parts["head.bias"] = Held(trace.delta)
        return parts

    def _loss(self, outputs: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Guarantee: a sum over records of what each one's own outputs, numbers and label say, so that no gradient mixes two."""
        if self._kind == SCORE:
            return -outputs.gather(1, y[:, None]).sum()
        if self._kind == RECONSTRUCTION:
            return F.binary_cross_entropy_with_logits(outputs, (x.flatten(1) + 1) / 2, reduction="sum")
        return F.cross_entropy(outputs, y, reduction="sum")

    def _hooked_parts(self, x: Tensor, y: Tensor) -> dict[str, Part]:
        layers = {name: module for name, module in self._network.named_modules() if _own_weights(module)}
        seen: dict[str, tuple[Tensor, Tensor]] = {}

        def keep(name: str):  # type: ignore[no-untyped-def]
            def hook(module: nn.Module, entered: tuple[Tensor, ...], left: Tensor) -> None:
                # The first layer's result depends on nothing that wants a gradient; all others follow from it.
                seen[name] = entered[0].detach(), left if left.requires_grad else left.requires_grad_(True)

            return hook

        hooks = [module.register_forward_hook(keep(name)) for name, module in layers.items()]
        try:
            with torch.enable_grad():
                loss = self._loss(self._network(x), x, y)
                flows = torch.autograd.grad(loss, [left for _, left in seen.values()])
        finally:
            for hook in hooks:
                hook.remove()
        parts: dict[str, Part] = {}
        for (name, (entered, _)), flow in zip(seen.items(), flows, strict=True):
            parts |= {f"{name}.{key}": part for key, part in layer_parts(layers[name], entered, flow).items()}
        return parts


def _squares(parts: dict[str, Part]) -> Tensor:
    """(parts, records)"""
    return torch.stack([part.squares() for part in parts.values()])


def _factors(squares: Tensor, bound: Bound, parts: dict[str, Part]) -> Tensor:
    """What each record is multiplied with.

    Guarantee: factor * norm + what rounding may add is at most the clip. Rounding adds less with a smaller factor, so its
    bound is taken at the larger one.
    """
    if math.isinf(bound.clip):
        return torch.ones_like(squares)
    factors = (bound.clip * SAFE / (squares.sqrt() + UNDERFLOW)).clamp(max=1.0)
    if not bound.step:
        return factors
    slack = torch.stack([part.slack(factors, bound.step) for part in parts.values()]).square().sum(0).sqrt()
    return factors * (SAFE - slack / bound.clip).clamp_min(0.0)


def _own_weights(module: nn.Module) -> bool:
    return next(module.parameters(recurse=False), None) is not None


KNOWN_LAYERS = (nn.Conv2d, nn.Linear, nn.GroupNorm, nn.Embedding)


def require_no_mixing(network: nn.Module) -> None:
    """Refuse layers for which a record has no gradient of its own, or for which no exact rule is written here."""
    for name, module in network.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise BadInput(
                f"The layer '{name}' is a {type(module).__name__}: it mixes the records of a batch, so that no record has a "
                "gradient of its own and clipping bounds nothing. Use GroupNorm in its place."
            )
        if _own_weights(module) and not isinstance(module, KNOWN_LAYERS):
            known = ", ".join(kind.__name__ for kind in KNOWN_LAYERS)
            raise BadInput(
                f"The layer '{name}' is a {type(module).__name__}, for which there is no rule of per-record gradients here; "
                f"use {known}."
            )
        if isinstance(module, nn.Conv2d) and module.groups != 1:
            raise BadInput(f"The layer '{name}' has groups={module.groups}; per-record gradients need groups=1.")


def _require_fit(network: nn.Module, weights: Weights) -> None:
    """Guarantee: the sums are as long as the rows. Other weights would fail where, and only where, there is a record."""
    own, given = (
        {name: tuple(value.shape) for name, value in each.items()} for each in (network.state_dict(), weights)
    )
    if own != given:
        raise BadInput("The weights are not those of the network: names or shapes differ.")


def _records_at_once(network: nn.Module, shape: tuple[int, ...]) -> int:
    pixels = math.prod(shape[1:]) if len(shape) == 3 else 1
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    largest_map = convolutions[0].out_channels * pixels if convolutions else 1
    # Gradients of linear layers are not held.
    largest_held = max((module.weight.numel() for module in convolutions), default=1)
    return max(1, NUMBERS_AT_ONCE // max(largest_map, largest_held))
