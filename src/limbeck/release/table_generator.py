"""The model of a table as part of a release: more rows, also under conditions. Everything here is public.

generator.safetensors    logits and weights of the mixture, the edges of columns, the terms and the constant of the label; or the
                         edges and the conditional tables of a graphical model
generator.json           components, edges of each column, and how much of the mixture's opinion labels keep; or edges and steps
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limbeck.errors import BadInput
from limbeck.methods.graphical.network import NetworkModel, NetworkRows
from limbeck.methods.mosaic.keeping import most_unique, numbered
from limbeck.methods.mosaic.model import Rows, TableModel
from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.conditions import Conditions, read_conditions
from limbeck.release.drawing import Drawn, checked_count, gathered, none_fits, seed_of

MADE_AT_ONCE = 100_000  # rows; fixed, because what is drawn depends on it
MOST_BALANCED = 100_000  # rows whose labels are made to add up
LEAST_MASS = 1e-6  # share of a model's rows below which it says nothing but its own noise


@dataclass(frozen=True, eq=False)
class TableGenerator:
    """A released model of a table read back, and what its release says. shares: of the classes, as the set has them."""

    model: TableModel | NetworkModel
    shares: tuple[int, ...]
    certificate: Certificate
    schema: Schema

    @property
    def spec(self) -> TableSpec | GraphSpec:
        return self.model.spec

    @property
    def fitted(self) -> int:
        """How many fixed latents it was trained on: a mixture has none."""
        return 0

    def sample(self, count: int, seed: int = 0, label: str | None = None, where: Sequence[str] = ()) -> Drawn:
        """`count` rows, encoded, and their class indices: in the model's own shares, all of the class named `label`, or those
        that keep to every condition of `where`, such as "age>60".

        Guarantee: reads nothing but the release, so it costs no budget. The same arguments give the same rows, and every row
        keeps to the conditions when it is decoded.
        """
        conditions = read_conditions(where, self.schema, label)
        count, rng = checked_count(count), np.random.default_rng(seed_of(seed))
        most = most_unique(self.schema)
        if most is not None and count > most:
            raise BadInput(
                f"{count} rows cannot have different values: a unique column has {most}. Ask for --count {most}."
            )
        rows = self._rows(conditions)
        balance = count <= MOST_BALANCED

        def draw(most: int) -> Drawn:
            return rows.drawn(most, rng, balance)

        x, y = gathered(count, self.schema.shape, draw, conditions, MADE_AT_ONCE)
        return numbered(x, self.schema, rng), y

    def _rows(self, conditions: Conditions) -> Rows | NetworkRows:
        wanted = conditions.classes()
        if not wanted.any():
            raise none_fits(conditions, "no class does")
        # Without a model of the label, classes come in the shares of the set.
        counts = np.array(np.ones(len(wanted)) if self.model.says_classes else self.shares, dtype=np.float64)
        classes = np.where(wanted, counts if counts[wanted].any() else 1.0, 0.0)
        rows = self.model.rows(conditions.limits(), classes)
        if not rows.mass >= LEAST_MASS:
            raise none_fits(conditions, f"by the model {rows.mass:.1g} of all rows do")
        return rows
