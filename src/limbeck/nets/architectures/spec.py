"""What a network is, as a value: written into queries and run folders, so it must survive a trip through JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from limbeck.errors import BadInput

KINDS = ("convnet", "mlp", "lenet", "linear", "alexnet", "vgg11", "resnet18", "autoencoder")


@dataclass(frozen=True, kw_only=True)
class NetSpec:
    """A network family and its size.

    width: filters (convnet), hidden units (mlp), outputs of the embedding (linear) or numbers of the
        code (autoencoder). AlexNet, VGG11 and ResNet18 have the
        papers' filters at 128 and in proportion at other widths. LeNet has a fixed size.
    depth: blocks (convnet) or linear layers with the last one (mlp, so 3 is 128-128); ignored by the others.
    """

    kind: str
    width: int = 128
    depth: int = 3

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"Unknown network kind={self.kind!r}. Choose one of {', '.join(KINDS)}.")
        for name in ("width", "depth"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise BadInput(f"Expected network {name}={value!r} to be a whole number of at least 1.")

    def to_dict(self) -> dict[str, str | int]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> NetSpec:
        unknown = set(fields) - {"kind", "width", "depth"}
        if unknown or "kind" not in fields:
            raise BadInput(f"Expected a network with kind, width and depth, got the fields {sorted(fields)}.")
        return cls(**fields)  # type: ignore[arg-type]  # __post_init__ checks the values
