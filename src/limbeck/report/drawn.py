"""Pictures from the generator beside a set, class by class: what anybody can draw from the release."""

from __future__ import annotations

import torch

from limbeck.methods import TrainedGenerator
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.schema import Schema
from limbeck.report.strips import Strip, class_strips, columns, shown_classes

SEED = 0


@torch.no_grad()
def drawn_strips(made: TrainedGenerator, schema: Schema) -> tuple[Strip | None, ...]:
    """A strip of each class from latents that are always the same. None of a generator that was fitted to the set's own latents:
    that set is shown already."""
    if not schema.is_image or not isinstance(made.spec, GeneratorSpec) or made.spec.fitted:
        return ()
    network = build_generator(made.spec, schema.shape, len(schema.classes), seed=0)
    network.load_state_dict(made.weights)
    labels = torch.arange(shown_classes(schema)).repeat_interleave(columns(schema))
    latents = made.spec.latents(len(labels), torch.Generator().manual_seed(SEED))
    pictures = network.eval()(latents, labels)
    return class_strips(pictures.numpy(), labels.numpy(), schema)
