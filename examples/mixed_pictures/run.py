"""A folder of 1,500 pictures of mixed sizes, modes and formats: made, drafted, planned, condensed, verified, evaluated.

python examples/mixed_pictures/run.py [FOLDER]       some minutes of one core; --answers 2 is a quick look

The pictures are the digits that come with scikit-learn (or CIFAR-10, if it is at hand and --cifar is given), set up to 30 to 90
pixels a side and saved as PNG, JPEG, WebP or TIFF, some in grey, some in colour, some as a camera held upright stores them.
Every step is the command that you would type.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from limbeck.data import open_source

COUNT, TEST = 1500, 300
CLASSES = 3
LYING = 6  # EXIF: turned by 90 degrees


def main(folder: Path, count: int, answers: int | None, cifar: bool) -> dict[str, float]:
    data, test = folder / "pictures", folder / "test"
    if not data.exists():
        make_pictures(data, "cifar10" if cifar else "digits", count, seed=0)
        make_pictures(test, ("cifar10" if cifar else "digits") + ":test", min(count, TEST), seed=1)
    schema = folder / "pictures.toml"
    if not schema.exists():
        limbeck("schema", "draft", str(data), "--out", str(schema))
        confirm(schema)
    settings = [] if answers is None else ["--set", f"T={answers}"]
    # A ledger of its own, so that these stand-ins take nothing from the budget of data of yours that has the same name.
    options = [
        "--schema",
        str(schema),
        "--ledger",
        str(folder / "ledger.sqlite"),
        "--epsilon",
        "10",
        "--per-class",
        "10",
        *settings,
    ]
    limbeck("plan", str(data), *options)
    release = folder / "release"
    limbeck("condense", str(data), *options, "--out", str(release))
    limbeck("verify", str(release))
    said = limbeck("evaluate", str(release), "--test", str(test), "--models", "linear", "--repeats", "1", "--json")
    means = {name: score["mean"] for name, score in json.loads(said)["accuracy"].items()}
    print(f"accuracy on {min(count, TEST)} other pictures: {means}; the report is {release / 'report.html'}")
    return means


def make_pictures(folder: Path, source: str, count: int, seed: int) -> None:
    """As a camera, a scanner and a web site would have left them."""
    rng = random.Random(seed)
    opened = open_source(source)
    records, names = opened.load(), opened.schema.classes
    places = [place for place in range(len(records)) if records.y[place] < CLASSES]
    for number in range(count):
        place = places[number % len(places)]
        values = records.x[place].astype(np.float32) * (255 / opened.schema.high)
        pixels = np.moveaxis(values, 0, -1).astype(np.uint8).squeeze()
        into = folder / names[int(records.y[place])].replace("/", "-")
        into.mkdir(parents=True, exist_ok=True)
        form = rng.choice(("png", "jpg", "webp", "tif"))
        (into / f"{number:04}.{form}").write_bytes(saved(Image.fromarray(pixels), form, rng))


def saved(picture: Image.Image, form: str, rng: random.Random) -> bytes:
    side = rng.randrange(30, 90)
    picture = picture.resize((side, max(30, round(side * rng.uniform(0.9, 1.1)))), Image.Resampling.BICUBIC)
    modes = {
        "png": ("L", "RGB", "RGBA", "P"),
        "jpg": ("L", "RGB", "CMYK"),
        "webp": ("RGB", "RGBA"),
        "tif": ("L", "RGB", "I;16"),
    }
    mode, exif = rng.choice(modes[form]), Image.Exif()
    if mode == "I;16":
        grey = np.asarray(picture.convert("L"), dtype=np.uint16)
        picture = Image.fromarray(grey * 257)
    else:
        picture = picture.convert(mode)
    if form == "jpg" and rng.random() < 0.3:
        exif[0x0112] = LYING
        picture = picture.transpose(Image.Transpose.ROTATE_90)
    buffer = io.BytesIO()
    picture.save(buffer, format={"jpg": "JPEG", "tif": "TIFF"}.get(form, form.upper()), exif=exif)
    return buffer.getvalue()


def confirm(schema: Path) -> None:
    """What you would do in an editor after you have looked at each entry: these pictures are public."""
    schema.write_text(re.sub(r"unconfirmed = \[.*?\]", "unconfirmed = []", schema.read_text(), flags=re.DOTALL))


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
    parser.add_argument("folder", type=Path, nargs="?", default=Path("limbeck-pictures"))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--answers", type=int, help="of networks; default: what Elixir chooses")
    parser.add_argument("--cifar", action="store_true", help="pictures of CIFAR-10 in place of digits")
    given = parser.parse_args()
    main(given.folder, given.count, given.answers, given.cifar)
