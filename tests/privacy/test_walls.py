"""Who may import what, who may read records, and what never runs: read off the source, not off its behaviour."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import limbeck

ROOT = Path(limbeck.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
METHOD_FILES = sorted((ROOT / "methods").rglob("*.py"))

MAY_BE_IMPORTED_BY_METHODS = (
    "privacy.schema",
    "privacy.column",
    "privacy.condition",
    "privacy.rules",
    "privacy.values",
    "privacy.witness",
    "privacy.queries",
    "privacy.numbers",
    "nets",
    "vault.api",
    "errors",
    "methods",
)
# The last one is a source itself: a site's part of another source, loaded when that site's vault asks.
MAY_LOAD_RECORDS = ("vault/", "data/", "evaluate/", "runs/condense.py", "runs/estimator.py", "federated/splits.py")
# The others make tokens for a web page, and what a machine's own processes know each other by; neither meets a record.
MAY_DRAW_SECRETS = ("vault/", "serve/access.py", "federated/identities.py")


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions; names imported from a package are modules or its own."""
    package = ("limbeck", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            if module == "limbeck":
                yield from (f"limbeck.{alias.name}" for alias in node.names)


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call with its dotted name, such as np.load; '?' where the left side is no plain name."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"


@pytest.mark.parametrize("path", METHOD_FILES, ids=place)
def test_a_method_sees_the_language_of_the_walls_and_nothing_behind_it(path: Path) -> None:
    allowed = [f"limbeck.{name}" for name in MAY_BE_IMPORTED_BY_METHODS]
    for module in imported(path):
        if module.split(".")[0] == "limbeck":
            assert any(module == name or module.startswith(f"{name}.") for name in allowed), module
        assert module.split(".")[0] not in ("importlib", "os", "io", "sys", "pathlib", "sqlite3", "subprocess", "gc"), (
            module
        )


@pytest.mark.parametrize("path", METHOD_FILES, ids=place)
def test_a_method_opens_no_file_and_runs_no_text(path: Path) -> None:
    for name, _ in calls(path):
        assert name not in ("open", "eval", "exec", "compile", "__import__", "globals", "vars"), name
        assert not name.endswith((".load", ".read_bytes", ".read_text", ".open")), name


@pytest.mark.parametrize("path", [path for path in FILES if not place(path).startswith(MAY_LOAD_RECORDS)], ids=place)
def test_only_vault_readers_and_joints_load_records(path: Path) -> None:
    for name, _ in calls(path):
        if name.split(".")[-1] == "load":
            assert name == "np.load", f"{place(path)} calls {name}"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_nothing_is_unpickled(path: Path) -> None:
    roots = {module.split(".")[0] for module in imported(path)}
    assert not roots & {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    for name, call in calls(path):
        assert name not in ("torch.load", "np.loadtxt", "np.memmap", "pd.read_pickle", "eval", "exec"), name
        if name in ("np.load", "numpy.load"):
            chosen = {word.arg: word.value for word in call.keywords}
            assert isinstance(chosen.get("allow_pickle"), ast.Constant) and chosen["allow_pickle"].value is False


@pytest.mark.parametrize("path", FILES, ids=place)
def test_secret_randomness_is_drawn_in_the_vault_only(path: Path) -> None:
    for name, _ in calls(path):
        if name in ("SecretStream", "os.urandom", "poisson_sample") or name.startswith("secrets."):
            assert place(path).startswith(MAY_DRAW_SECRETS), f"{place(path)} calls {name}"


@pytest.mark.parametrize("path", [path for path in FILES if place(path).startswith("vault/")], ids=place)
def test_the_vault_uses_no_seedable_generator_for_noise_or_masks(path: Path) -> None:
    for name, _ in calls(path):
        assert not name.startswith(("random.", "np.random.", "torch.randn", "torch.normal", "torch.bernoulli")), name


def test_the_vault_does_not_know_the_methods() -> None:
    for path in FILES:
        if place(path).startswith("vault/"):
            behind = ("limbeck.methods", "limbeck.release", "limbeck.runs", "limbeck.cli", "limbeck.report")
            assert not [module for module in imported(path) if module.startswith(behind)]


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 40 and len(METHOD_FILES) >= 6


def test_the_public_names_are_these() -> None:
    """Pinned: what stands here is a promise to users."""
    from limbeck import api

    assert sorted(limbeck.__all__) == [
        "Certificate", "Column", "Condenser", "Evaluation", "Ledger", "LimbeckError", "LocalVault", "Plan", "Schema", "budget",
        "condense", "distil", "draft", "load", "load_generator", "load_model", "make_plan", "open_source", "plan", "resume",
        "sample", "set_budget", "verify",
    ]  # fmt: skip
    assert set(api.__all__) == {*limbeck.__all__, "evaluate"}
    for name in limbeck.__all__:
        assert getattr(limbeck, name) is getattr(api, name)
        assert getattr(limbeck, name).__module__.startswith("limbeck.")
    with pytest.raises(AttributeError):
        _ = limbeck.records
