"""The closed list of work that ranks do for a method. A name on the wire is one of these, or it is refused."""

from __future__ import annotations

from limbeck.methods.elixir.set_descent import SetDescent
from limbeck.methods.team import Work

WORKS: dict[str, type[Work]] = {"set_descent": SetDescent}
