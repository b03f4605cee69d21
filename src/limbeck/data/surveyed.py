"""What an owner asks of a look at private data, and what it found. Both stay with the owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from limbeck.data.survey_units import Persons
from limbeck.privacy.schema import Column


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the owner says of a table: the column with the classes, or that there is none; columns that models are to predict; and
    what says who a record is about. `ask` puts a question to a person, where one is there."""

    label: str | None = None
    unit: str | None = None
    targets: tuple[str, ...] = ()
    unlabelled: bool = False
    ask: Callable[[str], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found. `says` is what the owner should know of a column; `left_out` are the others, each with the reason.

    sizes: records of each class; without a label there is none, and `label` is empty. label_at: how many of the columns stand
    before the label, where not all do. careful: the pictures may be medical, so nothing is proposed that might change what they
    show. picture_remarks: what the owner should know of them.
    """

    shape: tuple[int, ...]
    low: float
    high: float
    sizes: dict[str, int]
    columns: tuple[Column, ...] = ()
    label: str = "label"
    says: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    persons: Persons | None = None
    maybe_persons: tuple[str, ...] = ()
    rows: int = 0
    targets: tuple[str, ...] = ()
    label_at: int | None = None
    remarks: tuple[str, ...] = ()
    resize: str | None = None
    careful: bool = False
    picture_remarks: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        return sum(self.sizes.values()) if self.label else self.rows

    @property
    def asks_of_changes(self) -> bool:
        """Whether a mirrored or recoloured picture may show something else: grey ones (scans, digits), and medical ones."""
        return len(self.shape) == 3 and (self.careful or self.shape[0] == 1)
