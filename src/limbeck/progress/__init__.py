"""How long work shows itself to whoever waits for it."""

from limbeck.progress.reporter import Bar, Lines, Noted, Reporter, Silent

__all__ = ["Bar", "Lines", "Noted", "Reporter", "Silent"]
