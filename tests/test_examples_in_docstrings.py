"""Every example in a docstring is run, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import shutil
from pathlib import Path

import pytest

import limbeck.api
from layers import modules
from limbeck.progress import Silent
from working import asked, condense, plan_for

WITH_EXAMPLES = [name for name, path in modules().items() if ">>> " in path.read_text(encoding="utf-8")]
SMALL = {
    "ldpdc": {"per_class": 2, "L": 10},
    "dpmerf": {"per_class": 2, "features": 60, "T": 6, "batch": 4},
    "dpsgd": {"T": 6, "B": 40, "net": "mlp", "width": 4, "depth": 2},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples find in their folder: digits-set, digits-generator, digits-model, and the ledger that paid for them."""
    root = tmp_path_factory.mktemp("examples")
    limbeck.api.set_budget("digits", 4.0, 1e-3, ledger=root / "ledger.sqlite")
    for method, name in (("ldpdc", "digits-set"), ("dpmerf", "digits-generator"), ("dpsgd", "digits-model")):
        request = asked(ledger=str(root / "ledger.sqlite"))
        plan, source = plan_for(request.data, method, SMALL[method], 1.0, 1e-5)
        condense(request, plan, source, root / name, Silent())
    return root


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_say_what_happens(name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "digits-" in modules()[name].read_text(encoding="utf-8"):
        shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0 and result.attempted > 0


@pytest.mark.parametrize("name", limbeck.api.__all__)
def test_a_public_name_has_its_arguments_and_an_example(name: str) -> None:
    words = getattr(limbeck.api, name).__doc__
    assert words and ">>> " in words, name
