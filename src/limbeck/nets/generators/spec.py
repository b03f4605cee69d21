"""What a generator is, as a value, and the way from there to a network: latents and labels become records in [-1, 1].

A release holds the value as JSON and the weights as safetensors, so a generator is rebuilt from its release alone. To add a
kind: write the network with `forward(latents, labels)`, and give it a name in `_BUILDERS` that no other kind ever had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields

import torch
from torch import Tensor, nn

from limbeck.errors import BadInput
from limbeck.nets.architectures.network import Shape
from limbeck.nets.features.pooled import enlarged, smaller
from limbeck.nets.generators.datalens import DataLensGenerator
from limbeck.nets.generators.dcgan import DCGAN, SmoothDCGAN
from limbeck.nets.generators.gaussian import GaussianGenerator
from limbeck.nets.generators.merf import CodedGenerator, MerfGenerator
from limbeck.nets.generators.upsampling import UpsamplingGenerator

LAWS = ("normal", "bernoulli")  # bernoulli: 0 or 1, each with chance 1/2


@dataclass(frozen=True, kw_only=True)
class GeneratorSpec:
    """A kind of generator, its size and where its latents come from.

    latent: random numbers that a record is made from. law: how they are drawn.
    width: filters of the last hidden map (dcgan, smooth_dcgan, datalens, upsampling) or numbers of the code (merf_coded); the
        other kinds have a fixed size.
    fitted: how many fixed latents per class it was trained on; 0 if they were drawn afresh at every step.
    size: the longer side of the pictures that the network makes, which are then set up; 0: as large as they are.
    """

    kind: str
    latent: int
    law: str = "normal"
    width: int = 64
    fitted: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _BUILDERS:
            raise BadInput(f"Unknown generator kind={self.kind!r}. Choose one of {', '.join(_BUILDERS)}.")
        if self.law not in LAWS:
            raise BadInput(f"Unknown law={self.law!r} of latents. Choose one of {', '.join(LAWS)}.")
        for name, least in (("latent", 1), ("width", 1), ("fitted", 0), ("size", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise BadInput(f"Expected generator {name}={value!r} to be a whole number of at least {least}.")

    def latents(self, count: int, generator: torch.Generator) -> Tensor:
        """(count, latent) numbers by the law."""
        if self.law == "bernoulli":
            return torch.randint(0, 2, (count, self.latent), generator=generator).float()
        return torch.randn((count, self.latent), generator=generator)

    def to_dict(self) -> dict[str, str | int]:
        return {name: value for name, value in asdict(self).items() if name != "size" or value}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> GeneratorSpec:
        known = {field.name for field in fields(cls)}
        if set(values) - known or not {"kind", "latent"} <= set(values):
            raise BadInput(f"Expected a generator with the fields {sorted(known)}, got {sorted(values)}.")
        return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks the values


def build_generator(spec: GeneratorSpec, shape: Shape, classes: int, seed: int) -> nn.Module:
    """A freshly initialised generator; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        small = smaller(tuple(shape), spec.size) if spec.size else tuple(shape)
        network = _BUILDERS[spec.kind](spec, small, classes)
        if small != tuple(shape):
            network.register_forward_hook(lambda _module, _given, made: enlarged(made, shape[1:]).clamp(-1, 1))
        return network


def _dcgan(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return DCGAN(shape, classes, spec.latent, spec.width)


def _smooth_dcgan(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return SmoothDCGAN(shape, classes, spec.latent, spec.width)


def _gaussian(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return GaussianGenerator(shape, classes, spec.latent)


def _merf(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return MerfGenerator(shape, classes, spec.latent)


def _merf_normed(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return MerfGenerator(shape, classes, spec.latent, normed=True)


def _merf_coded(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return CodedGenerator(shape, classes, spec.latent, spec.width)


def _datalens(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return DataLensGenerator(shape, classes, spec.latent, spec.width)


def _upsampling(spec: GeneratorSpec, shape: Shape, classes: int) -> nn.Module:
    return UpsamplingGenerator(shape, classes, spec.latent, spec.width)


_BUILDERS: dict[str, Callable[[GeneratorSpec, Shape, int], nn.Module]] = {
    "dcgan": _dcgan,
    "smooth_dcgan": _smooth_dcgan,
    "merf": _merf,
    "merf_normed": _merf_normed,
    "merf_coded": _merf_coded,
    "datalens": _datalens,
    "upsampling": _upsampling,
    "gaussian": _gaussian,
}
