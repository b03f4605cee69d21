"""Whether two sets of records can be compared: the same shape and the same classes."""

from __future__ import annotations

from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema

# What the test records are compared with, in the words of the refusal.
SET = "the set has shape {shape} and {classes} classes"
TRAINING = "the training records have shape {shape} and {classes} classes"
MODEL = "the model takes shape {shape} and tells {classes} classes apart"


def compatible(schema: Schema, other: Schema) -> bool:
    return schema.shape == other.shape and schema.classes == other.classes


def require_label(schema: Schema) -> None:
    """Classifiers learn a label; where there is none, they have nothing to learn."""
    if not schema.has_label:
        raise BadInput(
            f"'{schema.name}' has no label that classifiers could learn. limbeck fidelity compares its columns with the real "
            "ones."
        )


def require_learnable(schema: Schema) -> None:
    """Models learn a label, or the columns that are named as targets."""
    if not schema.has_label and not schema.targets:
        raise BadInput(
            f"'{schema.name}' has neither a label nor targets that models could learn. limbeck fidelity compares its columns "
            "with the real ones."
        )


def require_compatible(schema: Schema, test: Schema, words: str = SET) -> None:
    """Refuse test records of another shape or with other classes than what `words` describes."""
    if not compatible(schema, test):
        theirs = words.format(shape=schema.shape, classes=len(schema.classes))
        raise BadInput(
            f"The test records have shape {test.shape} and {len(test.classes)} classes, {theirs}; they must be the same."
        )
