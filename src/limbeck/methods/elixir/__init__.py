"""Elixir, our own method."""

from limbeck.methods.elixir.method import Elixir

__all__ = ["Elixir"]
