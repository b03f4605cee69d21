"""The fenced blocks of the documents, and the commands in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGES = sorted([*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")])
FENCED = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(limbeck [^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """language: the word after the fence. title: the file that a reader is to write it into, if any."""

    page: Path
    line: int
    language: str
    title: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def is_shell(self) -> bool:
        return self.language == ""

    @property
    def commands(self) -> list[list[str]]:
        """The words of each line, without remarks."""
        lines = (shlex.split(line, comments=True) for line in self.text.splitlines())
        return [words for words in lines if words]


def blocks(page: Path) -> list[Block]:
    text, found = page.read_text(encoding="utf-8"), []
    for match in FENCED.finditer(text):
        language, _, rest = match[2].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, language, title[1] if title else "", match[3]))
    return found


def inline_commands(page: Path) -> list[str]:
    """Commands in running text, outside of blocks."""
    return INLINE.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
