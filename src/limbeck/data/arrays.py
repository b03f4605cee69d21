"""NumPy archives: an .npz file with the arrays x and y."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from limbeck.data.records import Array, Records, as_records
from limbeck.errors import DataNotFound, DataUnreadable
from limbeck.schema import Schema


def arrays(path: Path) -> tuple[Array, Array]:
    """The arrays x and y as they are stored. Object arrays are refused: unpickling a file runs its code."""
    try:
        with path.open("rb") as file:  # opened here, because np.load leaves a damaged file open
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataUnreadable(f"{path} is a single array; expected an .npz archive with x and y.")
            missing = sorted({"x", "y"} - set(archive.files))
            if missing:
                raise DataUnreadable(
                    f"{path} has no array {' and '.join(missing)}; it holds: {', '.join(archive.files) or 'nothing'}."
                )
            return archive["x"], archive["y"]
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error):
        raise DataUnreadable(f"{path} is not a readable .npz archive of plain numbers.") from None


def read(path: Path, schema: Schema) -> Records:
    x, y = arrays(path)
    return as_records(x, y, schema, str(path))
