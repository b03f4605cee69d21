"""Score a released model on real test records. Nothing is trained: the model is what it is."""

from __future__ import annotations

from pathlib import Path

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.compatible import MODEL, require_compatible
from limbeck.evaluate.downstream import accuracy
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.labelled import load_labelled, majority_rate
from limbeck.evaluate.provenance import Provenance
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.unit import stated_unit
from limbeck.release.model import read_model


def evaluate_model(release: Path, test: DataSource, device: str, size: int | None = None) -> Evaluation:
    """One accuracy, of the model itself. The score belongs to whoever owns the test records."""
    if size:
        raise BadInput(f"{release} is a trained model, which sees records as they are; leave size out.")
    found = read_model(release)
    require_compatible(found.schema, test.schema, MODEL)
    records = load_labelled(test, found.schema)
    return Evaluation(
        release=str(release),
        content="model",
        test=test.where,
        test_records=len(records),
        epsilon=finite_or_word(found.certificate.epsilon),
        adjacency=found.certificate.adjacency,
        unit=stated_unit(found.certificate.unit),
        method=found.certificate.method,
        network=found.model.net.to_dict(),
        accuracy={"model": Accuracy.of([accuracy(found.network.to(device), records.x, records.y)])},
        majority_rate=majority_rate(records.y, len(found.schema.classes)),
        provenance=Provenance.of(test=test),
    )
