"""The Python way in: a condenser in scikit-learn manners."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from limbeck.data.frames import Form
from limbeck.errors import BadInput
from limbeck.methods import METHODS, default_method
from limbeck.nets import Network
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter, for_people
from limbeck.release import framed, shown
from limbeck.release.certificate import Certificate
from limbeck.release.destination import is_unfinished
from limbeck.release.generator import Generator, load_generator
from limbeck.release.model import is_model, read_model
from limbeck.release.reader import Release, read_release
from limbeck.release.table_generator import TableGenerator
from limbeck.runs.in_memory import in_memory, memory_source
from limbeck.runs.kept import kept_folder
from limbeck.runs.planning import make_plan, method_for, sized
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.runs.resampled import resampled
from limbeck.runs.searches import require_single_fit

NAMES = (
    "method", "epsilon", "delta", "per_class", "settings", "ledger", "device", "insecure_seed", "rows", "schema", "progress",
)  # fmt: skip


class Condenser(BaseEstimator):
    """Condense a data set under differential privacy: arrays, a frame of pandas, polars or Arrow, a Dataset of torch or of
    Hugging Face.

    >>> condenser = Condenser(method="ldpdc", epsilon=1.0, delta=1e-5, per_class=10)
    >>> condenser.fit(X, y, schema=schema)      # doctest: +SKIP
    >>> condenser.X_, condenser.y_, condenser.certificate_      # doctest: +SKIP
    >>> Condenser(epsilon=1.0).fit(frame, schema=schema).set_      # doctest: +SKIP

    Without a method it is the one for the kind of data: elixir for images, mosaic for tables. Without `per_class` and `rows` the
    size is the method's own; that of mosaic is as many rows as there are records. `schema` may be given here or to `fit`.
    `progress`: None shows a bar in a notebook and on a terminal, True always something, False nothing.

    The budget is booked in the ledger under the schema's name, like a run of the command line. After `fit`: `X_`, `y_`, `set_`,
    `certificate_`, `plan_`, `classes_`, `release_` (the folder of the release); and `generator_` of a method that releases one,
    for more records. `set_` is of the kind that went in, with its types and order of columns; of arrays it is the pair of `X_`
    and `y_`. Every fit is a booking, so searches such as GridSearchCV are refused.
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
        schema: Schema | None = None,
        progress: bool | None = None,
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
        self.schema = schema
        self.progress = progress

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in NAMES}

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

        X is an array of records; a frame of pandas, polars or Arrow that is encoded by the schema's columns; a Dataset of torch
        whose items are records with labels; or a Dataset of Hugging Face. A frame may have the labels in the schema's label
        column, and the persons in its unit's; then `y` and `units` are left out.

        `out` is the release folder; an unfinished run in it is taken up again. Without it the release is kept in a new folder
        below `limbeck-releases` (or LIMBECK_RELEASES). `release_` names it. `units` says who each record is about, one id per
        record, exactly where the schema's unit is a person; equal ids are one person.
        """
        require_single_fit()
        schema = self.schema if schema is None else schema
        if schema is None:
            raise BadInput(
                "fit needs schema=Schema(...): shape, classes and value range must be public, not read off X."
            )
        source, form = memory_source(X, y, schema, units)
        plan = self.plan(schema)
        ledger = None if self.ledger is None else str(self.ledger)
        options = RunOptions(ledger=ledger, device=self.device, insecure_seed=self.insecure_seed)
        request = Request(data=DataReference(data=None), options=options)
        place = kept_folder(schema.name, plan) if out is None else nullcontext(Path(out))
        with place as folder, for_people(self.progress) as told:
            try:
                in_memory(request, plan, source, folder, told)
            except KeyboardInterrupt:
                _say_how_to_go_on(folder, told)
                raise
            self._read(folder, form)
        self.release_ = folder.absolute()
        self.plan_ = plan
        self.classes_ = np.array(schema.classes)
        return self

    def fit_resample(
        self,
        X: Any,
        y: ArrayLike | None = None,
        schema: Schema | None = None,
        out: str | Path | None = None,
        units: ArrayLike | None = None,
    ) -> tuple[Any, Any]:
        """Like `fit`, in the manners of imbalanced-learn: synthetic records and labels in the terms of X and y.

        Unlike `X_`, which is encoded, records have the scale, order of axes and columns of X, so that what learns from them can
        be asked about real ones.
        """
        self.fit(X, y, schema=schema, out=out, units=units)
        found, form = self._fitted()
        return resampled(found, form, X, y)

    def score(self, X: Any, y: Any = None) -> float:
        """A set has no score of its own, and scores on private records are not covered by the promise: always refused."""
        raise BadInput(
            "A condenser has no score. Score the models that learn from its set: limbeck.api.evaluate(condenser.release_, test)."
        )

    def _read(self, folder: Path, form: Form | None) -> None:
        if is_model(folder):
            found = read_model(folder)
            self.model_: Network = found.network
            self.certificate_: Certificate = found.certificate
            for stale in ("_made", "_form", "X_", "y_", "generator_"):
                self.__dict__.pop(stale, None)
            return
        release = read_release(folder)
        self.X_: NDArray[np.float32] = release.x
        self.y_: NDArray[np.int64] = release.y
        self.certificate_ = release.certificate
        self._made, self._form = release, form
        for stale in ("model_", "generator_"):
            self.__dict__.pop(stale, None)
        if release.certificate.has_generator:
            self.generator_: Generator | TableGenerator = load_generator(folder)

    @property
    def set_(self) -> Any:
        """The set as the records came: the same kind of frame or data set, or the arrays `X_` and `y_`."""
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

    def to_hf(self) -> Any:
        """The set as a `Dataset` of Hugging Face; with the types of the one that went in, if one did."""
        found, form = self._fitted()
        return framed.to_hf(found.x, found.y, found.schema, form)

    def _repr_html_(self) -> str:
        """For notebooks: what was asked for; once it is fitted, the release."""
        asked = shown.pairs_html(
            [(name, repr(value)) for name, value in self._changed().items()] or [("all", "as default")]
        )
        if not hasattr(self, "certificate_"):
            return f"<p><strong>Condenser</strong>, not fitted yet</p>{asked}"
        made = getattr(self, "_made", None)
        kept = shown.pairs_html([("release", str(self.release_))])
        return kept + (shown.certificate_html(self.certificate_) if made is None else shown.release_html(made))

    def _repr_mimebundle_(self, **named: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __repr__(self, **named: Any) -> str:
        return f"Condenser({', '.join(f'{name}={value!r}' for name, value in self._changed().items())})"

    def _changed(self) -> dict[str, Any]:
        """The parameters that were given. Of a schema its name: the rest of it is long."""
        defaults = Condenser().get_params()
        changed = {name: value for name, value in self.get_params().items() if value is not defaults[name]}
        return {name: value.name if isinstance(value, Schema) else value for name, value in changed.items()}

    def _fitted(self) -> tuple[Release, Form | None]:
        if not hasattr(self, "_made"):
            # An AttributeError, so that hasattr says what it says of everything else that `fit` has not made yet.
            raise AttributeError("This condenser has made no set; call fit first.")
        return self._made, self._form


def _say_how_to_go_on(folder: Path, told: Reporter) -> None:
    if is_unfinished(folder):
        told.say(
            f"Stopped; what was answered is kept. Go on with fit(..., out={str(folder)!r}); nothing is paid twice."
        )
