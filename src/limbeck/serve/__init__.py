"""A local web page over a folder of runs: progress, releases side by side, budgets, downloads. It only ever reads."""

from __future__ import annotations

from limbeck.serve.access import Access
from limbeck.serve.server import start
from limbeck.serve.site import Site

__all__ = ["Access", "Site", "start"]
