"""What the owner's command line says beside the plan: where the records are, and how the run behaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from limbeck.data import DataSource, open_source
from limbeck.data.named import NAMED
from limbeck.data.parts import part_of
from limbeck.data.source import split_suffix
from limbeck.errors import RunConflict
from limbeck.methods import TrainedModel
from limbeck.release.model import read_model
from limbeck.vault.ledger import default_path


@dataclass(frozen=True, kw_only=True)
class DataReference:
    """Where records are and what is public about them; nothing is opened yet.

    data    a named set or a path; None for records in the memory of a Python program
    schema  the file that says what is public; None looks for it beside the data
    label   the label column of a CSV file
    root    a folder that holds the named sets
    part    some of the classes only, written like "stage-1:0,1" (a name and indices of classes); "stage-1:0,1 of all" keeps
            the other classes as classes without records

    >>> DataReference(data="digits").source("test").schema.classes
    ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')
    """

    data: str | None
    schema: str | None = None
    label: str | None = None
    root: str | None = None
    part: str | None = None

    def source(self, split: str = "train") -> DataSource:
        """The source of these records. Guarantee: reads no record."""
        if self.data is None:
            raise RunConflict(
                "This run was started in Python with records in memory; call Condenser.fit again with the same out."
            )
        whole = open_source(
            self.data,
            split=split,
            schema_path=Path(self.schema) if self.schema else None,
            label=self.label,
            root=Path(self.root) if self.root else None,
        )
        return whole if self.part is None else part_of(whole, self.part)


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

    def to_dict(self) -> dict[str, Any]:
        """One flat table with full paths."""
        values = asdict(self.data) | asdict(self.options)
        for name in ("schema", "root", "start"):
            if values[name]:
                values[name] = str(Path(values[name]).absolute())
        values["ledger"] = str(self.options.ledger_path.absolute())
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
