"""How long work shows itself to whoever waits for it."""

from limbeck.progress.notebook import Notebook, for_people
from limbeck.progress.reporter import Bar, Lines, Noted, Reporter, Silent

__all__ = ["Bar", "Lines", "Notebook", "Noted", "Reporter", "Silent", "for_people"]
