"""How downstream networks are trained: every knob of a protocol together, our own and each paper's."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from limbeck.errors import BadInput
from limbeck.nets import FAMILIES
from limbeck.nets.training.descent import TrainingSchedule
from limbeck.privacy.schema import Schema

DIGIT_FAMILIES = tuple(family for family in FAMILIES if family != "flip")  # a mirrored digit is another sign
SIGNED, UNIT = "signed", "unit"
LARGE = 5000  # records, from which on a preset's stand-in for large sets is used
OPTIMISTIC = "optimistic: chosen on the test set"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A training protocol. Networks are scored at the end; the best epoch is looked up only where `every_epoch` says so.

    width: filters of the convnet; the filters of alexnet, vgg11 and resnet18 in proportion (128 is the papers' size).
    decay_at: the share of the epochs after which lr falls to a tenth; 1 is never.
    augment: families of per-image augmentation; None takes those that the schema allows.
    inputs: networks see [-1, 1] ("signed") or [0, 1] ("unit").
    every_epoch: score after every epoch as well. The best of these is chosen on the test set and reported apart.
    networks: how many networks are averaged, unless the caller says otherwise.
    models: what the paper trains; empty leaves it to the caller.
    large: the preset for sets of thousands of records, such as the real ones; empty is this one itself.
    source: whose protocol it is, in words.
    """

    name: str
    width: int = 128
    epochs: int = 300
    batch: int = 256
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4
    decay_at: float = 0.5
    augment: tuple[str, ...] | None = None
    inputs: str = SIGNED
    every_epoch: bool = False
    networks: int = 3
    models: tuple[str, ...] = ()
    large: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("width", "epochs", "batch", "networks"):
            if getattr(self, name) < 1:
                raise BadInput(f"Expected {name}={getattr(self, name)} of preset {self.name!r} to be at least 1.")
        if not self.lr > 0:
            raise BadInput(f"Expected lr={self.lr} of preset {self.name!r} to be positive.")
        if not 0 < self.decay_at <= 1:
            raise BadInput(f"Expected decay_at={self.decay_at} of preset {self.name!r} to be above 0 and at most 1.")
        if self.inputs not in (SIGNED, UNIT):
            raise BadInput(f"Expected inputs={self.inputs!r} of preset {self.name!r} to be {SIGNED!r} or {UNIT!r}.")

    @property
    def families(self) -> tuple[str, ...]:
        """What is drawn from in training. Without a schema's word only what suits digits too."""
        return DIGIT_FAMILIES if self.augment is None else self.augment

    @property
    def course(self) -> TrainingSchedule:
        """How one network is trained."""
        return TrainingSchedule(
            epochs=self.epochs,
            batch=self.batch,
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            decay_at=self.decay_at,
            families=self.families,
        )

    def for_size(self, records: int) -> Preset:
        """This preset, or the one that stands in for it where epochs are long."""
        return preset_named(self.large) if self.large and records > LARGE else self

    def fitted(self, schema: Schema) -> Preset:
        """The preset with the families that suit this data."""
        if not schema.is_image:
            return dataclasses.replace(self, augment=())
        return dataclasses.replace(self, augment=schema.augmentation) if self.augment is None else self


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(name="paper", large="full", source="the condensation papers' protocol, scored once, at the end"),
        Preset(name="full", epochs=40, source="the same for sets of thousands per class"),
        # The same protocol at half the width and in half the epochs, with steps twice as long.
        Preset(name="cpu", width=64, epochs=150, lr=0.02, large="brief", source="the same, shortened for a CPU"),
        # What the same takes on an image of 224 x 224 is an hour; half the width in fewer epochs is a sixth of it.
        Preset(
            name="quick",
            width=32,
            epochs=50,
            lr=0.02,
            large="brief",
            networks=1,
            source="cpu, shortened for large images",
        ),
        # A set of thousands gives many steps an epoch: a few epochs of small batches, without augmentation.
        Preset(
            name="brief",
            width=64,
            epochs=5,
            batch=64,
            lr=0.02,
            augment=(),
            networks=1,
            source="a few epochs, for thousands of records on a CPU",
        ),
        Preset(
            name="psg",
            augment=("crop", "scale"),
            models=("convnet",),
            large="psg-full",
            source="PSG (2022), supplement C.3: one set, three networks",
        ),
        Preset(
            name="psg-full",
            epochs=40,
            augment=("crop", "scale"),
            models=("convnet",),
            source="PSG (2022), supplement C.3, for sets of 6000 per class",
        ),
        Preset(
            name="dpdc",
            networks=1,
            models=("convnet",),
            large="full",
            source="LDPDC and NDPDC (2023) after DM: one network a set, and the paper averages five sets",
        ),
        Preset(
            name="datalens",
            epochs=600,
            batch=512,
            lr=2e-3,
            momentum=0.0,
            weight_decay=0.0,
            decay_at=1.0,
            augment=(),
            inputs=UNIT,
            every_epoch=True,
            networks=1,
            models=("cnn",),
            source="DataLens (2021) as its authors published it: best of 600 epochs on the test set",
        ),
        Preset(
            name="gs-wgan",
            epochs=50,
            batch=128,
            lr=0.02,
            weight_decay=1e-4,
            decay_at=0.8,
            augment=(),
            inputs=UNIT,
            networks=5,
            models=("classical",),
            source="GS-WGAN (2020), Tables A1 and A2: thirteen classifiers, five runs",
        ),
    )
}


def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise BadInput(f"Unknown preset {name!r}. Choose one of {', '.join(PRESETS)}.")
    return PRESETS[name]
