"""The result of `limbeck fidelity`: a frozen value with one writer and one reader. It is the owner's, and in no release."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from limbeck.evaluate.inception_score import InceptionScore
from limbeck.evaluate.neighbours import Memorisation, PrecisionRecall
from limbeck.evaluate.reading import mapping, number, stated, text, whole
from limbeck.evaluate.table_marginals import TableMarginals
from limbeck.release.editions import OWNER

T = TypeVar("T", InceptionScore, PrecisionRecall)


@dataclass(frozen=True, kw_only=True)
class Closeness:
    """How close some records are to the real test records, by the features of the reference classifier."""

    inception_score: InceptionScore | None
    frechet_classifier_distance: float | None
    precision_recall: PrecisionRecall | None

    @property
    def mean_inception_score(self) -> float | None:
        return None if self.inception_score is None else self.inception_score.mean

    @property
    def precision(self) -> float | None:
        return None if self.precision_recall is None else self.precision_recall.precision

    @property
    def recall(self) -> float | None:
        return None if self.precision_recall is None else self.precision_recall.recall

    @classmethod
    def from_dict(cls, value: object) -> Closeness:
        values = mapping(value)
        return cls(
            inception_score=_numbers(InceptionScore, values.get("inception_score")),
            frechet_classifier_distance=number(values.get("frechet_classifier_distance")),
            precision_recall=_numbers(PrecisionRecall, values.get("precision_recall")),
        )


@dataclass(frozen=True, kw_only=True)
class Fid:
    """Of the set and of as many real training records, with Inception-v3; which weights were used."""

    set: float | None
    real_train: float | None
    weights: str | None
    weights_sha256: str | None

    @classmethod
    def from_dict(cls, value: object) -> Fid | None:
        if not isinstance(value, Mapping):
            return None
        return cls(
            set=number(value.get("set")),
            real_train=number(value.get("real_train")),
            weights=text(value.get("weights")),
            weights_sha256=text(value.get("weights_sha256")),
        )


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The reference classifier: its spec, how long it was trained, whether it came from the cache, and its accuracy."""

    spec: Mapping[str, Any]
    epochs: int | None
    kept: bool | None
    test_accuracy: float | None

    def to_dict(self) -> dict[str, Any]:
        facts = {"epochs": self.epochs, "kept": self.kept, "test_accuracy": self.test_accuracy}
        return {**self.spec, **facts}

    @classmethod
    def from_dict(cls, value: object) -> Reference:
        values = dict(mapping(value))
        epochs, kept = whole(values.pop("epochs", None)), values.pop("kept", None)
        return cls(
            epochs=epochs,
            kept=kept if isinstance(kept, bool) else None,
            test_accuracy=number(values.pop("test_accuracy", None)),
            spec=values,
        )


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """How close a set is to the real records, beside as many real training records; and whether it repeats any.

    public_benchmark: whether train and test are public. marginals: of a table with columns, measured on its decoded rows.
    In a file anything may be missing: it is None then.
    """

    release: str | None
    method: str | None
    epsilon: float | str | None
    adjacency: str | None
    unit: str | None
    train: str | None
    test: str | None
    public_benchmark: bool
    records: int | str | None
    test_records: int | None
    reference: Reference
    set: Closeness
    real_train: Closeness
    real_test: InceptionScore | None
    fid: Fid | None
    nearest: Memorisation | None
    test_to_train_distance: Mapping[str, float] | None
    marginals: TableMarginals | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `limbeck fidelity --json`."""
        return {
            "edition": OWNER,
            "release": self.release,
            "method": self.method,
            "epsilon": self.epsilon,
            "adjacency": self.adjacency,
            **({} if self.unit is None else {"unit": self.unit}),
            "train": self.train,
            "test": self.test,
            "public_benchmark": self.public_benchmark,
            "records": self.records,
            "test_records": self.test_records,
            "judge": self.reference.to_dict(),
            "set": asdict(self.set),
            "real_train": asdict(self.real_train),
            "real_test": {"inception_score": None if self.real_test is None else asdict(self.real_test)},
            "fid": None if self.fid is None else asdict(self.fid),
            "nearest": None if self.nearest is None else self._nearest(self.nearest),
            **({} if self.marginals is None else {"marginals": self.marginals.to_dict()}),
        }

    def _nearest(self, nearest: Memorisation) -> dict[str, Any]:
        distance = self.test_to_train_distance
        return {**asdict(nearest), "test_to_train_distance": None if distance is None else dict(distance)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Fidelity:
        """Reads what it finds; a figure that is no number is none."""
        nearest = values.get("nearest")
        return cls(
            release=text(values.get("release")),
            method=stated(values, "method"),
            epsilon=stated(values, "epsilon"),
            adjacency=text(values.get("adjacency")),
            unit=text(values.get("unit")),
            train=text(values.get("train")),
            test=text(values.get("test")),
            public_benchmark=values.get("public_benchmark") is True,
            records=stated(values, "records"),
            test_records=whole(values.get("test_records")),
            reference=Reference.from_dict(values.get("judge")),
            set=Closeness.from_dict(values.get("set")),
            real_train=Closeness.from_dict(values.get("real_train")),
            real_test=_numbers(InceptionScore, mapping(values.get("real_test")).get("inception_score")),
            fid=Fid.from_dict(values.get("fid")),
            nearest=_memorisation(nearest) if isinstance(nearest, Mapping) else None,
            test_to_train_distance=_distance(mapping(nearest).get("test_to_train_distance")),
            marginals=TableMarginals.from_dict(values.get("marginals")),
        )


def _numbers(kind: type[T], value: object) -> T | None:
    """A value whose fields are all numbers."""
    if not isinstance(value, Mapping):
        return None
    return kind(**{field.name: number(value.get(field.name)) for field in dataclasses.fields(kind)})


def _memorisation(values: Mapping[str, Any]) -> Memorisation:
    return Memorisation(
        train_records=whole(values.get("train_records")),
        heldout_records=whole(values.get("heldout_records")),
        neighbours=whole(values.get("neighbours")),
        from_train=whole(values.get("from_train")),
        expected=number(values.get("expected")),
        p_value=number(values.get("p_value")),
        copies=whole(values.get("copies")),
        heldout_copies=whole(values.get("heldout_copies")),
        suspicious=bool(values.get("suspicious")),
        train_distance=_distance(values.get("train_distance")),
        heldout_distance=_distance(values.get("heldout_distance")),
    )


def _distance(value: object) -> dict[str, float] | None:
    if not isinstance(value, Mapping):
        return None
    return {str(name): number(each) for name, each in value.items() if number(each) is not None}
