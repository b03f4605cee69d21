"""Values over the wire: every map, question, query and schema arrives as it was sent, with the digest that it had."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from choice_contract import candidates
from contract import plan_of, query_of

from limbeck.errors import LimbeckError
from limbeck.nets.training.augment import Augmentation
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Choice, ClippedSum, TeacherGradient, TeacherVote
from limbeck.privacy.schema import Column, Schema
from limbeck.vault.api import (
    Critic,
    CriticGradient,
    Discriminator,
    EnsembleSpec,
    FeatureTeacher,
    Grant,
    Identity,
    Map,
    Question,
    Scores,
)
from limbeck.vault.ensemble.kinds import QUESTIONS, TEACHERS
from limbeck.vault.maps import MAPS
from limbeck.vault.process.requests import REPLIES, REQUESTS, Ask, Book, Described, message_of, read
from limbeck.vault.process.wire import Malformed, Message

sys.path.insert(0, str(Path(__file__).parents[1] / "privacy"))

from test_sensitivity import MAPPINGS
from test_teacher_answers import SETTINGS, question

GRANT = Grant("d" * 32, plan_of())


def sent(said: Any, listed: Any = REQUESTS) -> Any:
    """As the other end gets it: through the text of the header."""
    message = message_of(said)
    values = json.loads(json.dumps(message.values, allow_nan=False))
    tensors = tuple(tensor.detach().contiguous().clone() for tensor in message.tensors)
    return read(Message(message.kind, values, tensors), listed)


def carried(mapping: Map | Question | Scores) -> Any:
    return sent(Ask(GRANT, "sums", 3, mapping)).mapping


def test_every_map_and_question_is_tried_here() -> None:
    assert {type(mapping) for mapping in MAPPINGS.values()} == set(MAPS.values())
    assert set(SETTINGS) == set(QUESTIONS.values())


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_map_has_the_same_digest_after_the_wire(name: str) -> None:
    before, after = MAPPINGS[name], carried(MAPPINGS[name])
    assert type(after) is type(before) and after.digest() == before.digest()
    x = torch.rand((2, 1, 8, 8), generator=torch.Generator().manual_seed(1)) * 2 - 1
    y = torch.tensor([0, 2])
    with torch.no_grad():
        assert torch.equal(before.rows(x, y), after.rows(x, y))


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.kind)
def test_a_question_has_the_same_digest_after_the_wire(kind: type[Question]) -> None:
    asked = question(kind, 4)
    found = carried(asked)
    assert type(found) is kind and found.digest() == asked.digest() and found.identity() == asked.identity()


def test_scores_have_the_same_digest_after_the_wire() -> None:
    asked = candidates()
    found = carried(asked)
    assert type(found) is type(asked) and found.digest() == asked.digest() and found.cells == asked.cells
    assert found.digest() != carried(candidates(1.5)).digest()


def test_every_teacher_is_carried() -> None:
    teachers = {
        "critic": Critic(shape=(1, 8, 8), classes=3, warm=2, hidden=5, width=0),
        "discriminator": Discriminator(shape=(1, 8, 8), classes=3, first=2, second=3, hidden=4, decay=0.25),
        "feature_discriminator": FeatureTeacher(shape=(1, 8, 8), classes=3, features=9, features_seed=4, decay=0.5),
    }
    assert set(teachers) == set(TEACHERS)
    x = torch.zeros(2, 1, 8, 8)
    for teacher in teachers.values():
        spec = EnsembleSpec(teachers=5, batch=2, first=3, block=2)
        asked = CriticGradient(
            teacher=teacher, ensemble=spec, fakes=x, fake_labels=torch.tensor([0, 1]), x=x, y=torch.tensor([0, 1])
        )
        found = carried(asked)
        assert found.teacher == teacher and found.ensemble == spec and found.digest() == asked.digest()


@pytest.mark.parametrize(
    "mapping",
    [
        Identity(scale=2),
        Identity(scale=2.0),
        Identity(scale=0.1 + 0.2),
        Identity(scale=5e-324, shift=-0.0),
        Identity(scale=math.inf),
        Identity(shift=-math.inf),
        Identity(scale=1.7976931348623157e308),
    ],
    ids=str,
)
def test_numbers_keep_their_last_bit_and_whole_ones_stay_whole(mapping: Identity) -> None:
    found = carried(mapping)
    assert found == mapping and found.digest() == mapping.digest()
    assert math.copysign(1, found.shift) == math.copysign(1, mapping.shift)


QUERIES = (
    query_of(),
    query_of(label="a", noise_multiplier=0.0, clip=math.inf),
    query_of(label="b", rate=(0.1, 0.2, 0.3), by_class=False),
    TeacherVote(label="c", map="sign_vote", clip=3.0, noise_multiplier=4.0, teachers=6, count=2),
    Choice(label="e", map="marginal_errors", clip=1.0, noise_multiplier=4.0, count=2),
    TeacherGradient(label="d", map="critic_gradient", clip=3.0, noise_multiplier=4.0, teachers=6, draws=2),
)


def test_a_plan_is_carried_with_everything_that_it_states() -> None:
    cheap = plan_of()
    plan = dataclasses.replace(cheap, queries=QUERIES, settings={"a": [1, 2.5, "x", None, {"b": True}]})
    price = dataclasses.replace(plan.price, epsilon=math.inf, epsilon_exact=None)
    for each in (cheap, plan, dataclasses.replace(plan, price=price)):
        found = sent(Book(each, None)).plan
        assert found == each and json.dumps(found.to_dict()) == json.dumps(each.to_dict())


def test_a_schema_is_carried() -> None:
    columns = (Column(name="age", low=0, high=100, integer=True), Column(name="sex", categories=("f", "m")))
    table = Schema(
        name="Bürger", shape=(3,), classes=("no", "yes"), records=40, low=-1, high=1, columns=columns, augmentation=()
    )
    picture = Schema(name="p", shape=(1, 8, 8), classes=("a", "b"), records=10, class_sizes=(5, 5), low=0.5, high=2)
    people = dataclasses.replace(picture, unit="patient", units=4, unit_records=3)
    odd = (
        Column(name="debt", low=-1, high=1e6, digits=2, special=(-1, 0.5), missing=True),
        Column(name="born", kind="date", low="1990-01-01", high="2020-12-31", special=("2000-01-01",)),
    )
    dated = dataclasses.replace(table, columns=odd)
    for schema in (table, picture, people, dated):
        found = sent(Described(schema, "x"), REPLIES).schema
        assert found == schema and json.dumps(found.to_dict()) == json.dumps(schema.to_dict())


# What is refused


def altered(change: Any, mapping: Map | Question | None = None) -> Any:
    """A good request, changed by somebody on the way."""
    message = message_of(Ask(GRANT, "sums", 0, mapping or MAPPINGS["gradient"]))
    values = json.loads(json.dumps(message.values))
    change(values)
    return read(Message(message.kind, values, message.tensors), REQUESTS)


def put(*path: Any, value: Any) -> Any:
    def change(values: Any) -> None:
        for key in path[:-1]:
            values = values[key]
        values[path[-1]] = value

    return change


FIELDS = ("mapping", "fields")
CHANGES: dict[str, Any] = {
    "another kind": put("mapping", "kind", value="os.system"),
    "the base class": put("mapping", "kind", value=""),
    "a teacher as a map": put("mapping", "kind", value="critic"),
    "a kind that is no text": put("mapping", "kind", value=["identity"]),
    "a kind of another form": put("mapping", "kind", value="identity"),
    "a missing field": lambda values: values["mapping"]["fields"].pop("classes"),
    "a missing field of the plan": lambda values: values["grant"]["plan"].pop("price"),
    "an unknown field": put(*FIELDS, "chunk", value=1),
    "a private field": put(*FIELDS, "_engines", value={}),
    "a text for a number": put(*FIELDS, "classes", value="3"),
    "a truth value for a number": put(*FIELDS, "classes", value=True),
    "a fraction for a whole number": put(*FIELDS, "classes", value=3.0),
    "a number beyond all": put(*FIELDS, "seed", value=2**63),
    "none where something has to be": put(*FIELDS, "classes", value=None),
    "a text for a list": put(*FIELDS, "shape", value="188"),
    "an object for a list": put(*FIELDS, "shape", value={"0": 1}),
    "a list in a list": put(*FIELDS, "shape", value=[[1], 8, 8]),
    "a list for an object": put(*FIELDS, "weights", value=[0]),
    "a tensor that is not there": put(*FIELDS, "weights", value={"a": 99}),
    "a tensor before the first": put(*FIELDS, "weights", value={"a": -1}),
    "a tensor at two places": put(*FIELDS, "weights", value={"a": 0, "b": 0, "c": 1, "d": 2, "e": 3}),
    "a tensor without a place": put(*FIELDS, "weights", value={"a": 0}),
    "a tensor that is true": put(*FIELDS, "weights", value={"a": True}),
    "a tensor of text": put(*FIELDS, "weights", value={"a": "0"}),
    "a name with a zero byte": put(*FIELDS, "weights", value={"a\0": 0}),
    "a surrogate": put("label", value="\ud800"),
    "a text without end": put("label", value="x" * 100_000),
    "a word for a number": put("grant", "plan", "queries", 0, "fields", "clip", value="nan"),
    "a query of another kind": put("grant", "plan", "queries", 0, "kind", value="holdout"),
    "a query without its kind": put("grant", "plan", "queries", 0, value={"label": "x"}),
    "a field of the net": put(*FIELDS, "net", "path", value="x"),
    "a net that is a text": put(*FIELDS, "net", value="mlp"),
    "another grant": put("grant", "id", value="../x"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_declared_is_refused(name: str) -> None:
    assert altered(lambda values: None)
    with pytest.raises(Malformed):
        altered(CHANGES[name])


@pytest.mark.parametrize(
    "change",
    [
        put(*FIELDS, "net", "kind", value="nonsense"),
        put(*FIELDS, "clipping", value="never"),
        put("grant", "plan", "queries", 0, "fields", "count", value=0),
        put("grant", "plan", "queries", value=[]),
    ],
)
def test_what_a_class_refuses_stays_refused(change: Any) -> None:
    with pytest.raises(LimbeckError):
        altered(change)


def test_what_is_not_of_the_closed_lists_is_not_sent() -> None:
    class Mine(Identity):
        pass

    class MyQuery(ClippedSum):
        pass

    mine = MyQuery(label="sums", map="identity", clip=1.0, noise_multiplier=2.0)
    for said in (
        Ask(GRANT, "sums", 0, Mine()),
        Ask(GRANT, "sums", 0, Map()),
        Ask(GRANT, "sums", 0, Identity(scale=math.nan)),
        Ask(GRANT, "sums", 0, Identity(scale=torch.tensor(1.0))),  # type: ignore[arg-type]
        Book(dataclasses.replace(plan_of(), queries=(mine,)), None),
        Book(dataclasses.replace(plan_of(), settings={"a": object()}), None),
        Book(dataclasses.replace(plan_of(), settings={"a": math.nan}), None),
    ):
        with pytest.raises(Malformed):
            message_of(said)


def test_lists_become_tuples_because_kernels_are_remembered_by_them() -> None:
    found = carried(MAPPINGS["augmented gradient"])
    assert type(found.shape) is tuple and found.augmentation == Augmentation()
    assert isinstance(found.block, int) and isinstance(GRANT.plan, Plan)
