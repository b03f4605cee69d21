"""Networks: their specs, their random embeddings, and the augmentation that goes with them."""

from limbeck.nets.architectures.build import build
from limbeck.nets.architectures.convnet import use_fused_layers
from limbeck.nets.architectures.network import Network, Shape
from limbeck.nets.architectures.spec import KINDS, NetSpec
from limbeck.nets.features.embedding import FrozenEmbedding
from limbeck.nets.generators.dcgan import DCGAN
from limbeck.nets.training.augment import FAMILIES, Augmentation, AugmentationDraw, apply, augment_each
from limbeck.nets.training.set_gradients import SetGradients

__all__ = [
    "DCGAN",
    "FAMILIES",
    "KINDS",
    "Augmentation",
    "AugmentationDraw",
    "FrozenEmbedding",
    "NetSpec",
    "Network",
    "SetGradients",
    "Shape",
    "apply",
    "augment_each",
    "build",
    "use_fused_layers",
]
