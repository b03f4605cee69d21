"""A hospital with 300 pictures in two classes: it is warned, rehearses, and learns what it would need. Books nothing.

python examples/hospital.py [FOLDER]
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

# What the hospital declares public. The pictures here are noise; the forecast and the rehearsal never look at them.
SCHEMA = """name = "skin"
shape = [3, 32, 32]
classes = ["benign", "malignant"]
records = 300
low = 0
high = 255
augmentation = ["flip", "crop"]
"""


def limbeck(*words: object) -> dict[str, Any]:
    """The JSON object of one command."""
    command = [sys.executable, "-m", "limbeck", *map(str, words), "--json"]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data, ledger = folder / "skin.npz", folder / "ledger.sqlite"
    x = np.random.default_rng(0).integers(0, 256, (300, 3, 32, 32), dtype=np.uint8)
    np.savez(data, x=x, y=np.arange(300) % 2)
    (folder / "skin.npz.limbeck.toml").write_text(SCHEMA)
    limbeck("budget", "set", "skin", "--epsilon", 2, "--delta", "1e-5", "--ledger", ledger)

    planned = limbeck("plan", data, "--epsilon", 1, "--ledger", ledger)
    forecast = planned["forecast"]
    print(f"forecast: {forecast['accuracy']} % ({forecast['accuracy_low']} to {forecast['accuracy_high']})")
    print(f"warning: {forecast['warning']}")
    print(f"left of the budget afterwards: {forecast['remaining_after']}")

    tried = limbeck("rehearse", data, "--vary", "epsilon=1,8", "--out", folder / "rehearsal")
    for each in tried["attempts"]:
        print(f"rehearsed at epsilon {each['epsilon']}: {each['accuracy']} % in {each['seconds']:.0f} seconds")
    print(f"booked: {tried['booked']}; spent: {limbeck('budget', 'show', 'skin', '--ledger', ledger)['spent_epsilon']}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "limbeck-hospital"))
