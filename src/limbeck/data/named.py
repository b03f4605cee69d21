"""The benchmark sets that have a name: their public schemas, sizes and splits.

Class sizes, value ranges and categories are published with each benchmark, so they are declared public here; nothing
in this file is computed from records at run time.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from limbeck.errors import BadInput, did_you_mean
from limbeck.privacy.schema import Column, Schema

ALL_FAMILIES = ("color", "crop", "cutout", "flip", "scale", "rotate")
# A mirrored digit is another sign, so the families for digits leave out the flip.
NO_FLIP = tuple(family for family in ALL_FAMILIES if family != "flip")
DIGITS = tuple("0123456789")
SPLITS = ("train", "test")


@dataclass(frozen=True, kw_only=True)
class NamedSet:
    """A benchmark set. `storage` names the files it is read from; variants of a schema share them."""

    schema: Schema
    test_sizes: tuple[int, ...]
    storage: str
    title: str

    def schema_of(self, split: str) -> Schema:
        """The schema of a split. The name stays: both splits spend from one budget, the cautious reading."""
        if split == "train":
            return self.schema
        return dataclasses.replace(self.schema, records=sum(self.test_sizes), class_sizes=self.test_sizes)

    def size_of(self, split: str) -> int:
        return self.schema_of(split).records


def _numeric(name: str, low: int, high: int) -> Column:
    return Column(name=name, low=low, high=high, integer=True)


def _categorical(name: str, categories: str) -> Column:
    return Column(name=name, categories=tuple(categories.split()))


# Ranges and categories after the UCI documentation; fnlwgt and capital-loss, which it leaves open, have round ranges.
ADULT_COLUMNS = (
    _numeric("age", 17, 90),
    _categorical(
        "workclass",
        "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    ),
    _numeric("fnlwgt", 10_000, 1_500_000),
    _categorical(
        "education",
        "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm Bachelors "
        "Masters Prof-school Doctorate",
    ),
    _numeric("education-num", 1, 16),
    _categorical(
        "marital-status",
        "Never-married Married-civ-spouse Married-AF-spouse Married-spouse-absent Separated Divorced Widowed",
    ),
    _categorical(
        "occupation",
        "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
        "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
        "Transport-moving",
    ),
    _categorical("relationship", "Husband Wife Own-child Other-relative Not-in-family Unmarried"),
    _categorical("race", "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White"),
    _categorical("sex", "Female Male"),
    _numeric("capital-gain", 0, 99_999),
    _numeric("capital-loss", 0, 5_000),
    _numeric("hours-per-week", 1, 99),
    _categorical(
        "native-country",
        "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany Greece "
        "Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico "
        "Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South Taiwan "
        "Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
    ),
)
# The 14 numbers per record that the papers' 14 x 64 extractor for tables takes.
ADULT_ORDINAL_COLUMNS = tuple(dataclasses.replace(c, ordinal=not c.numeric) for c in ADULT_COLUMNS)


def _images(
    name: str,
    shape: tuple[int, int, int],
    classes: tuple[str, ...],
    sizes: tuple[int, ...],
    families: tuple[str, ...],
    high: float = 255.0,
) -> Schema:
    return Schema(
        name=name,
        shape=shape,
        classes=classes,
        records=sum(sizes),
        class_sizes=sizes,
        augmentation=families,
        high=high,
        low=0.0,
    )


def _adult(columns: tuple[Column, ...]) -> Schema:
    return Schema(
        name="adult",
        shape=(sum(column.width for column in columns),),
        classes=("<=50K", ">50K"),
        records=32_561,
        class_sizes=(24_720, 7_841),
        low=-1.0,
        high=1.0,
        columns=columns,
        label="income",
        augmentation=(),
    )


# Every fifth record of scikit-learn's set (index % 5 == 0) is the test split.
DIGITS_SIZES = (136, 154, 151, 135, 143, 143, 151, 153, 138, 133)
DIGITS_TEST_SIZES = (42, 28, 26, 48, 38, 39, 30, 26, 36, 47)
MNIST_SIZES = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
MNIST_TEST_SIZES = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

NAMED: dict[str, NamedSet] = {
    "digits": NamedSet(
        schema=_images("digits", (1, 8, 8), DIGITS, DIGITS_SIZES, NO_FLIP, high=16.0),
        test_sizes=DIGITS_TEST_SIZES,
        storage="digits",
        title="8 x 8 handwritten digits that come with scikit-learn",
    ),
    "mnist": NamedSet(
        schema=_images("mnist", (1, 28, 28), DIGITS, MNIST_SIZES, NO_FLIP),
        test_sizes=MNIST_TEST_SIZES,
        storage="mnist",
        title="28 x 28 handwritten digits",
    ),
    "fashion-mnist": NamedSet(
        schema=_images("fashion-mnist", (1, 28, 28), FASHION, (6000,) * 10, ALL_FAMILIES),
        test_sizes=(1000,) * 10,
        storage="fashion-mnist",
        title="28 x 28 pictures of clothes",
    ),
    "cifar10": NamedSet(
        schema=_images("cifar10", (3, 32, 32), CIFAR10, (5000,) * 10, ALL_FAMILIES),
        test_sizes=(1000,) * 10,
        storage="cifar10",
        title="32 x 32 colour pictures of vehicles and animals",
    ),
    "adult": NamedSet(
        schema=_adult(ADULT_COLUMNS),
        test_sizes=(12_435, 3_846),
        storage="adult",
        title="UCI Adult census table, categories one-hot",
    ),
    "adult-ordinal": NamedSet(
        schema=_adult(ADULT_ORDINAL_COLUMNS),
        test_sizes=(12_435, 3_846),
        storage="adult",
        title="UCI Adult census table, 14 numbers per record",
    ),
}


def named_set(name: str) -> NamedSet:
    if name not in NAMED:
        hint = did_you_mean(name, NAMED)
        raise BadInput(f"'{name}' is not a named set.{hint} Known are: {', '.join(NAMED)}.", "limbeck data list")
    return NAMED[name]
