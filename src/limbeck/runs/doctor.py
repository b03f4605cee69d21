"""Is this machine ready? What is installed, what it computes with, and whether the ledger can be read. Changes nothing."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from limbeck.errors import LedgerFault, LimbeckError
from limbeck.nets.kernels import self_test
from limbeck.nets.kernels.hardware import has_fast_bfloat16
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import default_path, may_exist, shown

PACKAGES = ("limbeck", "torch", "numpy", "scipy", "dp-accounting", "pyarrow", "scikit-learn", "cryptography")
# By the extra of `pip install 'limbeck[...]'`: the modules that it brings, and what is missing without it.
EXTRAS = {
    "frames": (("pandas", "polars"), "frames of pandas and polars in Python"),
    "xgboost": (("xgboost",), "XGBoost among the models that score a table; scikit-learn's boosted trees stand in"),
    "huggingface": (
        ("datasets", "huggingface_hub"),
        "Datasets of Hugging Face in Python, and uploads by 'limbeck publish'",
    ),
    "federated": (("flwr",), "sets of several owners over a network"),
    "postgres": (("psycopg",), "a ledger on a PostgreSQL server"),
    "dicom": (("pydicom",), "pictures in DICOM files"),
}
LITTLE_MEMORY = 2e9


@dataclass(frozen=True, kw_only=True)
class Finding:
    """ok: None where it is a fact and nothing that could be wrong. advice: what to type."""

    name: str
    value: str
    ok: bool | None = None
    advice: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "ok": self.ok, "advice": self.advice}


def examine(ledger: Path | None = None) -> tuple[list[Finding], LimbeckError | None]:
    """What was found, and the worst of what is wrong as the error that a run would end with.

    Guarantee: opens the ledger to read; makes and changes no file.
    """
    books, fault = _ledger(default_path() if ledger is None else ledger)
    kernels = _kernels()
    if fault is None and any(found.ok is False for found in kernels):
        fault = LimbeckError("A fast kernel of this machine does not compute what it should; see above.")
    found = [*_versions(), *_machine(), *kernels, *books, _documentation(), *(_extra(name) for name in EXTRAS)]
    return found, fault


def _versions() -> list[Finding]:
    found = [Finding(name="python", value=platform.python_version()), Finding(name="system", value=platform.platform())]
    return [*found, *(Finding(name=name, value=_version(name)) for name in PACKAGES)]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"


def _machine() -> list[Finding]:
    cuda = torch.cuda.is_available()
    device = f"cuda ({torch.cuda.get_device_name()})" if cuda else "cpu"
    free = free_memory()
    is_enough = None if free is None else free >= LITTLE_MEMORY
    advice = "Free some memory: a run of small images takes about 2 GB." if is_enough is False else None
    return [
        Finding(
            name="cores",
            value=str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        ),
        Finding(name="threads", value=str(torch.get_num_threads())),
        Finding(name="device", value=device, advice="Use it with --device cuda." if cuda else None),
        Finding(name="bfloat16", value="fast" if has_fast_bfloat16(torch.device("cpu")) else "not in hardware"),
        Finding(
            name="free memory", value="unknown" if free is None else f"{free / 1e9:.1f} GB", ok=is_enough, advice=advice
        ),
    ]


def free_memory() -> int | None:
    """What the kernel counts as available; None where it does not say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _kernels() -> list[Finding]:
    found = []
    for name, far in self_test.off().items():
        sound = self_test.is_sound(name, far)
        advice = None if sound else "Do not run here; report it with these lines."
        found.append(Finding(name=f"kernel {name}", value=f"off by {far:.1e}", ok=sound, advice=advice))
    return found


def _ledger(path: Path) -> tuple[list[Finding], LimbeckError | None]:
    if not may_exist(path):
        return [Finding(name="ledger", value=f"{shown(path)}: none yet, the first booking makes it")], None
    try:
        with Ledger.open_to_read(path) as book:
            count = len(book.accounts())
    except LimbeckError as error:
        fault = error if isinstance(error, LedgerFault) else LedgerFault(error.message, error.next_command)
        return [
            Finding(name="ledger", value=f"{shown(path)}: {error.message}", ok=False, advice=error.next_command)
        ], fault
    words = f"{shown(path)}: readable, {count} data set{'' if count == 1 else 's'}"
    return [Finding(name="ledger", value=words, ok=True)], None


def _documentation() -> Finding:
    """The pages that came with the package, or those of a checkout."""
    installed, checkout = Path(sys.prefix) / "share" / "doc" / "limbeck", Path(__file__).parents[3]
    place = next((each for each in (installed, checkout) if (each / "docs" / "promise.md").is_file()), None)
    return Finding(name="documentation", value="not installed" if place is None else str(place / "README.md"))


def _extra(name: str) -> Finding:
    modules, purpose = EXTRAS[name]
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if not missing:
        return Finding(name=f"extra {name}", value="installed")
    value = f"not installed ({', '.join(missing)}): {purpose}"
    return Finding(name=f"extra {name}", value=value, advice=f"pip install 'limbeck[{name}]'")
