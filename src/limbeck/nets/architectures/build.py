"""From a spec and a seed to a network with fixed weights."""

from __future__ import annotations

import torch

from limbeck.errors import BadInput
from limbeck.nets.architectures.alexnet import alexnet
from limbeck.nets.architectures.autoencoder import autoencoder
from limbeck.nets.architectures.convnet import convnet
from limbeck.nets.architectures.lenet import lenet
from limbeck.nets.architectures.linear import linear
from limbeck.nets.architectures.mlp import mlp
from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.architectures.resnet import resnet18
from limbeck.nets.architectures.spec import NetSpec
from limbeck.nets.architectures.vgg import vgg11

SCALED = {"alexnet": alexnet, "vgg11": vgg11, "resnet18": resnet18}


def build(spec: NetSpec, shape: Shape, classes: int, seed: int, device: torch.device | str = "cpu") -> Network:
    """A freshly initialised network. The same seed gives the same weights on every device.

    Weights are drawn on the CPU inside a forked generator, so the caller's random state is left as it was.
    """
    if classes < 1:
        raise BadInput(f"Expected classes={classes} to be at least 1.")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = _construct(spec, tuple(shape), classes)
    return network.to(device)


def _construct(spec: NetSpec, shape: Shape, classes: int) -> Network:
    if spec.kind == "convnet":
        return convnet(shape, classes, spec.width, spec.depth)
    if spec.kind == "mlp":
        return mlp(shape, classes, spec.width, spec.depth)
    if spec.kind == "lenet":
        return lenet(shape, classes)
    if spec.kind == "autoencoder":
        return autoencoder(shape, classes, spec.width)
    if spec.kind in SCALED:
        return SCALED[spec.kind](shape, classes, spec.width)
    return linear(shape, classes, spec.width)
