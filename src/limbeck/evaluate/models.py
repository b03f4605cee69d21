"""The models that score a set: the six architectures of the papers, and the thirteen classifiers of GS-WGAN's tables.

Nineteen names, and two beside them: softmax regression, and boosted trees for tables. Two of the thirteen are networks as
well, and other ones than those of the same name among the six:
`mlp-100` has one hidden layer of 100 units (the six's `mlp` has 128-128), `cnn` is small and has dropout.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from limbeck.errors import BadInput
from limbeck.evaluate.cnn import SMALLEST_SIDE, cnn
from limbeck.evaluate.presets import UNIT, Preset
from limbeck.nets import NetSpec, Network, Shape, build
from limbeck.nets.architectures.convnet import USUAL_DEPTH, usual_depth

ARCHITECTURES = ("convnet", "lenet", "alexnet", "vgg11", "resnet18", "mlp")
CLASSIFIERS = (
    "mlp-100",
    "cnn",
    "adaboost",
    "bagging",
    "bernoulli-nb",
    "decision-tree",
    "gaussian-nb",
    "gbm",
    "lda",
    "linear-svc",
    "logistic-reg",
    "random-forest",
    "xgboost",
)
ALONE = ("linear",)  # softmax regression: in no table, and useful
BOOSTED = "boosted-trees"  # XGBoost's or scikit-learn's, at settings for tables
MODELS = (*ARCHITECTURES, *CLASSIFIERS, *ALONE, BOOSTED)
TABLES = ("logistic-reg", BOOSTED, "mlp")  # quick ones of three kinds
GROUPS = {"all": ARCHITECTURES + CLASSIFIERS, "nets": ARCHITECTURES, "classical": CLASSIFIERS, "tables": TABLES}
NETWORKS = (*ARCHITECTURES, "cnn", *ALONE)  # trained by gradient descent here; the others are scikit-learn's, XGBoost's
SCALED = ("convnet", "alexnet", "vgg11", "resnet18")  # those whose filters follow the preset's width
NO_XGBOOST = "XGBoost is not installed; install it with: pip install 'limbeck[xgboost]'"


@dataclass(frozen=True)
class Choice:
    """A model to score, or the reason in words why its row stays empty."""

    model: str
    skipped: str | None = None


def choose(names: Sequence[str], shape: Shape) -> list[Choice]:
    """Models by name or by group, each once.

    A model that cannot read these records is refused if it was named, and an empty row if it came with a group. Without
    the XGBoost library its row is empty in either case, so that a list of models works on every machine.
    """
    found: dict[str, Choice] = {}
    for name in (name.strip().lower().replace("_", "-") for name in names):
        if name not in GROUPS and name not in MODELS:
            raise BadInput(f"Unknown model {name!r}. Choose from {', '.join((*GROUPS, *MODELS))}.")
        for model in GROUPS.get(name, (name,)):
            why = unfit(model, shape)
            if why and name not in GROUPS:
                raise BadInput(why)
            if model == "xgboost" and importlib.util.find_spec("xgboost") is None:
                why = NO_XGBOOST
            found.setdefault(model, Choice(model, why))
    if not found:
        raise BadInput(f"Name at least one model. Choose from {', '.join((*GROUPS, *MODELS))}.")
    if all(choice.skipped not in (None, NO_XGBOOST) for choice in found.values()):
        raise BadInput(f"None of the chosen models can read these records. {next(iter(found.values())).skipped}")
    return list(found.values())


def unfit(model: str, shape: Shape) -> str | None:
    """Why a model cannot read records of this shape; None if it can."""
    if model not in NETWORKS or model in ("mlp", "linear"):
        return None
    if len(shape) != 3:
        return f"A {model} reads images, not records of shape={tuple(shape)}. Tables take 'mlp' or 'linear'."
    least = {"cnn": SMALLEST_SIDE, "lenet": 4}.get(model, 2)
    if min(shape[1:]) < least:
        return f"A {model} needs images of at least {least}x{least} pixels, not records of shape={tuple(shape)}."
    return None


class UnitInputs(nn.Module):
    """Records in [-1, 1] as the [0, 1] that some protocols train on."""

    def forward(self, x: Tensor) -> Tensor:
        return (x + 1) / 2


def build_model(
    model: str | NetSpec, shape: Shape, classes: int, preset: Preset, seed: int, device: torch.device | str = "cpu"
) -> Network:
    """A network with fresh weights. The same seed gives the same weights, and the caller's generator is left alone."""
    network = _fresh(model, shape, classes, preset, seed)
    if preset.inputs == UNIT:
        network.body = nn.Sequential(UnitInputs(), network.body)
    return network.to(device)


def _fresh(model: str | NetSpec, shape: Shape, classes: int, preset: Preset, seed: int) -> Network:
    if isinstance(model, NetSpec):
        return build(model, shape, classes, seed)
    if model not in NETWORKS:
        raise BadInput(f"Unknown network {model!r}. Choose one of {', '.join(NETWORKS)}.")
    why = unfit(model, shape)
    if why:
        raise BadInput(why)
    if model == "cnn":
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return cnn(shape, classes)
    return build(network_spec(model, preset, shape), shape, classes, seed)


def network_spec(model: str, preset: Preset, shape: Shape) -> NetSpec:
    """The spec of a network's name. "linear" is softmax regression. A convnet is deeper for larger pictures."""
    if model == "linear":
        return NetSpec(kind="mlp", depth=1)
    depth = usual_depth(shape) if model == "convnet" else USUAL_DEPTH
    return NetSpec(kind=model, width=preset.width if model in SCALED else 128, depth=depth)
