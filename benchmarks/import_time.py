"""How long `import limbeck` and `limbeck --help` take in a fresh interpreter, the best of several.

python -m benchmarks.import_time [--times 5]

Processor time, not wall time: other work on the machine adds little to it. The interpreter's own start is part of each, and
shown beside. `tests/test_package.py` checks what is imported, which does not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

RESULT = Path(__file__).parent / "results" / "import_time.json"
COMMANDS = {
    "python": ("-c", "pass"),
    "import_limbeck": ("-c", "import limbeck"),
    "limbeck_help": ("-m", "limbeck", "--help"),
}


def seconds(words: tuple[str, ...]) -> float:
    """Processor time of one child, user and system."""
    before = os.times()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    best = {name: round(min(seconds(words) for _ in range(times)), 3) for name, words in COMMANDS.items()}
    result = {"command": f"python -m benchmarks.import_time --times {times}", "seconds": best}
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
