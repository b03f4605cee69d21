"""How downstream networks are trained: every knob of the protocol in one place."""

from __future__ import annotations

from dataclasses import dataclass

from limbeck.errors import BadInput
from limbeck.nets import FAMILIES, NetSpec, Shape

MODELS = ("convnet", "mlp", "lenet", "linear")
DIGIT_FAMILIES = tuple(family for family in FAMILIES if family != "flip")  # a mirrored digit is another sign


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A training protocol. Networks are scored once, at the end; nothing is ever chosen on test data.

    width: filters of the convnet. lr falls to a tenth at half of the epochs.
    augment: families of per-image augmentation. Keep "flip" out for digits.
    """

    name: str
    width: int = 128
    epochs: int = 300
    batch: int = 256
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    augment: tuple[str, ...] = DIGIT_FAMILIES

    def __post_init__(self) -> None:
        for name in ("width", "epochs", "batch"):
            if getattr(self, name) < 1:
                raise BadInput(f"Expected {name}={getattr(self, name)} of preset {self.name!r} to be at least 1.")
        if not self.lr > 0:
            raise BadInput(f"Expected lr={self.lr} of preset {self.name!r} to be positive.")


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(name="paper"),
        Preset(name="full", epochs=40),  # for sets of thousands per class
        # The same protocol at half the width and in half the epochs, with steps twice as long.
        Preset(name="cpu", width=64, epochs=150, lr=0.02),
    )
}


def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise BadInput(f"Unknown preset {name!r}. Choose one of {', '.join(PRESETS)}.")
    return PRESETS[name]


def model_spec(model: str, shape: Shape, preset: Preset) -> NetSpec:
    """The network of a model name. "linear" is softmax regression."""
    if model not in MODELS:
        raise BadInput(f"Unknown model {model!r}. Choose one of {', '.join(MODELS)}.")
    if model in ("convnet", "lenet") and len(shape) != 3:
        raise BadInput(f"A {model} reads images, not records of shape={tuple(shape)}. Tables take 'mlp' or 'linear'.")
    if model == "linear":
        return NetSpec(kind="mlp", depth=1)
    return NetSpec(kind=model, width=preset.width if model == "convnet" else 128)
