"""How the sets of an experiment are scored: by which models, how often, on whose records. One way for all experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.compatible import compatible, require_label
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.release import evaluate_release
from limbeck.evaluate.released_model import evaluate_model
from limbeck.evaluate.seen import seen_schema
from limbeck.methods import METHODS
from limbeck.progress import Reporter
from limbeck.release.model import is_model

APART = 1000  # between the seeds of the networks of two sets, so that no two sets are scored by the same networks


@dataclass(frozen=True, kw_only=True)
class Judging:
    """models, preset, networks, size: as in `limbeck evaluate`; None leaves them to the preset, and the size to each release."""

    models: tuple[str, ...] | None = None
    preset: str | None = None
    networks: int | None = None
    size: int | None = None

    def protocol(self, repeat: int = 1, device: str = "cpu") -> EvaluationProtocol:
        return EvaluationProtocol(
            models=self.models,
            preset=self.preset,
            repeats=self.networks,
            seed=APART * (repeat - 1),
            device=device,
            size=self.size,
        )

    def check(self, methods: Sequence[str], source: DataSource, test: DataSource) -> None:
        """Whatever would make a score impossible is said before a set is paid for."""
        if test.where == source.where:
            raise BadInput(f"{test.where} would be trained on and tested on; give other test records by --test.")
        if not compatible(source.schema, test.schema):
            raise BadInput(f"The test records {test.where} have another shape or other classes than {source.where}.")
        require_label(source.schema)  # what is compared is accuracy
        protocol = self.protocol()
        if any(METHODS[name].makes != "model" for name in methods):
            protocol.resolve(seen_schema(test.schema, self.size))
        elif self.models or self.preset or self.networks or self.size:
            which = f"Method '{methods[0]}' makes" if len(methods) == 1 else "These methods make"
            raise BadInput(
                f"{which} models, which are scored themselves; leave --models, --preset, --networks and --size out."
            )


def scores_of(folder: Path, test: DataSource, protocol: EvaluationProtocol, reporter: Reporter) -> Evaluation:
    """Of a released set what models learn from it; of a released model what it knows itself."""
    if is_model(folder):
        return evaluate_model(folder, test, protocol.device)
    return evaluate_release(folder, test, protocol, reporter)
