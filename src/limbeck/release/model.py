"""A model as a release: its weights, and what somebody needs to run it. Everything here is public.

model.safetensors    the weights, by the names of the network's parameters
model.json           the network, the form of its input and the classes that its logits stand for
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from limbeck.errors import BadInput, NotAuthentic
from limbeck.files import write_atomic
from limbeck.methods import TrainedModel
from limbeck.nets import NetSpec, Network, build
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import CORE_FILES, MODEL, Certificate
from limbeck.release.statement import read_certificate

WEIGHTS, DESCRIPTION = CORE_FILES[MODEL], "model.json"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class ModelRelease:
    """A released model read back: the weights, the network ready to use, and what its certificate says."""

    model: TrainedModel
    network: Network
    certificate: Certificate
    schema: Schema


def write_model(folder: Path, model: TrainedModel, schema: Schema) -> None:
    weights = {name: value.detach().cpu().float().contiguous() for name, value in model.weights.items()}
    write_atomic(folder / WEIGHTS, save(weights))
    description = {
        "format": FORMAT,
        "net": model.net.to_dict(),
        "shape": list(schema.shape),
        "classes": list(schema.classes),
        "input": f"float32, (records, {', '.join(map(str, schema.shape))}), as the schema encodes records: the public "
        f"range [{schema.low:g}, {schema.high:g}] scaled to [-1, 1]",
        "output": "one logit per class",
    }
    write_atomic(folder / DESCRIPTION, (json.dumps(description, indent=1) + "\n").encode())


def is_model(folder: Path) -> bool:
    """Whether the release is a model; a folder that is no release is refused."""
    return read_certificate(folder).is_model


def read_model(folder: Path) -> ModelRelease:
    """Read a released model. `limbeck verify` checks it; this only needs it to be whole."""
    certificate = read_certificate(folder)
    if not certificate.is_model:
        raise BadInput(f"The release in {folder} is a synthetic set, not a model; train on it with limbeck evaluate.")
    schema = certificate.public_assumptions
    try:
        described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if described["format"] != FORMAT:
            raise ValueError(described["format"])
        net = NetSpec.from_dict(described["net"])
        network = build(net, schema.shape, len(schema.classes), seed=0)
        network.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError, BadInput):
        raise NotAuthentic(
            f"The release in {folder} is damaged: its model cannot be read.", f"limbeck verify {folder}"
        ) from None
    weights = {name: value.detach().clone() for name, value in network.named_parameters()}
    return ModelRelease(TrainedModel(net, weights), network.eval().requires_grad_(False), certificate, schema)


def load_model(folder: str | Path) -> Network:
    """The released model as a PyTorch module, in evaluation mode.

    It takes records as `model.json` says, the public range of values scaled to [-1, 1], and gives one logit per class.

    folder: of a release by a method that trains a model, such as DP-SGD.

    >>> import torch
    >>> load_model("digits-model")(torch.zeros(3, 1, 8, 8)).shape
    torch.Size([3, 10])
    """
    return read_model(Path(folder)).network
