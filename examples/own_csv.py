"""A table of your own, from a CSV file to a release that may be shared. Takes about a minute.

python examples/own_csv.py [FOLDER]
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import limbeck
from limbeck.api import evaluate

TOWNS = ("north", "south", "isle")


def write_people(path: Path, count: int) -> None:
    """A made-up registry, so that this program runs anywhere; put your own file in its place."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "visits", "town", "ill"])
        for place in range(count):
            age, visits = 20 + place * 7 % 60, place * 5 % 9
            ill = "yes" if age + 6 * visits + place % 17 > 75 else "no"
            rows.writerow([age, visits, TOWNS[place % 3], ill])


def limbeck_command(*words: str | Path) -> str:
    """What you would type, by the Python that runs this."""
    command = [sys.executable, "-m", "limbeck", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table, schema = folder / "people.csv", folder / "people.csv.limbeck.toml"
    write_people(table, 3000)
    write_people(folder / "test.csv", 500)

    # What is public? A draft reads it off the records, so every entry waits for your word in its list `unconfirmed`.
    limbeck_command("schema", "draft", table, "--label", "ill", "--out", schema)
    drafted = schema.read_text(encoding="utf-8")
    print(drafted)
    # You would look at each entry and widen what is only known from the records; here the registry's form prints all of them.
    schema.write_text(re.sub(r"(?ms)^unconfirmed = \[.*?\]$", "unconfirmed = []", drafted), encoding="utf-8")

    # What will it cost? Nothing is read or booked by asking.
    quote = limbeck.plan(table, epsilon=1.0, rows=500)
    print(f"it will cost epsilon {quote.plan.price.epsilon} by {quote.plan.method}")

    # Fewer steps than usual, for the sake of this example; leave `settings` out for a set of your own.
    quick = {"T": 60, "components": 40, "search": 0}
    release = limbeck.condense(table, folder / "release", epsilon=1.0, rows=500, settings=quick).release
    print(f"verified: epsilon {limbeck.verify(release).epsilon}, rows {len(limbeck.load(release).y)}")
    scores = evaluate(release, folder / "test.csv", models=["logistic-reg"], repeats=1)
    print(f"accuracy of a model of the synthetic rows alone: {scores.means['logistic-reg']:.1f} %")
    print(f"report: {release / 'report.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "limbeck-own-csv"))
