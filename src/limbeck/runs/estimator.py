"""The Python way in: a condenser in scikit-learn manners."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limbeck.data.records import Records, as_records, no_labels
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, RunConflict
from limbeck.methods import METHODS, method_named
from limbeck.nets import Network
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.certificate import Certificate
from limbeck.release.destination import is_unfinished
from limbeck.release.generator import Generator, load_generator
from limbeck.release.model import is_model, read_model
from limbeck.release.reader import read_release
from limbeck.release.table_generator import TableGenerator
from limbeck.runs.condense import condense
from limbeck.runs.planning import make_plan
from limbeck.runs.record import RunRecord
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.runs.resume import resume


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Arrays in memory as a private source: nothing looks at them before the vault does."""

    schema: Schema
    x: Any
    y: Any
    units: Any = None

    def load(self) -> Records:
        units = None if self.units is None else unit_codes(_ids(self.units), "units")
        x = np.asarray(self.x)
        labels = np.asarray(self.y) if self.schema.has_label else no_labels(x)
        return as_records(x, labels, self.schema, "X", units)


def _ids(units: Any) -> Any:
    """A list stays one: as an array all of its ids would become what the widest of them is."""
    return units if isinstance(units, list | tuple) else np.asarray(units)


class Condenser:
    """Condense a labelled data set under differential privacy.

    >>> condenser = Condenser(method="ldpdc", epsilon=1.0, delta=1e-5, per_class=10)
    >>> condenser.fit(X, y, schema=schema)      # doctest: +SKIP
    >>> condenser.X_, condenser.y_, condenser.certificate_      # doctest: +SKIP

    The budget is booked in the ledger under the schema's name, like a run of the command line. After `fit`: `X_`, `y_`,
    `certificate_`, `plan_`, `classes_`; and `generator_` of a method that releases one, for more records.
    """

    def __init__(
        self,
        method: str = "elixir",
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        per_class: int = 50,
        settings: Mapping[str, Any] | None = None,
        ledger: str | Path | None = None,
        device: str = "cpu",
        insecure_seed: int | None = None,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.per_class = per_class
        self.settings = settings
        self.ledger = ledger
        self.device = device
        self.insecure_seed = insecure_seed

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        names = ("method", "epsilon", "delta", "per_class", "settings", "ledger", "device", "insecure_seed")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> Self:
        for name, value in parameters.items():
            if name not in self.get_params():
                raise BadInput(f"Condenser has no parameter '{name}'. Known are: {', '.join(self.get_params())}.")
            setattr(self, name, value)
        return self

    def plan(self, schema: Schema) -> Plan:
        """What `fit` will ask and cost. Reads no record, books nothing."""
        method = method_named(self.method, {**self._size(), **(self.settings or {})})
        return make_plan(schema, method, self.epsilon, self.delta)

    def _size(self) -> dict[str, int]:
        """`per_class`, but for a model, which has no size, and for a table whose settings say how many rows it is to have."""
        kind = METHODS.get(self.method)
        by_rows = kind is not None and kind.sized_by_rows and (self.settings or {}).get("rows") is not None
        return {} if by_rows or (kind is not None and kind.makes == "model") else {"per_class": self.per_class}

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        schema: Schema | None = None,
        out: str | Path | None = None,
        units: ArrayLike | None = None,
    ) -> Self:
        """Book the plan, ask the vault and make the set (`X_`, `y_`), or the model of a method that trains one (`model_`).

        `out` keeps the release folder, otherwise it is not kept; an unfinished run in it is taken up again. `units` says who each
        record is about, one id per record, exactly where the schema's unit is a person; equal ids are one person.
        """
        if schema is None:
            raise BadInput(
                "fit needs schema=Schema(...): shape, classes and value range must be public, not read off X."
            )
        _require_labels(schema, y)
        _require_units(schema, units)
        plan = self.plan(schema)
        ledger = None if self.ledger is None else str(self.ledger)
        options = RunOptions(ledger=ledger, device=self.device, insecure_seed=self.insecure_seed)
        request = Request(data=DataReference(data=None), options=options)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "release" if out is None else Path(out)
            source = ArraySource(schema, X, y, units)
            if is_unfinished(folder):
                _require_same_plan(folder, plan)
                resume(folder, Silent(), source=source)
            else:
                condense(request, plan, source, folder, Silent())
            self._read(folder)
        self.plan_ = plan
        self.classes_ = np.array(schema.classes)
        return self

    def _read(self, folder: Path) -> None:
        if is_model(folder):
            found = read_model(folder)
            self.model_: Network = found.network
            self.certificate_: Certificate = found.certificate
            return
        release = read_release(folder)
        self.X_: NDArray[np.float32] = release.x
        self.y_: NDArray[np.int64] = release.y
        self.certificate_ = release.certificate
        if release.certificate.has_generator:
            self.generator_: Generator | TableGenerator = load_generator(folder)


def _require_labels(schema: Schema, y: Any) -> None:
    if schema.has_label != (y is not None):
        had = "was given y" if y is not None else "needs y=labels"
        said = "lists its classes" if schema.has_label else "says that there is no label"
        raise BadInput(f"fit {had}, but the schema of '{schema.name}' {said}.")


def _require_units(schema: Schema, units: Any) -> None:
    if schema.by_person and units is None:
        raise BadInput(
            f"The unit of '{schema.name}' is {schema.unit_words}, so fit needs units=ids: one id per record, equal for records "
            "of one person."
        )
    if not schema.by_person and units is not None:
        raise BadInput(
            f"fit was given units, but the unit of '{schema.name}' is one record. Name the persons in the schema, as in "
            "Schema(..., unit='patient', units=700), or leave units out."
        )


def _require_same_plan(folder: Path, plan: Plan) -> None:
    if RunRecord.read(folder).plan != plan:
        raise RunConflict(f"{folder} holds an unfinished run with another plan; choose another out.")
