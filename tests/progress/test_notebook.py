"""A bar in a notebook, and who sees one at all."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from limbeck.progress import Lines, Notebook, Silent, for_people
from limbeck.progress.notebook import in_notebook


class Handle:
    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw and display_id
        self.shown.append(content)
        return self

    def update(self, content: dict[str, str], raw: bool) -> None:
        self.shown.append(content)


def test_one_line_that_is_redrawn(capsys: pytest.CaptureFixture[str]) -> None:
    handle = Handle()
    bar = Notebook(handle.display)
    bar.start("elixir <b>", 4, 0)
    for done in range(1, 5):
        bar.advance(done)
    bar.say("kept")
    assert handle.shown[0]["text/plain"] == "elixir <b>: 0 of 4" and "&lt;b&gt;" in handle.shown[0]["text/html"]
    assert handle.shown[-1]["text/plain"].startswith("elixir <b>: 4 of 4, 0:00:0")
    assert len(handle.shown) == 2 and capsys.readouterr().out == "kept\n"  # what comes too soon is not drawn


class ZMQInteractiveShell:
    pass


class TerminalInteractiveShell:
    pass


@pytest.mark.parametrize(("shell", "expected"), [(ZMQInteractiveShell(), True), (TerminalInteractiveShell(), False)])
def test_a_kernel_is_a_notebook(shell: Any, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=Handle().display))  # type: ignore[arg-type]
    assert in_notebook() is expected
    with for_people() as told:
        assert isinstance(told, Notebook if expected else Silent)


def test_a_script_shows_nothing_unless_asked() -> None:
    with for_people() as quiet, for_people(True) as asked, for_people(False) as never:
        assert isinstance(quiet, Silent) and isinstance(asked, Lines) and isinstance(never, Silent)
