"""The pages that lead a reader from the first command to the last are walked: every block in order, on small data.

Files that a page tells the reader to write (`title="..."`) are written, programs run in one namespace a page, commands have to
end with 0. What stands in STILL is not run, for the reason beside it;
`test_page_commands.py` holds those commands to what the program understands all the same.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from tests.conftest import Cli
from tests.docs.blocks import DOCS, PAGES, REPOSITORY, Block, blocks
from tests.docs.material import make_all

# Page, and what has to be there before its first block.
STORIES: dict[str, list[str]] = {
    "README.md": [],
    "docs/quickstart.md": [],
    "docs/choose.md": [],
    "docs/pictures.md": [],
    "docs/own-table.md": [],
    "docs/notebook.md": [],
    "docs/for-lawyers.md": ["condense digits --method ldpdc --epsilon 1 --per-class 10 --out release"],
    "docs/python.md": [],
    "docs/report.md": [
        "condense digits --method ldpdc --epsilon 1 --per-class 10 --out release",
        "evaluate release --test digits --models linear --repeats 2 --out scores.json",
    ],
}
# Public sets that are large, or have to be fetched, and the small one that stands in for them.
SMALL = {"mnist": "digits"}
STILL = {
    "docs/architecture.md": "two users of one machine; tests/vault has the second one",
    "docs/data.md": "patients whom nobody has; its schemas are read by test_examples.py, its programs need a generator's release",
    "docs/evaluation.md": "hours: all nineteen models on real sets; tests/evaluate has each of them on small ones",
    "docs/exit-codes.md": "one answer of the program, no command",
    "docs/federated.md": "sites and a network; tests/federated/test_flower.py runs them",
    "docs/flagship.md": "an hour of networks; tests/runs/test_distil.py has a release of small ones",
    "docs/forecast.md": "scans that nobody has; examples/hospital.py walks through plan and rehearse",
    "docs/ledger-server.md": "a PostgreSQL server; tests/vault/test_ledger_server.py has one where there is one",
    "docs/methods.md": "an hour of continual learning; tests/experiments/test_continual.py has a short one",
    "docs/promise.md": "an account in the middle of its life; tests/vault and tests/cli have each of these",
    "docs/scale.md": "several machines; tests/runs/test_ranks.py has two processes",
    "docs/tables.md": "the same walk as own-table.md",
    "CONTRIBUTING.md": "they are the tests themselves",
}


def walked(page: Path, cli: Cli, names: dict[str, object]) -> int:
    steps = 0
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text)
        elif block.language == "python":
            exec(compile(block.text, block.name, "exec"), names)
        elif block.is_shell:
            run(block, cli)
        else:
            continue
        steps += 1
    return steps


def run(block: Block, cli: Cli) -> None:
    for words in block.commands:
        if words[0] != "limbeck":
            continue  # make, pip and the like: test_page_commands.py
        if words[1] in ("serve", "publish"):
            continue  # until somebody stops it, and to the network: tests/serve, tests/release
        arguments = [small(word) for word in words[1:]]
        shown = " ".join(arguments)
        ended = cli(*arguments)
        assert ended.code == 0, f"{block.name}: limbeck {shown}\n{ended.err}"


def small(word: str) -> str:
    """`mnist` and `mnist:test` as the set that stands in for it."""
    name, colon, split = word.partition(":")
    return SMALL.get(name, name) + colon + split


@pytest.mark.slow
@pytest.mark.parametrize("page", STORIES)
def test_a_page_is_walked_from_its_first_command_to_the_last(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    make_all(tmp_path)
    for command in STORIES[page]:
        assert cli(*command.split()).code == 0, command
    with contextlib.chdir(tmp_path):
        assert walked(REPOSITORY / page, cli, {}) > 0


def test_every_page_with_commands_is_walked_or_says_why_not() -> None:
    showing = {
        str(page.relative_to(REPOSITORY))
        for page in PAGES
        if page.name != "CHANGELOG.md" and any(block.is_shell or block.language == "python" for block in blocks(page))
    }
    assert showing <= {*STORIES, *STILL}
    assert not set(STORIES) & set(STILL) and set(STORIES) | set(STILL) <= {
        str(p.relative_to(REPOSITORY)) for p in PAGES
    }
    for reason in STILL.values():
        for named in re.findall(r"tests/[\w/.]+", reason):
            assert (REPOSITORY / named).exists(), named


def test_every_page_of_the_site_is_in_its_menu() -> None:
    menu = (REPOSITORY / "mkdocs.yml").read_text()
    missing = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if str(page.relative_to(DOCS)) not in menu]
    assert missing == []


def test_a_walk_stops_at_a_command_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        '```toml title="made.toml"\nname = "x"\n```\n\n```\nlimbeck verify nowhere   # there is none\n```\n'
    )
    monkeypatch.setattr("tests.docs.test_stories.REPOSITORY", tmp_path)
    monkeypatch.setattr("tests.docs.blocks.REPOSITORY", tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md:5: limbeck verify nowhere"):
        walked(page, cli, {})
    assert (tmp_path / "made.toml").read_text() == 'name = "x"\n'
