"""Networks: their specs, their random embeddings, and the augmentation that goes with them."""

from limbeck.nets.augment import FAMILIES, Augmentation, AugmentationDraw, apply, augment_each
from limbeck.nets.build import build
from limbeck.nets.convnet import use_fused_layers
from limbeck.nets.embedding import FrozenEmbedding
from limbeck.nets.network import Network, Shape
from limbeck.nets.spec import KINDS, NetSpec

__all__ = [
    "FAMILIES",
    "KINDS",
    "Augmentation",
    "AugmentationDraw",
    "FrozenEmbedding",
    "NetSpec",
    "Network",
    "Shape",
    "apply",
    "augment_each",
    "build",
    "use_fused_layers",
]
