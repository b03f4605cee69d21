"""A schema's file: TOML, of a size that a schema may have."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, DataNotFound

MOST_FILE_BYTES = 1 << 22
MOST_DOTS = 200


def read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_FILE_BYTES + 1)
    except OSError:
        raise DataNotFound(f"There is no readable schema file at {path}.") from None
    if len(content) > MOST_FILE_BYTES:
        raise BadInput(f"{path} is no schema: it has more than {MOST_FILE_BYTES} bytes.")
    return _parsed(content, path)


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    # The parser's time grows with the square of a dotted key's length: one line of a megabyte would take hours.
    if any(line.count(b".") > MOST_DOTS for line in content.split(b"\n")):
        raise BadInput(
            f"{path} has a line with more than {MOST_DOTS} dots; write each entry of a list on its own line."
        )
    try:
        return tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        raise BadInput(f"{path} is not a valid TOML file: it is nested too deeply.") from None
    except ValueError as error:
        # Of the parser's words only the place is repeated: whoever gives the data file here by mistake gave a record.
        place = re.search(r"line \d+, column \d+", str(error))
        where = f" at {place[0]}" if place else ""
        raise BadInput(f"{path} is not a valid TOML file{where}.") from None
