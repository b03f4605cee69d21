"""Frozen values to and from a message, field by field, as their own annotations say.

What a field may hold is what its class declares: plain numbers and texts, tuples, tensors, and dataclasses of ours. Where
several classes are possible (a map, a question, scores, a teacher, a query) the value names its `kind`, from the closed lists
that the vault itself accepts. So whatever arrives is one of these values, whole, or it is refused.

A value that went over the wire has the same digest: whole numbers stay whole, and tensors keep their bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from limbeck.privacy.queries import KINDS
from limbeck.vault.choices import SCORES, Scores
from limbeck.vault.ensemble.kinds import QUESTIONS, TEACHERS
from limbeck.vault.ensemble.teachers import Question, Teacher
from limbeck.vault.maps import MAPS, Map
from limbeck.vault.process.wire import Malformed

LARGEST = 2**63
LONGEST = 1 << 16
# JSON knows no infinity; a query without a bound has one.
INFINITE = {"infinity": math.inf, "-infinity": -math.inf}
# Where a field is of one of these, the value says which class of the list it is.
OPEN: dict[type, Mapping[str, type]] = {Map: MAPS, Question: QUESTIONS, Scores: SCORES, Teacher: TEACHERS}


@functools.cache
def _fields(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _choice(hint: Any) -> Mapping[str, type] | None:
    """The classes by kind, where a field may hold one of several."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if not all(option in OPEN or option in KINDS.values() for option in options):
        return None
    listed: dict[str, type] = {}
    for option in options:
        listed |= OPEN.get(option, {option.kind: option})
    return listed


def pack(value: Any, tensors: list[Tensor]) -> dict[str, Any]:
    """A dataclass as plain values; its tensors are added to the list, and the values name their places in it."""
    kind: Any = type(value)
    return {name: _pack(getattr(value, name), hint, tensors) for name, hint in _fields(kind).items()}


def _pack(value: Any, hint: Any, tensors: list[Tensor]) -> Any:
    choice = _choice(hint)
    if choice is not None:
        kind = getattr(value, "kind", None)
        if choice.get(kind) is not type(value):  # type: ignore[arg-type]  # None is no kind
            raise Malformed("a value of no known kind")
        return {"kind": kind, "fields": pack(value, tensors)}
    if dataclasses.is_dataclass(hint):
        if type(value) is not hint:
            raise Malformed("a value of another class")
        return pack(value, tensors)
    if hint is Tensor:
        if not isinstance(value, Tensor):
            raise Malformed("no tensor")
        tensors.append(value)
        return len(tensors) - 1
    if isinstance(hint, types.UnionType):
        option = _option(hint, value)
        return None if option is None else _pack(value, option, tensors)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, tuple | list):
            raise Malformed("no tuple")
        return [_pack(entry, typing.get_args(hint)[0], tensors) for entry in value]
    if typing.get_origin(hint) in (dict, Mapping):
        return {_plain(key, str): _pack(each, typing.get_args(hint)[1], tensors) for key, each in value.items()}
    if hint is float and isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return _any(value) if hint is Any else _plain(value, hint)


def unpack(kind: type, values: Any, tensors: tuple[Tensor, ...]) -> Any:
    """The dataclass of these values.

    Guarantee: every field is there, none is unknown, and each holds what the class declares; every tensor has one place.
    Raises Malformed, or what the class itself says about a value that it refuses.
    """
    left = dict(enumerate(tensors))
    value = _unpack_fields(kind, values, left)
    if left:
        raise Malformed("a tensor without a place")
    return value


def _unpack_fields(kind: type, values: Any, tensors: dict[int, Tensor]) -> Any:
    hints = _fields(kind)
    if not isinstance(values, dict) or set(values) != set(hints):
        raise Malformed("other fields")
    return kind(**{name: _unpack(values[name], hint, tensors) for name, hint in hints.items()})


def _unpack(value: Any, hint: Any, tensors: dict[int, Tensor]) -> Any:
    choice = _choice(hint)
    if choice is not None:
        if not isinstance(value, dict) or set(value) != {"kind", "fields"} or not isinstance(value["kind"], str):
            raise Malformed("a value without its kind")
        if value["kind"] not in choice:
            raise Malformed("a value of no known kind")
        return _unpack_fields(choice[value["kind"]], value["fields"], tensors)
    if dataclasses.is_dataclass(hint):
        return _unpack_fields(typing.cast(type, hint), value, tensors)
    if hint is Tensor:
        if type(value) is not int or value not in tensors:
            raise Malformed("a tensor that is not there")
        return tensors.pop(value)
    if isinstance(hint, types.UnionType):
        option = _option(hint, value)
        return None if option is None else _unpack(value, option, tensors)
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise Malformed("no list")
        return tuple(_unpack(entry, typing.get_args(hint)[0], tensors) for entry in value)
    if typing.get_origin(hint) in (dict, Mapping):
        if not isinstance(value, dict):
            raise Malformed("no object")
        return {_plain(key, str): _unpack(each, typing.get_args(hint)[1], tensors) for key, each in value.items()}
    if hint is float and isinstance(value, str):
        if value not in INFINITE:
            raise Malformed("no number")
        return INFINITE[value]
    return value if hint is Any else _plain(value, hint)


def _option(hint: types.UnionType, value: Any) -> Any:
    """As which of several types a value counts: none at all, a text where it is one, or the only other one."""
    options = set(typing.get_args(hint))
    if value is None and types.NoneType in options:
        return None
    options.discard(types.NoneType)
    if len(options) > 1 and isinstance(value, str) and str in options:
        return str
    (only,) = options - {str} if len(options) > 1 else options
    return only


def _plain(value: Any, hint: Any) -> Any:
    """A text, a truth value or a number that is what its field declares; a whole number may stand for any number."""
    if hint is str:
        fits = isinstance(value, str) and len(value) <= LONGEST and "\0" not in value and _is_text(value)
    elif hint is bool:
        fits = isinstance(value, bool)
    elif hint is int:
        fits = type(value) is int and -LARGEST <= value < LARGEST
    elif hint is float:
        fits = (type(value) is int and -LARGEST <= value < LARGEST) or (
            isinstance(value, float) and math.isfinite(value)
        )
    else:
        fits = False
    if not fits:
        raise Malformed("a value of another type")
    return value


def _any(value: Any) -> Any:
    """Settings and certificates: whatever JSON knows."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise Malformed("a value that is not plain") from None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
