"""A constraint that every row of a table keeps to, as the owner declares it. It is public, like all of a schema.

    if = "pregnant = yes"           then = "sex = female"
    never = "age < 16 & married = yes"
    sum = ["net", "tax"]            is = "gross"
    order = ["start", "end"]        start is not after end
    unique = "id"                   no two rows of a set have the same
    same = ["level", "years"]       by = { bachelor = 13, master = 14 }: the second says what the first does

CONSTITUTION: the list is closed, and what an entry means never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limbeck.errors import BadInput
from limbeck.privacy.entries import is_texts, shown

FORMS = (("if", "then"), ("never",), ("sum", "is"), ("order",), ("unique",), ("same", "by"))
_TEXTS = ("if", "then", "never", "is", "unique")
_WORDS = 'if and then, never, sum and is, order, unique, or same and by, such as if = "pregnant = yes", then = "sex = female"'
MOST_CONSTRAINTS = 200


@dataclass(frozen=True)
class Constraint:
    """form: the name of its first entry. conditions: of `if` two texts, of `never` one. columns: those that it names, of `sum`
    and `same` the one that follows from the others last. by: of `same`, each value of the first column and that of the second.

    >>> Constraint.from_dict({"sum": ["net", "tax"], "is": "gross"}).columns
    ('net', 'tax', 'gross')
    """

    form: str
    conditions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    by: tuple[tuple[str, str | float], ...] = ()

    @property
    def text(self) -> str:
        """In words for a message."""
        entries = {key: value for key, value in self.to_dict().items() if key != "by"}
        return ", ".join(f"{key} = {shown(value)}" for key, value in entries.items())

    def to_dict(self) -> dict[str, Any]:
        if self.form in ("if", "never"):
            return dict(zip(("if", "then") if self.form == "if" else ("never",), self.conditions, strict=True))
        if self.form == "sum":
            return {"sum": list(self.columns[:-1]), "is": self.columns[-1]}
        if self.form == "unique":
            return {"unique": self.columns[0]}
        return {self.form: list(self.columns), **({"by": dict(self.by)} if self.form == "same" else {})}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Constraint:
        form = next((entries for entries in FORMS if set(entries) == set(values)), None)
        if form is None:
            raise BadInput(f"A constraint has the entries {_WORDS}; got {shown(', '.join(map(str, values)))}.")
        tidy = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        for key in form:
            right = isinstance(tidy[key], str) if key in _TEXTS else key == "by" or is_texts(tidy[key])
            if not right:
                kind = "a text" if key in _TEXTS else "a list of names of columns"
                raise BadInput(f"'{key}' of a constraint must be {kind}, got {shown(values[key])}.")
        return Constraint(form[0], *_parts(form[0], tidy))


def _parts(
    form: str, values: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str | float], ...]]:
    if form in ("if", "never"):
        return tuple(values.values()) if form == "never" else (values["if"], values["then"]), (), ()
    if form == "unique":
        return (), (values["unique"],), ()
    columns: tuple[str, ...] = values[form]
    least = 1 if form == "sum" else 2
    columns = (*columns, values["is"]) if form == "sum" else columns
    if len(columns) < least + (form == "sum") or len(set(columns)) != len(columns):
        raise BadInput(
            f"'{form}' of a constraint must list at least {least} different columns, got {shown(values[form])}."
        )
    if form != "same":
        return (), columns, ()
    by = values["by"]
    if len(columns) != 2 or not isinstance(by, Mapping) or not all(_is_value(value) for value in by.values()):
        raise BadInput(
            f"same = {shown(list(columns))} needs two columns, and by = {{ value = other }} with a text or a number for each "
            "value of the first one."
        )
    return (), columns, tuple((str(key), value) for key, value in by.items())


def _is_value(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
