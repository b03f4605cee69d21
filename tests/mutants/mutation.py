"""One small fault, and how it is tried: a copy of the tree gets it, and the tests that ought to notice it are run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
COPIED = ("src", "tests", "pyproject.toml")
PACKAGE = Path("src/limbeck")
SECONDS = 240.0  # for the tests of one mutation
SECONDS_FOR_ALL = 1800.0

KILLED, SURVIVED, EXPLAINED, BROKEN = "killed", "survived", "explained", "broken"
FAILED = 1  # what pytest ends with if a test failed; 2 to 5 mean that the tests did not run


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A fault that would cost privacy or safety.

    name       short, and no other mutation's
    file       below src/limbeck
    old, new   a text that stands in the file exactly once, and what stands there instead
    tests      files or node ids, from tests/ on, of which at least one has to fail
    why        what would be wrong
    explained  why no test can notice it, where none can; such a mutation may survive
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str
    explained: str = ""

    def applied(self, text: str) -> str:
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise ValueError(f"{self.name} does not apply: {self.old!r} stands {found} times in {self.file}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    name: str
    result: str
    seconds: float
    said: str  # the test that failed, or what went wrong


class Tree:
    """A copy of what the tests need, in which one mutation at a time is made."""

    def __init__(self, folder: Path, source: Path = REPOSITORY) -> None:
        self.folder = folder
        for name in COPIED:
            if (source / name).is_dir():
                shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source / name, folder / name)

    def unchanged(self, tests: tuple[str, ...]) -> tuple[int, str]:
        """A test that fails anyway would kill every mutant. This also leaves the bytecode of the whole code behind."""
        if not self.uses_its_own_code():
            return FAILED, "they import limbeck from somewhere else"
        return self.run(tests, SECONDS_FOR_ALL, keep_bytecode=True) if tests else (0, "")

    def run(self, tests: tuple[str, ...], seconds: float, *, keep_bytecode: bool = False) -> tuple[int, str]:
        """Pytest's code, and the first test that failed or the last line of what it said."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder / "src"), str(self.folder)]),
            "OMP_NUM_THREADS": "1",
        }
        if not keep_bytecode:  # a mutant's must not outlive it
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        paths = [f"tests/{test}" for test in tests]
        options = ["-x", "-q", "-rf", "--no-header", "-p", "no:cacheprovider"]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *paths],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        failed = re.search(r"^FAILED (\S+)", ended.stdout, re.MULTILINE)
        lines = (ended.stdout + ended.stderr).strip().splitlines()
        return ended.returncode, failed.group(1) if failed else lines[-1] if lines else ""

    def uses_its_own_code(self) -> bool:
        """Whether a test in here imports the copy and not an installed package."""
        ended = subprocess.run(
            [sys.executable, "-c", "import limbeck; print(limbeck.__file__)"],
            env={**os.environ, "PYTHONPATH": str(self.folder / "src")},
            capture_output=True,
            text=True,
        )
        return Path(ended.stdout.strip()).is_relative_to(self.folder)

    def tried(self, mutation: Mutation) -> Outcome:
        began, path = time.monotonic(), self.folder / PACKAGE / mutation.file

        def outcome(result: str, said: str) -> Outcome:
            return Outcome(mutation.name, result, round(time.monotonic() - began, 1), said)

        try:
            text = path.read_text()
            changed = mutation.applied(text)
        except (OSError, ValueError) as error:
            return outcome(BROKEN, str(error))
        times = path.stat().st_atime, path.stat().st_mtime
        try:
            path.write_text(changed)
            code, said = self.run(mutation.tests, SECONDS)
        except subprocess.TimeoutExpired:
            return outcome(BROKEN, f"its tests took longer than {SECONDS:g} seconds")
        finally:
            path.write_text(text)
            os.utime(path, times)  # so that the bytecode of the whole file is good again
        if code == FAILED:
            return outcome(KILLED, said)
        if code != 0:
            return outcome(BROKEN, f"pytest ended with {code}: {said}")
        return outcome(EXPLAINED, mutation.explained) if mutation.explained else outcome(SURVIVED, mutation.why)


@dataclass(frozen=True)
class Faults:
    """Mutations of one file, one to a call: name, old, new, why, tests."""

    file: str

    def __call__(self, name: str, old: str, new: str, why: str, *tests: str, explained: str = "") -> Mutation:
        return Mutation(name=name, file=self.file, old=old, new=new, why=why, tests=tests, explained=explained)
