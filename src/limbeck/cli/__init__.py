"""The `limbeck` command."""

from limbeck.cli.main import main

__all__ = ["main"]
