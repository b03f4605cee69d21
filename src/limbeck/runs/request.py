"""What the owner's command line says beside the plan: where the records are, and how the run behaves."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from limbeck.data import DataSource, open_source
from limbeck.data.named import NAMED
from limbeck.data.parts import part_of
from limbeck.data.source import split_suffix
from limbeck.errors import BadInput, RunConflict
from limbeck.methods import TrainedModel
from limbeck.release.model import read_model
from limbeck.vault.ledger.address import absolute, default_path


@dataclass(frozen=True, kw_only=True)
class DataReference:
    """Where records are and what is public about them; nothing is opened yet.

    data    a named set or a path; None for records in the memory of a Python program
    schema  the file that says what is public; None looks for it beside the data
    label   the label column of a CSV file
    root    a folder that holds the named sets
    part    one part of a split that the ledger knows: "stages-5/1:0,1" (its number and the indices of its classes), with
            " of all" if it keeps the other classes without records, or "thirds/2:hash 3". `runs.parts` writes it
    vault   the socket of a vault in another process that holds the records; all else is then none

    >>> DataReference(data="digits").source("test").schema.classes
    ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')
    """

    data: str | None
    schema: str | None = None
    label: str | None = None
    root: str | None = None
    part: str | None = None
    vault: str | None = None

    def __post_init__(self) -> None:
        if self.vault is not None and (self.data, self.schema, self.label, self.root, self.part) != (None,) * 5:
            raise BadInput(
                "With a vault's socket leave the data, --schema, --label and --root out: the vault holds the records, and "
                "says itself what is public about them."
            )

    @property
    def words(self) -> str:
        """The same reference as words of a command line, without its part.

        >>> DataReference(data="my scans.csv", schema="scans.toml").words
        "'my scans.csv' --schema scans.toml"
        """
        options = (("--schema", self.schema), ("--label", self.label), ("--root", self.root))
        given = [word for option, value in options if value for word in (option, value)]
        return shlex.join([*([self.data] if self.data else []), *given])

    def source(self, split: str = "train") -> DataSource:
        """The source of these records. Guarantee: reads no record."""
        whole = self.whole(split)
        return whole if self.part is None else part_of(whole, self.part)

    def whole(self, split: str = "train") -> DataSource:
        """The source of the data set that these records are a part of."""
        if self.vault is not None:
            raise RunConflict(f"The records are in the vault at {self.vault}, which gives answers and no records.")
        if self.data is None:
            raise RunConflict(
                "This run was started in Python with records in memory; call Condenser.fit again with the same out."
            )
        return open_source(
            self.data,
            split=split,
            schema_path=Path(self.schema) if self.schema else None,
            label=self.label,
            root=Path(self.root) if self.root else None,
        )


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run behaves. Nothing of it changes what is asked or what it costs.

    ledger         the file that keeps the budgets; None for the default one
    insecure_seed  predictable noise, for tests; stamped on the certificate
    device         where to compute
    start          the folder of a released model that the method is to go on from
    """

    ledger: str | None = None
    insecure_seed: int | None = None
    device: str = "cpu"
    start: str | None = None

    @property
    def ledger_path(self) -> Path:
        return Path(self.ledger) if self.ledger else default_path()

    def start_model(self) -> TrainedModel | None:
        return None if self.start is None else read_model(Path(self.start)).model


@dataclass(frozen=True, kw_only=True)
class Request:
    """Both together: what a run folder keeps, so that a run can be resumed from anywhere."""

    data: DataReference
    options: RunOptions = field(default_factory=RunOptions)

    def __post_init__(self) -> None:
        if self.data.vault is not None and (self.options.ledger, self.options.insecure_seed) != (None, None):
            raise BadInput(
                "With a vault's socket leave --ledger and --insecure-seed out: budgets and noise are on the vault's side."
            )

    def to_dict(self) -> dict[str, Any]:
        """One flat table with full paths."""
        values = asdict(self.data) | asdict(self.options)
        for name in ("schema", "root", "start"):
            if values[name]:
                values[name] = str(Path(values[name]).absolute())
        values["ledger"] = str(absolute(self.options.ledger_path))
        if self.data.vault is None:
            del values["vault"]  # a run of this process is written as it always was
        else:
            values |= {"vault": str(Path(self.data.vault).absolute()), "ledger": None}
        if self.data.data is not None and split_suffix(self.data.data)[0] not in NAMED:
            values["data"] = str(Path(self.data.data).expanduser().absolute())
        return values

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Request:
        """Raises TypeError for entries that are not known, or where `data` is missing."""
        options = {entry.name for entry in fields(RunOptions)}
        return Request(
            data=DataReference(**{name: value for name, value in values.items() if name not in options}),
            options=RunOptions(**{name: value for name, value in values.items() if name in options}),
        )
