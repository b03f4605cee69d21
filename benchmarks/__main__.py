"""All speed benchmarks, one after the other. Run them on an otherwise idle machine: `make bench`.

The accuracy figures take hours and have a command of their own: `python -m benchmarks.accuracy`.
"""

from __future__ import annotations

import subprocess
import sys

SPEED = (
    "import_time",
    "ndpdc_step",
    "training_step",
    "psg_step",
    "gswgan_critics",
    "datalens_round",
    "release_time",
)

if __name__ == "__main__":
    for name in SPEED:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
