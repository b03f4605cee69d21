"""Examples of docstrings as code: lines from `>>>` to the next empty line. Markdown would take them for quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)
REMARK = re.compile(r"\s+# doctest:.*$", re.MULTILINE)


class Examples(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring and ">>> " in obj.docstring.value:
            shown = REMARK.sub("", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", shown)
