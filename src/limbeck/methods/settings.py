"""Settings that declare their bounds: type and range stand beside the field, and one checker enforces them.

    L: int = setting(15, least=1)
    sigma: float | None = setting(None, above=0)
    clip: float = setting(0.4, above=0, most=1, note="in units of sqrt(d)")
    pixels: str = setting("unit", choices=("unit", "signed"))

`None` in the type means that the setting may be left open: the method chooses it. A method writes code only for what
relates two settings, or a setting and the schema. Texts (from --set key=value) are read by the same declarations.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from limbeck.errors import BadSettings, did_you_mean

LARGEST = 2**63 - 1  # what a tensor can count
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a value may be. Numbers are finite, whatever else is declared.

    least, above  the smallest value, or what every value exceeds
    most, below   the largest value, or what no value reaches
    multiple_of   of a whole number
    choices       of a text; none declared: any text, which the method checks against its data
    note          said after the bound
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    multiple_of: int = 1
    choices: tuple[str, ...] = ()
    note: str = ""

    def holds(self, value: float | str) -> bool:
        if isinstance(value, str):
            return not self.choices or value in self.choices
        return (
            is_finite(value)
            and (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
            and (self.multiple_of == 1 or value % self.multiple_of == 0)
        )

    def words(self, whole: bool = False, finite: bool = False) -> str:
        """The bound as it stands after "must"; `whole` for integers, `finite` to say that too.

        >>> Bounds(least=0, below=1).words()
        'lie in [0, 1)'
        >>> Bounds(above=0).words(finite=True), Bounds(least=2, multiple_of=2).words(whole=True)
        ('be positive and finite', 'be even and at least 2')
        """
        said = [self._range(whole)] if self._range(whole) else []
        if self.multiple_of != 1:
            said.insert(0, "be even" if self.multiple_of == 2 else f"be a multiple of {self.multiple_of}")
        if finite and self.most is None and self.below is None:
            said.append("be finite")
        together = " and ".join([*said[:1], *(part.removeprefix("be ") for part in said[1:])])
        return f"{together}, {self.note}" if together and self.note else together

    def _range(self, whole: bool) -> str:
        if self.choices:
            *others, last = self.choices
            return f"be {', '.join(others)} or {last}" if others else f"be {last}"
        low = self.least if self.above is None else self.above
        high = self.most if self.below is None else self.below
        if low is not None and low == high:
            return f"be {low}"
        if low is not None and high is not None:
            if whole and self.above is None and self.below is None:
                return f"lie in {low} ... {high}"
            return f"lie in {'[' if self.above is None else '('}{low}, {high}{']' if self.below is None else ')'}"
        if low is not None:
            return f"be at least {low}" if self.above is None else "be positive" if low == 0 else f"be above {low}"
        if high is not None:
            return f"be at most {high}" if self.below is None else f"be below {high}"
        return ""


def setting(
    default: Value,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    multiple_of: int = 1,
    choices: tuple[str, ...] = (),
    note: str = "",
) -> Value:
    """A field of a method with its default and its bounds."""
    bounds = Bounds(
        least=least, above=above, most=most, below=below, multiple_of=multiple_of, choices=choices, note=note
    )
    return dataclasses.field(default=default, metadata={"bounds": bounds})


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A field as it was declared. optional: None is allowed, the method then chooses."""

    name: str
    kind: type
    optional: bool
    default: Any
    bounds: Bounds

    @property
    def summary(self) -> str:
        """Type and bound in a few words, such as "int, at least 1, or none"."""
        bound = self.bounds.words(whole=self.kind is int).removeprefix("be ").removeprefix("lie ")
        return ", ".join(part for part in (self.kind.__name__, bound, "or none" if self.optional else "") if part)

    def to_dict(self) -> dict[str, Any]:
        """The declaration, without what was not declared."""
        stated = dataclasses.asdict(self.bounds)
        unstated = dataclasses.asdict(Bounds())
        return {"type": self.kind.__name__, "optional": self.optional} | {
            key: value for key, value in stated.items() if value != unstated[key]
        }

    def check(self, value: Any) -> None:
        """Refuse a value of another type or out of bounds, in one sentence."""
        if value is None and self.optional:
            return
        if not self._is_of_kind(value):
            raise self._wrong_form(value)
        if self.kind is int and abs(value) > LARGEST:  # too long to print
            raise BadSettings(f"{self.name} must be less than 2^63, got a number of {value.bit_length()} bits.")
        if not self.bounds.holds(value):
            bound = self.bounds.words(whole=self.kind is int, finite=self.kind is float and not is_finite(value))
            raise BadSettings(f"{self.name} must {bound}, got {self.name}={value!r}.")

    def read(self, value: Any) -> Any:
        """A text, or a value from JSON, as a value of this type; its bounds are checked by the method that takes it."""
        if self.optional and (value is None or value == "none"):
            return None
        try:
            return self._converted(value)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise self._wrong_form(value) from None

    def _converted(self, value: Any) -> Any:
        if self.kind is bool:
            return value if isinstance(value, bool) else BOOLEANS[str(value).lower()]
        if isinstance(value, bool) or (self.kind is int and isinstance(value, float) and value != int(value)):
            raise ValueError(value)
        return self.kind(value)

    def _is_of_kind(self, value: Any) -> bool:
        if isinstance(value, bool) or self.kind is bool:
            return isinstance(value, bool) and self.kind is bool
        return isinstance(value, (int, float) if self.kind is float else self.kind)

    def _wrong_form(self, value: Any) -> BadSettings:
        return BadSettings(f"The setting {self.name}={value} is not of the form {self.kind.__name__}.")


def is_finite(value: float) -> bool:
    """Also for integers that no float can hold; false for NaN."""
    return abs(value) <= math.nextafter(math.inf, 0.0)


def declared(method: type) -> dict[str, Setting]:
    """All settings of a kind of method by name, in their order."""
    return _declared(method)


@functools.cache
def _declared(method: type) -> dict[str, Setting]:
    hints = typing.get_type_hints(method)
    return {field.name: _declaration(field, hints[field.name]) for field in dataclasses.fields(method)}


def _declaration(field: dataclasses.Field[Any], hint: Any) -> Setting:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    (kind,) = (option for option in options if option is not types.NoneType)
    return Setting(
        name=field.name,
        kind=kind,
        optional=types.NoneType in options,
        default=field.default,
        bounds=field.metadata.get("bounds", Bounds()),
    )


def check_settings(method: object) -> None:
    """Refuse a method with a setting of the wrong type or out of its bounds."""
    for name, declaration in declared(type(method)).items():
        declaration.check(getattr(method, name))


def read_settings(method: type, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, each as a value of its setting's type; a setting that the method `name` does not have is refused."""
    known = declared(method)
    for key in given:
        if key not in known:
            raise BadSettings(
                f"Method '{name}' has no setting '{key}'.{did_you_mean(key, known)} Known are: {', '.join(known)}.",
                f"limbeck methods {name}",
            )
    return {key: known[key].read(value) for key, value in given.items()}
