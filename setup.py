"""What `pyproject.toml` cannot say: the pages that come along with the package, beside the environment's other documentation.

In the repository they also link to code, examples and kept results, which are not in the package. There the text says where those
are, and no link leads nowhere; as in the site (docs/hooks.py). 'limbeck doctor' says where the pages are.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from setuptools import setup

ROOT, INTO = Path(__file__).parent, "share/doc/limbeck"
MADE = Path("build") / "pages"
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def shipped() -> list[Path]:
    of_root = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
    found = [ROOT / name for name in of_root]
    for pattern in ("*.md", "methods/*.md", "images/*"):
        found += sorted(path for path in (ROOT / "docs").glob(pattern) if path.is_file())
    return [path.relative_to(ROOT) for path in found]


def alone(text: str, folder: str, pages: set[str]) -> str:
    """A page without the links that lead out of the package. Code stays as it is."""

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        if path in pages:
            return match[0]
        return match[1] if "*" in match[1] else f"`{path}`"

    parts = FENCED.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def data_files() -> list[tuple[str, list[str]]]:
    pages = {path.as_posix() for path in shipped()}
    found: dict[str, list[str]] = {}
    for path in shipped():
        made = ROOT / MADE / path
        made.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = (ROOT / path).read_text(encoding="utf-8")
            made.write_text(alone(text, path.parent.as_posix(), pages), encoding="utf-8")
        else:
            made.write_bytes((ROOT / path).read_bytes())
        found.setdefault(posixpath.normpath(f"{INTO}/{path.parent.as_posix()}"), []).append((MADE / path).as_posix())
    return sorted(found.items())


setup(data_files=data_files())
