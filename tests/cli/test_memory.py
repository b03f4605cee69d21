"""What the process does with memory that it has freed."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT_FAULTS = """
import resource, sys, torch
from limbeck.cli.memory import keep_freed_memory
told = sys.argv[1] == "keep" and keep_freed_memory()

def step():
    kept = [torch.ones(numbers) for numbers in (1_400_000, 350_000, 90_000) * 6]
    return [sum(kept[::3]), sum(kept[1::3])]

for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(int(told), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(word: str) -> tuple[bool, int]:
    said = subprocess.run([sys.executable, "-c", COUNT_FAULTS, word], capture_output=True, text=True, check=True)
    told, count = said.stdout.split()
    return told == "1", int(count)


def test_freed_memory_is_not_mapped_again() -> None:
    told, kept = faults("keep")
    if not told:
        pytest.skip("this C library cannot be told")
    assert 10 * kept < faults("default")[1]
