"""A folder of DICOM files: made with pydicom, drafted, its range chosen, condensed, verified, evaluated.

python examples/dicom/run.py [FOLDER]       under a minute; needs pip install 'limbeck[dicom]'

The files are phantoms, no person's: a round body with a bright nodule, or without one, at 12 bits, with rescale slope and
intercept as of a CT; every third one is stored inverted (MONOCHROME1), and sizes differ. Every step is the
command that you would type.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

COUNT = 600
CLASSES = ("clear", "nodule")
LOW, HIGH = -200, 400  # the window that matters here, in Hounsfield units: public, and chosen by whoever knows the task


def main(folder: Path, count: int) -> dict[str, float]:
    data, test = folder / "scans", folder / "test"
    if not data.exists():
        make_files(data, count, seed=0)
        make_files(test, max(20, count // 5), seed=1)
    schema = folder / "scans.toml"
    if not schema.exists():
        limbeck("schema", "draft", str(data), "--out", str(schema))
        choose(schema)
    # A ledger of its own, so that these stand-ins take nothing from the budget of data of yours that has the same name.
    options = [
        "--schema",
        str(schema),
        "--ledger",
        str(folder / "ledger.sqlite"),
        "--epsilon",
        "5",
        "--per-class",
        "10",
    ]
    limbeck("plan", str(data), *options)
    release = folder / "release"
    limbeck("condense", str(data), *options, "--out", str(release))
    limbeck("verify", str(release))
    said = limbeck("evaluate", str(release), "--test", str(test), "--models", "linear", "--repeats", "1", "--json")
    means = {name: score["mean"] for name, score in json.loads(said)["accuracy"].items()}
    print(f"accuracy on other phantoms: {means}; the report is {release / 'report.html'}")
    return means


def make_files(folder: Path, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for number in range(count):
        label = number % 2
        into = folder / CLASSES[label]
        into.mkdir(parents=True, exist_ok=True)
        write(into / f"{number:04}.dcm", phantom(int(rng.integers(40, 72)), label == 1, rng), inverted=number % 3 == 0)


def phantom(side: int, nodule: bool, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Hounsfield units: air, soft tissue, and something dense near the middle."""
    down, across = np.mgrid[:side, :side] / side - 0.5
    values = np.where(down**2 + across**2 < 0.2, 40.0, -1000.0)
    if nodule:
        high, wide = rng.uniform(-0.1, 0.1, 2)
        values[(down - high) ** 2 + (across - wide) ** 2 < 0.015] = 300
    return values + rng.normal(0, 30, values.shape)


def write(path: Path, units: np.ndarray[Any, Any], inverted: bool) -> None:
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset

    stored = (units + 1024).clip(0, 4095).astype(np.uint16)
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    scan = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
    scan.SOPClassUID, scan.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    scan.PatientName = "Phantom"
    scan.Rows, scan.Columns = stored.shape
    scan.SamplesPerPixel, scan.BitsAllocated, scan.BitsStored, scan.HighBit = 1, 16, 12, 11
    scan.PixelRepresentation, scan.RescaleSlope, scan.RescaleIntercept = 0, 1, -1024
    scan.PhotometricInterpretation = "MONOCHROME1" if inverted else "MONOCHROME2"
    scan.PixelData = (4095 - stored if inverted else stored).astype(np.uint16).tobytes()
    scan.save_as(path, enforce_file_format=True)


def choose(schema: Path) -> None:
    """What you would do in an editor: the range, and that the entries are public."""
    text = re.sub(r"unconfirmed = \[.*?\]", "unconfirmed = []", schema.read_text(), flags=re.DOTALL)
    text = re.sub(r"(?m)^low = .*$", f"low = {LOW}", text)
    schema.write_text(re.sub(r"(?m)^high = .*$", f"high = {HIGH}", text))


def limbeck(*words: str) -> str:
    print("$ limbeck", *words, flush=True)
    command = [sys.executable, "-m", "limbeck", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)  # the command has said what is wrong
    print(done.stdout[-1500:], flush=True)
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("limbeck-dicom"))
    parser.add_argument("--count", type=int, default=COUNT)
    given = parser.parse_args()
    if importlib.util.find_spec("pydicom") is None:
        print("This example needs pydicom: pip install 'limbeck[dicom]'")
        sys.exit(0)
    main(given.folder, given.count)
