"""Settings are checked by what they declare, and resolved ones leave nothing open."""

from __future__ import annotations

import dataclasses
import doctest
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.errors import BadSettings
from limbeck.methods import METHODS, declared, method_named, settings, settings_of
from limbeck.methods.settings import LARGEST, Setting
from limbeck.privacy.schema import Schema

# What relates two settings is no bound of one: the companions with which a value on its bound makes sense.
COMPANIONS: dict[tuple[str, str], dict[str, Any]] = {
    ("gswgan", "T"): {"snapshots": 0},
    ("gswgan", "snapshots"): {"T": 1000},
    ("dpsgd", "k"): {"topagg": "norm"},
}
EVERY = [(name, setting) for name, kind in METHODS.items() for setting in declared(kind).values()]
NUMBERS = [(name, setting) for name, setting in EVERY if setting.kind in (int, float)]
GREY = Schema(name="grey", shape=(1, 12, 12), classes=("a", "b"), records=60_000, low=0, high=255)
COLOUR = Schema(name="colour", shape=(3, 12, 12), classes=("a", "b"), records=60_000, low=0, high=255)
TABLE = Schema(name="table", shape=(9,), classes=("a", "b"), records=60_000, augmentation=(), low=0, high=255)


def names(settings: list[tuple[str, Setting]]) -> list[str]:
    return [f"{name}-{setting.name}" for name, setting in settings]


def below(value: float, kind: type) -> float:
    return int(value) - 1 if kind is int else math.nextafter(value, -math.inf)


def beyond(value: float, kind: type) -> float:
    return int(value) + 1 if kind is int else math.nextafter(value, math.inf)


def edges(setting: Setting) -> Iterator[tuple[Any, Any, str]]:
    """(just outside, just inside, the bound as the sentence must state it) for every bound that is declared."""
    bounds, kind = setting.bounds, setting.kind
    if bounds.least is not None:
        inside = bounds.least if bounds.multiple_of == 1 else bounds.multiple_of
        yield below(bounds.least, kind), kind(inside), str(bounds.least)
    if bounds.above is not None:
        alone = bounds.above == 0 and bounds.most is None and bounds.below is None
        yield bounds.above, beyond(bounds.above, kind), "positive" if alone else f"({bounds.above}, "
    if bounds.most is not None:
        yield beyond(bounds.most, kind), kind(bounds.most), str(bounds.most)
    if bounds.below is not None:
        yield bounds.below, below(bounds.below, kind), str(bounds.below)
    if bounds.multiple_of != 1:
        yield bounds.multiple_of + 1, bounds.multiple_of, "even"
    for choice in bounds.choices:
        yield f"{choice}?", choice, choice


# What is nothing where a method is resolved: a generator that is not made has no kind.
MAY_BE_NOTHING = {"elixir": {"generator_kind"}}


def refusal(name: str, values: dict[str, Any]) -> str:
    with pytest.raises(BadSettings) as refused:
        METHODS[name](**values)
    return refused.value.message


@pytest.mark.parametrize(("name", "setting"), EVERY, ids=names(EVERY))
def test_a_value_on_its_bound_is_accepted_and_one_beyond_it_refused_by_name(name: str, setting: Setting) -> None:
    companions = COMPANIONS.get((name, setting.name), {})
    for outside, inside, bound in edges(setting):
        said = refusal(name, {**companions, setting.name: outside})
        assert said.startswith(f"{setting.name} must ") and f"got {setting.name}={outside!r}" in said
        assert bound in said.split(", got ")[0]
        assert getattr(METHODS[name](**{**companions, setting.name: inside}), setting.name) == inside


@pytest.mark.parametrize(("name", "setting"), NUMBERS, ids=names(NUMBERS))
def test_every_number_declares_where_it_ends(name: str, setting: Setting) -> None:
    assert setting.bounds.least is not None or setting.bounds.above is not None
    for wild in (math.nan, math.inf, -math.inf, True, "1", [1], 10**400, -(10**400)):
        assert setting.name in refusal(name, {setting.name: wild})
    if setting.kind is int:
        assert setting.name in refusal(name, {setting.name: LARGEST + 1})
        assert setting.name in refusal(name, {setting.name: 1.0})


@pytest.mark.parametrize(("name", "setting"), EVERY, ids=names(EVERY))
def test_none_stands_for_a_choice_only_where_that_is_declared(name: str, setting: Setting) -> None:
    if setting.optional:
        assert getattr(method_named(name, {setting.name: "none"}), setting.name) is None
    else:
        assert f"{setting.name}=None" in refusal(name, {setting.name: None})
    assert METHODS[name]() == method_named(name, {setting.name: setting.default})


@given(st.sampled_from(NUMBERS), st.one_of(st.integers(), st.floats()))
def test_a_text_is_read_as_the_value_that_it_shows(which: tuple[str, Setting], value: float) -> None:
    name, setting = which
    companions = COMPANIONS.get((name, setting.name), {})
    try:
        direct = METHODS[name](**{**companions, setting.name: setting.kind(value)})
    except (BadSettings, ValueError, OverflowError):
        if isinstance(value, setting.kind):
            with pytest.raises(BadSettings):
                method_named(name, {**companions, setting.name: repr(value)})
    else:
        assert method_named(name, {**companions, setting.name: repr(setting.kind(value))}) == direct


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("schema", [GREY, COLOUR, TABLE], ids=lambda schema: schema.name)
@pytest.mark.parametrize("epsilon", [None, 0.2, 1.0, 10.0])
def test_a_resolved_method_chooses_nothing_more(name: str, schema: Schema, epsilon: float | None) -> None:
    resolved = METHODS[name]().resolved(schema, epsilon)
    chosen = dataclasses.asdict(resolved.chosen(schema, epsilon))
    stated = settings_of(resolved)
    assert {key for key, value in chosen.items() if value is None} <= MAY_BE_NOTHING.get(name, set())
    assert chosen == {key: stated[key] for key in chosen}
    for other in (None, 0.2, 1.0, 10.0):
        assert resolved.chosen(schema, other) == resolved.chosen(schema, epsilon)
    read_back = method_named(name, stated)
    assert read_back == resolved and settings_of(read_back) == stated


@pytest.mark.parametrize("name", METHODS)
def test_what_is_chosen_is_the_type_that_its_setting_declares(name: str) -> None:
    kind = METHODS[name]
    chosen = kind().chosen(COLOUR, 1.0)
    assert {
        key: (setting.kind, setting.optional) for key, setting in declared(type(chosen)).items()
    } == {
        key: (declared(kind)[key].kind, key in MAY_BE_NOTHING.get(name, set())) for key in dataclasses.asdict(chosen)
    }  # fmt: skip


def test_the_examples_are_true() -> None:
    assert doctest.testmod(settings).failed == 0
