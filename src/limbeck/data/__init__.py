"""Readers and writers of data sets; the benchmark sets."""

from __future__ import annotations

from limbeck.data.records import Records
from limbeck.data.source import DataSource, open_source

__all__ = ["DataSource", "Records", "open_source"]
