from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import working as work
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent

SETTINGS = {"per_class": 2, "L": 10, "sigma": 2.0}


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small release of the digits. Do not change it."""
    root = tmp_path_factory.mktemp("release")
    request = work.asked(ledger=str(root / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, "ldpdc", SETTINGS, None, 1e-5)
    return work.condense(request, plan, source, root / "digits", Silent()).release


def write_schema(path: Path, schema: Schema) -> None:
    lines = [
        f'name = "{schema.name}"',
        f"shape = {list(schema.shape)}",
        f"classes = {list(schema.classes)}",
        f"records = {schema.records}",
        f"low = {schema.low}",
        f"high = {schema.high}",
        "augmentation = []",
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """200 records of 4 numbers in two classes, as own.npz with its schema beside it."""
    path = tmp_path / "own.npz"
    x = np.random.default_rng(0).uniform(0, 1, (200, 4)).astype(np.float32)
    np.savez(path, x=x, y=np.arange(200) % 2)
    write_schema(
        tmp_path / "own.npz.limbeck.toml",
        Schema(name="own", shape=(4,), classes=("a", "b"), records=200, low=0, high=1),
    )
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Ten cats and ten dogs of 8 x 8 grey pixels, as a folder with its schema inside."""
    root = tmp_path / "pets"
    for name in ("cat", "dog"):
        (root / name).mkdir(parents=True)
        for place in range(10):
            Image.fromarray(np.full((8, 8), 10 * place, dtype=np.uint8)).save(root / name / f"{place}.png")
    write_schema(
        tmp_path / "pets.limbeck.toml",
        Schema(name="pets", shape=(1, 8, 8), classes=("cat", "dog"), records=20, low=0, high=255),
    )
    return root


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A CSV file of 40 rows with its schema beside it."""
    path = tmp_path / "people.csv"
    path.write_text("age,buys\n" + "".join(f"{20 + row},{'yes' if row % 2 else 'no'}\n" for row in range(40)))
    (tmp_path / "people.csv.limbeck.toml").write_text(
        'name = "people"\nshape = [1]\nclasses = ["no", "yes"]\nrecords = 40\nlow = -1\nhigh = 1\nlabel = "buys"\n'
        'augmentation = []\n[[columns]]\nname = "age"\nlow = 0\nhigh = 100\n'
    )
    return path
