"""What the site needs beside mkdocs: pages of the repository's root, links out of docs/, and equations as MathML.

Browsers draw MathML by themselves, so that a page needs no script for its equations, from a disk and in print as well.
"""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
BROUGHT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")  # files of the root that are pages
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
MATH = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
LARGE = {r"\lVert": "‖", r"\rVert": "‖", r"\lfloor": "⌊", r"\rfloor": "⌋"}  # not known to the converter after \big
INDEXED = re.compile(r"(\\[bB]igg?(?:\\rVert|\)|\]))(?=[_^])")
BARS = re.compile(r"<mo(?![^>]*minsize)[^>]*>(?:‖|∥|&#x02016;|&#x02225;|&#8214;)</mo>")
FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    for name in BROUGHT:
        files.append(File.generated(config, name, content=_in_docs((ROOT / name).read_text(encoding="utf-8"), "")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    if page.file.src_uri in BROUGHT:
        return markdown
    return _in_docs(markdown, "docs/" + posixpath.dirname(page.file.src_uri))


def on_page_content(content: str, **_: Any) -> str:
    return MATH.sub(_as_mathml, content)


def _in_docs(markdown: str, folder: str) -> str:
    """Links of a page in `folder` of the repository, as they have to be in the site. Code stays as it is."""
    parts = FENCED.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(lambda m: _link(m, folder), part) for part in parts)


def _link(match: re.Match[str], folder: str) -> str:
    text, target, anchor = match[1], match[2], match[3] or ""
    if not target:
        return match[0]
    path = posixpath.normpath(posixpath.join(folder, target))
    if path == "README.md":
        path = "docs/index.md"
    if path in BROUGHT:
        path = "docs/" + path
    if not path.startswith("docs/"):
        # Code and kept results are no part of the site; the text says where they are.
        return text if "*" in text else f"`{path}`"
    here = posixpath.relpath(folder or ".", "docs") if folder else "."
    return f"[{text}]({posixpath.relpath(path[5:], here)}{anchor})"


def _as_mathml(match: re.Match[str]) -> str:
    latex = html.unescape(match[2]).strip()
    if match[1] == "span":
        return _drawn(latex.removeprefix(r"\(").removesuffix(r"\)").strip(), "inline")
    # What stands apart may stand on lines of its own, where the page is narrow.
    parts = latex.removeprefix(r"\[").removesuffix(r"\]").split(r"\qquad")
    return '<div class="equation">' + "".join(_drawn(part.strip(), "block") for part in parts) + "</div>"


def _drawn(latex: str, display: str) -> str:
    # A bracket with an index is as high as its partner only if the index belongs to something else.
    drawn = convert(INDEXED.sub(r"\1{}", latex), display=display)
    for name, sign in LARGE.items():
        drawn = drawn.replace(f">{name}<", f">{sign}<")
    if "\\" in re.sub(r"<[^>]*>", "", drawn):
        raise ValueError(f"This equation has a command that is not known: {latex}")
    drawn = BARS.sub(r'<mo stretchy="false">‖</mo>', drawn)  # or it grows with whatever stands beside it
    return drawn.replace("<math ", f'<math alttext="{html.escape(latex)}" ', 1)
