"""Small schemas that tests of several rooms share."""

from __future__ import annotations

from limbeck.privacy.schema import Column, Schema

GRAY = Schema(name="tiny", shape=(1, 4, 5), classes=("cat", "dog"), records=6, low=0, high=255)
COLOUR = Schema(name="tiny", shape=(3, 4, 5), classes=("cat", "dog"), records=6, low=0, high=255)
PEOPLE = Schema(
    name="people",
    shape=(6,),
    classes=("no", "yes"),
    records=4,
    low=-1,
    high=1,
    columns=(
        Column(name="age", low=0, high=100, integer=True),
        Column(name="colour", categories=("blue", "green", "red")),
        Column(name="size", categories=("S", "M", "L"), ordinal=True),
        Column(name="height", low=1.0, high=2.0),
    ),
    label="buys",
)
