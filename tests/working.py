"""The calls that plan, make and resume a run, under one name for tests, and a short way to write a request."""

from __future__ import annotations

from typing import Any

from limbeck.runs.condense import condense
from limbeck.runs.planning import make_plan, plan_for
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.runs.resume import resume

__all__ = ["DataReference", "Request", "RunOptions", "asked", "condense", "make_plan", "plan_for", "resume"]


def asked(data: str | None = "digits", part: str | None = None, **options: Any) -> Request:
    """A request for a data set by name, with the options of a run."""
    return Request(data=DataReference(data=data, part=part), options=RunOptions(**options))
