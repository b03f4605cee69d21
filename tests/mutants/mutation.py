"""One small fault, and how it is tried: a copy of the tree gets it, and the tests that ought to notice it are run there."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
COPIED = ("src", "tests", "pyproject.toml")
PACKAGE = Path("src/limbeck")
SECONDS = 240.0  # for the tests of one mutation
SECONDS_FOR_ALL = 1800.0

KILLED, SURVIVED, EXPLAINED, BROKEN = "killed", "survived", "explained", "broken"
FAILED = 1  # what pytest ends with if a test failed; 2 to 5 mean that the tests did not run

# Every run is a process of its own, forked from one that has the large libraries and nothing of Limbeck: they take longer to
# import than most tests to run.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["torch", "scipy.stats", "dp_accounting.pld", "dp_accounting.rdp", "hypothesis", "pytest"]
)


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A fault that would cost privacy or safety.

    name       short, and no other mutation's
    files      below src/limbeck; the text stands in one of them
    old, new   a text that stands there exactly once, and what stands there instead
    tests      files or node ids, from tests/ on, of which at least one has to fail
    why        what would be wrong
    explained  why no test can notice it, where none can; such a mutation may survive
    """

    name: str
    files: tuple[str, ...]
    old: str
    new: str
    tests: tuple[str, ...]
    why: str
    explained: str = ""

    def place(self, package: Path) -> Path:
        """The file that the fault is put into."""
        counts = {path: path.read_text().count(self.old) for path in (package / file for file in self.files)}
        if sum(counts.values()) != 1 or self.old == self.new:
            files = ", ".join(self.files)
            raise ValueError(f"{self.name} does not apply: {self.old!r} stands {sum(counts.values())} times in {files}")
        return next(path for path, count in counts.items() if count)

    def applied(self, text: str) -> str:
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    name: str
    result: str
    seconds: float
    said: str  # the test that failed, or what went wrong


def _pytest(folder: Path, tests: tuple[str, ...], keep_bytecode: bool, said: Any) -> None:
    """In a process of its own."""
    handle = said.detach()
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.chdir(folder)
    code = str(folder / "src")
    sys.path[:] = [code, str(folder), *(path for path in sys.path if path != str(Path(__file__).parent))]
    sys.argv = ["pytest"]
    # For the processes that tests start.
    os.environ["PYTHONPATH"] = os.pathsep.join([code, str(folder)])
    if not keep_bytecode:  # a mutant's must not outlive it
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    import pytest

    import limbeck

    assert limbeck.__file__ is not None and limbeck.__file__.startswith(code), "limbeck comes from somewhere else"
    options = ["-x", "-q", "-rf", "--no-header", "-p", "no:cacheprovider"]
    sys.exit(pytest.main([*options, *(f"tests/{test}" for test in tests)]))


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
        return self.run(tests, SECONDS_FOR_ALL, keep_bytecode=True) if tests else (0, "")

    def run(self, tests: tuple[str, ...], seconds: float, *, keep_bytecode: bool = False) -> tuple[int, str]:
        """Pytest's code, and the first test that failed or the last line of what it said."""
        with tempfile.TemporaryFile("w+") as said:
            process = PROCESSES.Process(target=_pytest, args=(self.folder, tests, keep_bytecode, DupFd(said.fileno())))
            process.start()
            process.join(seconds)
            if process.is_alive():
                process.kill()
                process.join()
                raise TimeoutError(f"its tests took longer than {seconds:g} seconds")
            said.seek(0)
            text = said.read()
        failed = re.search(r"^FAILED (.+?)(?: - |$)", text, re.MULTILINE)
        lines = text.strip().splitlines()
        assert process.exitcode is not None
        return process.exitcode, failed.group(1) if failed else lines[-1] if lines else ""

    def tried(self, mutation: Mutation) -> Outcome:
        began = time.monotonic()

        def outcome(result: str, said: str) -> Outcome:
            return Outcome(mutation.name, result, round(time.monotonic() - began, 1), said)

        try:
            path = mutation.place(self.folder / PACKAGE)
            text = path.read_text()
            changed = mutation.applied(text)
        except (OSError, ValueError) as error:
            return outcome(BROKEN, str(error))
        times = path.stat().st_atime, path.stat().st_mtime
        try:
            path.write_text(changed)
            code, said = self.run(mutation.tests, SECONDS)
        except TimeoutError as error:
            return outcome(BROKEN, str(error))
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
    """Mutations of one file, or of several that are read together, one to a call: name, old, new, why, tests."""

    files: tuple[str, ...]

    def __init__(self, *files: str) -> None:
        object.__setattr__(self, "files", files)

    def __call__(self, name: str, old: str, new: str, why: str, *tests: str, explained: str = "") -> Mutation:
        return Mutation(name=name, files=self.files, old=old, new=new, why=why, tests=tests, explained=explained)
