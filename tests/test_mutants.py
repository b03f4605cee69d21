"""The list behind `make mutants` has not rotted, and its runner tells a fault that is noticed from one that is not."""

from __future__ import annotations

import ast
import dataclasses
import json
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "tests" / "mutants"))

from listed import MUTATIONS  # noqa: E402
from mutation import BROKEN, EXPLAINED, KILLED, PACKAGE, PROCESSES, SURVIVED, Faults, Mutation, Outcome, Tree  # noqa: E402
from outcomes import read, untried, write  # noqa: E402


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_applies_and_its_tests_are_there(mutation: Mutation) -> None:
    """Whoever changes the line that a mutation is about puts the mutation right as well."""
    mutation.place(REPOSITORY / PACKAGE)
    assert mutation.why and mutation.tests
    for test in mutation.tests:
        file, _, name = test.partition("::")
        tree = ast.parse((REPOSITORY / "tests" / file).read_text())
        assert not name or name in {
            node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }, test


def test_names_are_not_used_twice_and_every_part_of_the_core_is_tried() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 60
    assert len({(mutation.files, mutation.old, mutation.new) for mutation in MUTATIONS}) >= 0.95 * len(MUTATIONS)
    package = REPOSITORY / PACKAGE
    tried = {mutation.place(package).relative_to(package).as_posix() for mutation in MUTATIONS}
    vault = {
        "noise", "rounded_gaussian", "clipped_sums", "sampling", "local",
        "maps/blocks", "maps/base", "maps/bound", "maps/clipped_gradients", "maps/layer_gradients",
        "maps/top_gradient", "maps/residuals", "maps/cells",
        "choices/exponential", "choices/chooser", "choices/marginal_errors",
        "ensemble/votes", "ensemble/critics", "ensemble/ensemble", "ensemble/partition", "ensemble/desk", "ensemble/store",
        "sharded/vault", "sharded/holder", "sharded/shard", "sharded/partial",
        "ledger/book", "ledger/sums", "ledger/rows", "ledger/file", "ledger/tables",
    }  # fmt: skip
    privacy = {"queries", "choice", "bounded_range", "grid", "plan", "accounting", "renyi"}
    release = {"certificate", "statement", "signature", "verification", "writer", "editions"}
    rooms = {"vault": vault, "privacy": privacy, "release": release}
    assert tried >= {f"{room}/{name}.py" for room, names in rooms.items() for name in names}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A package of one function, and a test that looks at one of its results."""
    source = tmp_path / "source"
    (source / PACKAGE).mkdir(parents=True)
    (source / "tests").mkdir()
    (source / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (source / PACKAGE / "__init__.py").write_text("")
    (source / PACKAGE / "double.py").write_text("def double(x):\n    return x + x\n")
    (source / "tests" / "test_double.py").write_text(
        "from limbeck.double import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
    )
    return source


def test_outcomes(small: Path, tmp_path: Path) -> None:
    PROCESSES.set_forkserver_preload(["pytest"])  # more is not needed here
    (tmp_path / "copy").mkdir()
    tree = Tree(tmp_path / "copy", small)
    before = (tree.folder / PACKAGE / "double.py").read_text()
    assert tree.unchanged(("test_double.py",))[0] == 0
    double = Faults("double.py")
    tried = {
        KILLED: double("tripled", "x + x", "x + x + x", "w", "test_double.py"),
        SURVIVED: double("squared", "x + x", "x * x", "w", "test_double.py::test_two"),
        EXPLAINED: double("swapped", "x + x", "2 * x", "w", "test_double.py", explained="it is the same"),
    }
    for result, mutation in tried.items():
        assert tree.tried(mutation).result == result
    assert tree.tried(tried[KILLED]).said == "tests/test_double.py::test_two"
    for wrong in (
        double("gone", "x - x", "x", "w", "test_double.py"),
        double("twice", "x", "y", "w", "test_double.py"),
        double("no-code", "x + x", "x +", "w", "test_double.py"),
        double("no-test", "x + x", "x * x", "w", "test_double.py::test_three"),
        Faults("triple.py")("no-file", "x", "y", "w", "test_double.py"),
    ):
        assert tree.tried(wrong).result == BROKEN, wrong.name
    assert (tree.folder / PACKAGE / "double.py").read_text() == before


def test_what_is_kept_is_of_the_fault_as_it_was(tmp_path: Path) -> None:
    """A fault that was changed since has to be tried again, and one that is gone is forgotten."""
    path, (first, second, third) = tmp_path / "kept.json", MUTATIONS[:3]
    assert untried(MUTATIONS[:3], path) == [first, second, third]
    write(
        path, MUTATIONS[:3], [Outcome(first.name, KILLED, 1.0, "a test"), Outcome(second.name, SURVIVED, 1.0, "")], "c"
    )
    assert untried(MUTATIONS[:3], path) == [third]
    changed = dataclasses.replace(first, new=f"{first.new} ")
    assert untried((changed, second), path) == [changed]
    write(path, (changed, third), [Outcome(third.name, KILLED, 1.0, "a test")], "c")
    assert list(read(path)) == [third.name]
    assert json.loads(path.read_text())["counts"] == {KILLED: 1, EXPLAINED: 0, SURVIVED: 0, BROKEN: 0}


def test_kept_outcomes_are_of_mutations_that_are_there() -> None:
    kept = read(REPOSITORY / "benchmarks" / "results" / "mutants.json")
    assert kept.keys() <= {mutation.name for mutation in MUTATIONS}
    assert {entry["result"] for entry in kept.values()} <= {KILLED, EXPLAINED}
