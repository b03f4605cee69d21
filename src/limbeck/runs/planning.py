"""From a data set and a method to a priced plan, and what an owner wants to know of it. Reads no record, books nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.methods import Method, default_method, method_named, settings_of, with_rows
from limbeck.privacy.calibration import calibrate
from limbeck.privacy.plan import Plan, draw_up
from limbeck.privacy.queries import Query
from limbeck.privacy.schema import Schema
from limbeck.privacy.unit import UNIT_RECORD
from limbeck.runs.forecasting import Forecast, forecast
from limbeck.runs.premises import Elsewhere
from limbeck.runs.request import DataReference, RunOptions
from limbeck.vault.process.client import ProcessVault


def make_plan(
    schema: Schema,
    method: Method,
    epsilon: float | None,
    delta: float,
    asked: Callable[[tuple[Query, ...]], tuple[Query, ...]] = lambda queries: queries,
    noise: float | None = None,
) -> Plan:
    """Price a method for a data set. Reads no record.

    schema: what is public about the data. method: with its settings. epsilon: what the plan may cost, None where a setting fixes
    the noise. delta: below 1 / number of records, or of persons where the schema's unit is a person. asked: of the method's
    queries, what one vault is asked where there are several. noise: the noise multiplier, where `epsilon` is not to decide.

    >>> from limbeck import open_source
    >>> plan = make_plan(open_source("digits").schema, method_named("ldpdc", {"per_class": 5}), 1.0, 1e-5)
    >>> plan.counts, plan.price.epsilon <= 1.0
    ({'groups': 5}, True)
    """
    schema.require_confirmed()
    method = method.resolved(schema, epsilon)
    method.check(schema)
    if not method.private and epsilon is not None and not math.isinf(epsilon):
        raise BadInput(
            f"Method '{method.name}' is not private, so epsilon={epsilon:g} cannot be kept; give --epsilon inf."
        )
    return draw_up(
        schema=schema,
        method=method.name,
        settings=settings_of(method),
        queries_at=lambda noise: asked(method.queries(schema, noise)),
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=method.fixed_noise if noise is None else noise,
    )


def plan_for(
    data: DataReference | DataSource,
    method: str | None,
    settings: Mapping[str, Any],
    epsilon: float | None,
    delta: float,
    rows: int | None = None,
) -> tuple[Plan, DataSource | Elsewhere]:
    """The plan of a method by name, and the source that it is for."""
    source = source_of(data)
    return make_plan(source.schema, method_for(source.schema, method, settings, rows), epsilon, delta), source


def sized(settings: Mapping[str, Any] | None, per_class: int | None) -> dict[str, Any]:
    """The settings with so many records of each class, where that is given."""
    return {**(settings or {}), **({} if per_class is None else {"per_class": per_class})}


def source_of(data: DataReference | DataSource) -> DataSource | Elsewhere:
    """Where the records are; of a vault elsewhere what it says of them. Reads no record."""
    if isinstance(data, DataSource):
        return data
    return data.source() if data.vault is None else Elsewhere(ProcessVault(data.vault).describe())


def method_for(schema: Schema, name: str | None, settings: Mapping[str, Any], rows: int | None = None) -> Method:
    """name: None for the default of this kind of data. rows: a shorthand for the setting, where the method has it."""
    name = default_method(schema) if name is None else name
    return method_named(name, with_rows(name, settings, rows))


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A plan as its owner sees it before paying.

    noise_multiplier_rdp: of the first query, if RDP alone decided, as in the papers; None where the noise was fixed.
    kept_bytes: size of the answers that the release will hold, for more sets.
    unit: what neighbours differ by, as the schema says. forecast: how useful the set will be, how long it takes, what is left.
    """

    plan: Plan
    forecast: Forecast
    noise_multiplier_rdp: float | None = None
    unit: str = UNIT_RECORD
    kept_bytes: int = 0

    @property
    def noise_multiplier(self) -> float:
        return self.plan.queries[0].noise_multiplier

    def to_dict(self) -> dict[str, Any]:
        plan = self.plan
        shares = zip(plan.queries, plan.shares, strict=True)
        values = {
            **plan.price.to_dict(),
            "unit": self.unit,
            "dataset": plan.dataset,
            "method": plan.method,
            "settings": plan.settings,
            "queries": [{**query.to_dict(), "share": share} for query, share in shares],
            "noise_multiplier": self.noise_multiplier,
            "kept_bytes": self.kept_bytes,
            "forecast": self.forecast.to_dict(),
            "remaining_after": self.forecast.remaining_after,
        }
        if self.noise_multiplier_rdp is not None:
            values["noise_multiplier_rdp"] = self.noise_multiplier_rdp
        return values


def quote(
    data: DataReference | DataSource,
    method: str | None,
    settings: Mapping[str, Any],
    epsilon: float | None,
    delta: float,
    rows: int | None = None,
    ledger: Path | None = None,
    real_accuracy: float | None = None,
) -> Quote:
    """What a run would ask and cost, and what it would be worth. ledger: where the budgets are; None for the default one.

    real_accuracy: in per cent, what a usual model reaches on real records of this kind, if that is known without these.
    """
    plan, source = plan_for(data, method, settings, epsilon, delta, rows)
    elsewhere = isinstance(data, DataReference) and data.vault is not None
    book = None if elsewhere else ledger or RunOptions().ledger_path
    expected, unit = forecast(source.schema, plan, book, real_accuracy), source.schema.unit
    made = method_named(plan.method, plan.settings)
    kept = made.kept_bytes(source.schema)
    if epsilon is None or made.fixed_noise is not None:
        return Quote(plan=plan, forecast=expected, unit=unit, kept_bytes=kept)
    base = calibrate(lambda noise: made.queries(source.schema, noise), epsilon, delta, "rdp")
    by_rdp = made.queries(source.schema, base)[0].noise_multiplier
    return Quote(plan=plan, forecast=expected, noise_multiplier_rdp=by_rdp, unit=unit, kept_bytes=kept)
