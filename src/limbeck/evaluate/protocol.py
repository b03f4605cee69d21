"""How a set is scored: which models, trained how, how often, from which seed on which device."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from limbeck.errors import BadInput
from limbeck.evaluate.decoded import is_table
from limbeck.evaluate.models import TABLES, Choice, choose
from limbeck.evaluate.presets import Preset, preset_named
from limbeck.evaluate.seen import require_size
from limbeck.privacy.schema import Schema

LARGEST_USUAL = 64 * 64  # pixels; larger images get a shorter training on a CPU unless a preset is named


@dataclass(frozen=True, kw_only=True)
class EvaluationProtocol:
    """What a caller asks for. None leaves it to the preset.

    models: names or groups of models; None is what the preset's paper trains, else one ConvNet, or three quick ones of a table.
    preset: the name of a training protocol; None is cpu on a CPU (quick for images above 64x64), else paper.
    repeats: how often each model is trained, with successive seeds; None is the preset's number of networks, or 1 for images
        where neither models nor a preset are named.
    size: pixels of the longer side that pictures are averaged down to first; 0 leaves them as they are, None takes the size at
        which the release says that they were made.
    """

    models: tuple[str, ...] | None = None
    preset: str | None = None
    repeats: int | None = None
    seed: int = 0
    device: str = "cpu"
    size: int | None = None

    def __post_init__(self) -> None:
        require_repeats(1 if self.repeats is None else self.repeats)
        require_size(self.size)

    def resolve(self, schema: Schema) -> Scoring:
        """The same for records of this schema, with no choice left open. Refuses models that cannot read such records."""
        preset = preset_named(self.preset or self._usual_preset(schema)).fitted(schema)
        return Scoring(
            choices=tuple(choose(default_models(preset, schema) if self.models is None else self.models, schema.shape)),
            preset=preset,
            repeats=self._repeats(preset, schema),
            seed=self.seed,
            device=self.device,
        )

    def _usual_preset(self, schema: Schema) -> str:
        if self.device != "cpu":
            return "paper"
        return "quick" if schema.is_image and schema.shape[1] * schema.shape[2] > LARGEST_USUAL else "cpu"

    def _repeats(self, preset: Preset, schema: Schema) -> int:
        """Whoever names neither models nor a preset wants to know about how good a set of images is: one network tells that."""
        if self.repeats is not None:
            return self.repeats
        unnamed = schema.is_image and self.models is None and self.preset is None
        return 1 if unnamed else preset.networks

    def resolve_for_size(self, schema: Schema, records: int) -> Scoring:
        """The same for training on so many records: where they are many, by the preset's stand-in for large sets."""
        found = self.resolve(schema)
        preset = found.preset.for_size(records).fitted(schema)
        repeats = self._repeats(preset, schema)
        return dataclasses.replace(found, preset=preset, repeats=repeats)


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """A protocol without open choices. A choice that is `skipped` is reported and not trained."""

    choices: tuple[Choice, ...]
    preset: Preset
    repeats: int
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_repeats(self.repeats)


def default_models(preset: Preset, schema: Schema) -> tuple[str, ...]:
    """What the preset's paper trains; else three quick models for a table, one ConvNet for images."""
    if preset.models:
        return preset.models
    if is_table(schema):
        return TABLES
    return ("convnet",) if schema.is_image else ("mlp", "linear")


def require_repeats(repeats: int) -> None:
    if repeats < 1:
        raise BadInput(f"Expected repeats={repeats} to be at least 1.")
