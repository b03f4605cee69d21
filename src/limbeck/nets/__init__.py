"""Networks: their specs, their random embeddings, and the augmentation that goes with them."""

from limbeck.nets.augment import FAMILIES, Augmentation, AugmentationDraw, apply, augment_each
from limbeck.nets.build import build
from limbeck.nets.convnet import use_fused_layers
from limbeck.nets.dcgan import DCGAN
from limbeck.nets.embedding import FrozenEmbedding
from limbeck.nets.network import Network, Shape
from limbeck.nets.set_gradients import SetGradients
from limbeck.nets.spec import KINDS, NetSpec

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
