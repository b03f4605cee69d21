"""The reference classifier, trained on the real records: the fidelity scores use its features and its probabilities.

It has seen private records and nobody has paid for it, so it belongs to the owner: it is kept in a folder that only the owner can
read, and nothing computed with it goes into a release. On the command line and in files it is called the judge.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from limbeck.data.fetch import cache_folder
from limbeck.data.records import Records
from limbeck.errors import BadInput, OutputFault
from limbeck.evaluate.downstream import train
from limbeck.evaluate.presets import Preset
from limbeck.files import write_atomic
from limbeck.nets import NetSpec, Network, build
from limbeck.nets.architectures.convnet import usual_depth
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.vault.encoding import encode

FORMAT = 1
ROWS_AT_ONCE = 500
FEWEST_EPOCHS, MOST_EPOCHS, FEWEST_STEPS = 5, 500, 2000
# Without weight decay the classifier is as sure of itself as the records allow, which is what the Inception Score asks.
# Its name is part of the fingerprint that a kept classifier is found by.
TRAINING = Preset(name="judge", width=32, epochs=FEWEST_EPOCHS, batch=128, lr=0.05, weight_decay=0.0, augment=())


@dataclass(frozen=True, eq=False)
class ReferenceClassifier:
    """A trained classifier of the real records."""

    network: Network
    spec: NetSpec
    epochs: int
    kept: bool  # whether it came from the cache

    def outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features (records, d) and class probabilities (records, classes) of encoded records."""
        features, probabilities = [], []
        with torch.no_grad():
            for part in torch.split(x, ROWS_AT_ONCE):
                embedded = self.network.embed(part.float())
                features.append(embedded)
                probabilities.append(self.network.head(embedded).softmax(1))
        return torch.cat(features), torch.cat(probabilities)


@dataclass(frozen=True)
class PlainFeatures:
    """In place of a classifier where there is no label: the features of a record are its encoded numbers."""

    spec: NetSpec | None = None
    epochs: int | None = None
    kept: bool | None = None

    def outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.flatten(1).float(), torch.ones(len(x), 1)


def reference_classifier(
    records: Records, schema: Schema, reporter: Reporter, epochs: int | None = None, device: str = "cpu", seed: int = 0
) -> ReferenceClassifier:
    """The reference classifier of these training records: from the cache, or trained now and kept there."""
    if epochs is not None and not 1 <= epochs <= MOST_EPOCHS:
        raise BadInput(f"The judge can be trained for 1 to {MOST_EPOCHS} epochs, got {epochs}.")
    length = epochs or epochs_for(len(records))
    kind = "convnet" if schema.is_image else "mlp"
    spec = NetSpec(kind=kind, width=TRAINING.width if schema.is_image else 128, depth=usual_depth(schema.shape))
    path = cache_folder() / "judges" / f"{_fingerprint(records, schema, spec, length, seed)}.safetensors"
    network = build(spec, schema.shape, len(schema.classes), seed)
    if _restore(network, path):
        return ReferenceClassifier(network.eval(), spec, length, True)
    reporter.say(f"training the judge on {len(records)} real records for {length} epochs; it is kept for the next time")
    preset = dataclasses.replace(TRAINING, epochs=length)
    x, y = encode(records.x, schema), torch.from_numpy(records.y)
    trained = train(spec, x, y, len(schema.classes), preset, seed, device)
    # The plain network reads the weights back, so that a fresh classifier and a kept one give the same numbers.
    network.load_state_dict({name: value.cpu() for name, value in trained.state_dict().items()})
    _keep(network, path, reporter)
    return ReferenceClassifier(network.eval(), spec, length, False)


def epochs_for(records: int) -> int:
    """Five passes, or as many as make 2000 steps of a small set."""
    steps = math.ceil(records / TRAINING.batch)
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, math.ceil(FEWEST_STEPS / steps)))


def _fingerprint(records: Records, schema: Schema, spec: NetSpec, epochs: int, seed: int) -> str:
    settings = {
        "format": FORMAT,
        "net": spec.to_dict(),
        "training": dataclasses.asdict(dataclasses.replace(TRAINING, epochs=epochs)),
        "seed": seed,
        "range": [schema.low, schema.high],
        "classes": len(schema.classes),
        "shape": list(records.x.shape),
        "dtype": str(records.x.dtype),
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    digest.update(records.x.tobytes())
    digest.update(records.y.tobytes())
    return digest.hexdigest()


def _restore(network: Network, path: Path) -> bool:
    try:
        network.load_state_dict(load_file(path))
    except (OSError, SafetensorError, RuntimeError):  # none, or a damaged one: it is trained again
        return False
    return True


def _keep(network: Network, path: Path, reporter: Reporter) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.chmod(0o700)
        write_atomic(path, save({name: value.contiguous() for name, value in network.state_dict().items()}))
        path.chmod(0o600)
    except (OSError, OutputFault):
        reporter.say(f"the judge could not be kept in {path.parent}; it will be trained again the next time")
