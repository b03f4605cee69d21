"""Hostile files through the calls that the commands make: `python -m tests.data.fuzz --files 5000`.

Each file goes through `schema draft`, through its schema, and through the reader. Every one of these has to end well or
in a foreseen error with its code, within the limits below, and no error may repeat a value of the data.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fuzz_files

MOST_MEMORY = 2e9
MOST_SECONDS = 20.0


def _reset_peak() -> None:
    with contextlib.suppress(OSError):  # on another system the peak is that of all files so far
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _ended(step: Callable[[], object]) -> dict[str, Any]:
    """How one call ended: well, in a foreseen error, or otherwise, which is a failure."""
    from limbeck.errors import LimbeckError

    try:
        step()
    except LimbeckError as error:
        leak = fuzz_files.CANARY in error.message + str(error.next_command) or "\n" in error.message
        failed = leak or error.exit_code not in (2, 4, 11)
        return {"end": type(error).__name__, "failed": failed, "says": error.message[:300]}
    except Exception as error:
        return {
            "end": "unforeseen",
            "failed": True,
            "says": f"{type(error).__name__}: {traceback.format_exc()[-1500:]}",
        }
    return {"end": "well", "failed": False, "says": ""}


def read_in_pieces(path: Path, schema: Path) -> None:
    """All pieces, and then the whole: where both can be read, they are the same."""
    from limbeck.data import open_source
    from limbeck.data.streams.streamed import first_pass

    source = open_source(str(path), schema_path=schema)
    stream = source.stream()
    if stream is None:
        return
    streamed = first_pass(stream, source.schema, lambda records: None)
    with streamed.reading() as reading:
        found = reading.take(len(streamed))
    held = source.load()
    assert found.x.tobytes() == held.x.tobytes() and found.y.tobytes() == held.y.tobytes()


def tried(number: int) -> dict[str, Any]:
    """Make the file of this number, and read it in every way."""
    from limbeck.data import open_source
    from limbeck.data.draft import draft
    from limbeck.privacy.schema import Schema

    with tempfile.TemporaryDirectory() as name:
        case = fuzz_files.make(number, Path(name))
        drafted = Path(name) / "drafted.toml"

        def read_drafted() -> None:
            if drafted.exists():
                open_source(str(case.path), schema_path=drafted).load()

        steps: dict[str, Callable[[], object]] = {
            "draft": lambda: drafted.write_text(draft(case.path, case.label), encoding="utf-8"),
            "read by the draft": read_drafted,
            "draft by person": lambda: drafted.write_text(draft(case.path, case.label, case.unit), encoding="utf-8"),
            "read by that draft": read_drafted,
            "schema": lambda: Schema.read(case.schema),
            "read": lambda: open_source(str(case.path), schema_path=case.schema).load(),
            "read in pieces": lambda: read_in_pieces(case.path, case.schema),
        }
        _reset_peak()
        began = time.monotonic()
        ends = {step: _ended(call) for step, call in steps.items()}
        return {
            "number": number,
            "kind": case.kind,
            "ends": ends,
            "seconds": time.monotonic() - began,
            "peak": _peak(),
        }


def _child(numbers: Iterator[int]) -> None:
    import warnings

    warnings.simplefilter("ignore")
    os.environ["LIMBECK_MEMORY"] = "1"  # whatever can be read in pieces is
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for number in numbers:
        print(json.dumps({"begins": number}), file=out, flush=True)
        print(json.dumps(tried(number)), file=out, flush=True)


def results(numbers: range) -> Iterator[dict[str, Any]]:
    """Every number tried in a child process. One that dies or hangs takes its file down with it, and no other."""
    left = numbers
    while len(left):
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--child",
            str(left.start),
            str(left.stop),
            str(left.step),
        ]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        current = left.start
        for line in _lines(child):
            values = json.loads(line)
            current = values.get("begins", current)
            if "ends" in values:
                yield values
                left = range(values["number"] + left.step, left.stop, left.step)
        child.kill()
        code = child.wait()
        if len(left) and left.start <= current:
            yield {"number": current, "kind": "?", "ends": {}, "seconds": 0.0, "peak": 0, "died": code}
            left = range(current + left.step, left.stop, left.step)


def _lines(child: subprocess.Popen[str]) -> Iterator[str]:
    assert child.stdout is not None
    with selectors.DefaultSelector() as ready:
        ready.register(child.stdout, selectors.EVENT_READ)
        # Making a file takes time too, and so does starting Python.
        while ready.select(timeout=3 * MOST_SECONDS):
            line = child.stdout.readline()
            if not line:
                return
            yield line


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    failures = [
        values
        for values in found
        if "died" in values
        or any(end["failed"] for end in values["ends"].values())
        or values["seconds"] > MOST_SECONDS
        or values["peak"] > MOST_MEMORY
    ]
    ends: dict[str, Counter[str]] = {}
    for values in found:
        for step, end in values["ends"].items():
            ends.setdefault(step, Counter())[end["end"]] += 1
    return {
        "files": len(found),
        "kinds": dict(Counter(values["kind"] for values in found)),
        "ends": {step: dict(counts) for step, counts in ends.items()},
        "most memory, MB": round(max(values["peak"] for values in found) / 1e6),
        "longest, seconds": round(max(values["seconds"] for values in found), 2),
        "failures": failures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--child", nargs=3, type=int, default=None)
    given = parser.parse_args()
    if given.child:
        _child(iter(range(*given.child)))
        return
    numbers = range(given.first, given.first + given.files)
    found = summary(list(results(numbers)))
    print(json.dumps(found, indent=1))
    sys.exit(1 if found["failures"] else 0)


if __name__ == "__main__":
    main()
