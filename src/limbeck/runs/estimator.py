"""The Python way in: a condenser in scikit-learn manners."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limbeck.data.frames import Form
from limbeck.errors import BadInput
from limbeck.methods import METHODS, default_method
from limbeck.nets import Network
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release import framed
from limbeck.release.certificate import Certificate
from limbeck.release.generator import Generator, load_generator
from limbeck.release.model import is_model, read_model
from limbeck.release.reader import Release, read_release
from limbeck.release.table_generator import TableGenerator
from limbeck.runs.in_memory import in_memory, memory_source
from limbeck.runs.planning import make_plan, method_for, sized
from limbeck.runs.request import DataReference, Request, RunOptions


class Condenser:
    """Condense a data set under differential privacy: arrays, or a frame of pandas, polars or Arrow.

    >>> condenser = Condenser(method="ldpdc", epsilon=1.0, delta=1e-5, per_class=10)
    >>> condenser.fit(X, y, schema=schema)      # doctest: +SKIP
    >>> condenser.X_, condenser.y_, condenser.certificate_      # doctest: +SKIP
    >>> Condenser(epsilon=1.0).fit(frame, schema=schema).set_      # doctest: +SKIP

    Without a method it is the one for the kind of data: elixir for images, mosaic for tables. Without `per_class` and `rows` the
    size is the method's own; that of mosaic is as many rows as there are records.

    The budget is booked in the ledger under the schema's name, like a run of the command line. After `fit`: `X_`, `y_`, `set_`,
    `certificate_`, `plan_`, `classes_`; and `generator_` of a method that releases one, for more records. `set_` is a frame of
    the kind that went in, with its types and order of columns; of arrays it is the pair of `X_` and `y_`.
    """

    def __init__(
        self,
        method: str | None = None,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        per_class: int | None = None,
        settings: Mapping[str, Any] | None = None,
        ledger: str | Path | None = None,
        device: str = "cpu",
        insecure_seed: int | None = None,
        rows: int | None = None,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.per_class = per_class
        self.settings = settings
        self.ledger = ledger
        self.device = device
        self.insecure_seed = insecure_seed
        self.rows = rows

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        names = ("method", "epsilon", "delta", "per_class", "settings", "ledger", "device", "insecure_seed", "rows")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> Self:
        for name, value in parameters.items():
            if name not in self.get_params():
                raise BadInput(f"Condenser has no parameter '{name}'. Known are: {', '.join(self.get_params())}.")
            setattr(self, name, value)
        return self

    def plan(self, schema: Schema) -> Plan:
        """What `fit` will ask and cost. Reads no record, books nothing."""
        kind = METHODS.get(self.method or default_method(schema))
        # A model has no size, so one that is given for sets of whichever method says nothing about it.
        size = None if kind is not None and kind.makes == "model" else self.per_class
        settings = {**sized(None, size), **(self.settings or {})}
        return make_plan(schema, method_for(schema, self.method, settings, self.rows), self.epsilon, self.delta)

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        schema: Schema | None = None,
        out: str | Path | None = None,
        units: ArrayLike | None = None,
    ) -> Self:
        """Book the plan, ask the vault and make the set (`X_`, `y_`, `set_`), or a model (`model_`), as the method does.

        X is an array of records, or a frame of pandas, polars or Arrow that is encoded by the schema's columns. A frame may have
        the labels in the schema's label column, and the persons in its unit's; then `y` and `units` are left out.

        `out` keeps the release folder, otherwise it is not kept; an unfinished run in it is taken up again. `units` says who each
        record is about, one id per record, exactly where the schema's unit is a person; equal ids are one person.
        """
        if schema is None:
            raise BadInput(
                "fit needs schema=Schema(...): shape, classes and value range must be public, not read off X."
            )
        source, form = memory_source(X, y, schema, units)
        plan = self.plan(schema)
        ledger = None if self.ledger is None else str(self.ledger)
        options = RunOptions(ledger=ledger, device=self.device, insecure_seed=self.insecure_seed)
        request = Request(data=DataReference(data=None), options=options)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "release" if out is None else Path(out)
            in_memory(request, plan, source, folder, Silent())
            self._read(folder, form)
        self.plan_ = plan
        self.classes_ = np.array(schema.classes)
        return self

    def _read(self, folder: Path, form: Form | None) -> None:
        if is_model(folder):
            found = read_model(folder)
            self.model_: Network = found.network
            self.certificate_: Certificate = found.certificate
            return
        release = read_release(folder)
        self.X_: NDArray[np.float32] = release.x
        self.y_: NDArray[np.int64] = release.y
        self.certificate_ = release.certificate
        self._made, self._form = release, form
        if release.certificate.has_generator:
            self.generator_: Generator | TableGenerator = load_generator(folder)

    @property
    def set_(self) -> Any:
        """The set as the records came: the same kind of frame, or the arrays `X_` and `y_`."""
        found, form = self._fitted()
        return (found.x, found.y) if form is None else framed.framed(found.x, found.y, found.schema, form)

    def to_arrow(self) -> Any:
        """The set as an Arrow table; with the types of the Arrow table that went in, if one did."""
        found, form = self._fitted()
        return framed.to_arrow(found.x, found.y, found.schema, form)

    def to_pandas(self) -> Any:
        """The set as a pandas frame; with the types of the pandas frame that went in, if one did."""
        found, form = self._fitted()
        return framed.to_pandas(found.x, found.y, found.schema, form)

    def to_polars(self) -> Any:
        """The set as a polars frame; with the types of the polars frame that went in, if one did."""
        found, form = self._fitted()
        return framed.to_polars(found.x, found.y, found.schema, form)

    def to_torch(self) -> Any:
        """The exact numbers of the set and its class indices as a `TensorDataset`."""
        found, _ = self._fitted()
        return found.to_torch()

    def _fitted(self) -> tuple[Release, Form | None]:
        if not hasattr(self, "_made"):
            # An AttributeError, so that hasattr says what it says of everything else that `fit` has not made yet.
            raise AttributeError("This condenser has made no set; call fit first.")
        return self._made, self._form
