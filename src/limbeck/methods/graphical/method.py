"""What AIM, MST and PrivBayes have in common as methods: whole tables, of as many rows as one asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from limbeck.methods.base import MOST_PER_CLASS, Method
from limbeck.methods.graphical.columns import MOST_ROWS, check_table
from limbeck.methods.settings import setting
from limbeck.privacy.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MarginalMethod(Method):
    """rows, per_class: as in mosaic. bins: of a numeric column, about. sigma: noise std / sensitivity of all answers together."""

    sized_by_rows: ClassVar[bool] = True

    per_class: int = setting(0, least=0, most=MOST_PER_CLASS)
    rows: int | None = setting(None, least=1, most=MOST_ROWS)
    bins: int = setting(20, least=2, most=1000)
    sigma: float | None = setting(None, above=0)

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def check(self, schema: Schema) -> None:
        check_table(self.name, schema, self.rows, self.per_class)
