"""A licence in the words of the hub: an identifier from its list, or "other" with a name."""

from __future__ import annotations

import json

from limbeck.release.imprint import Imprint

# Identifiers of the hub that data and models are commonly released under. What is not here goes by its own name.
KNOWN = (
    "apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0", "cc-by-3.0", "cc-by-sa-4.0", "cc-by-nc-4.0",
    "cc-by-nd-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odbl", "odc-by", "pddl", "cdla-permissive-1.0", "cdla-permissive-2.0",
    "cdla-sharing-1.0", "etalab-2.0", "openrail", "gpl-3.0", "lgpl-3.0", "agpl-3.0", "unlicense",
)  # fmt: skip


def licence_lines(imprint: Imprint | None) -> list[str]:
    """Lines of the front matter. Who says nothing has given no licence, and the hub is told so.

    >>> licence_lines(Imprint(licence="CC BY 4.0")), licence_lines(None)
    (['license: cc-by-4.0'], ['license: unknown'])
    >>> licence_lines(Imprint(licence="House rules 7"))
    ['license: other', 'license_name: "House rules 7"']
    """
    if imprint is None or not imprint.licence:
        return ["license: unknown"]
    plain = "-".join(imprint.licence.lower().split())
    return (
        [f"license: {plain}"] if plain in KNOWN else ["license: other", f"license_name: {json.dumps(imprint.licence)}"]
    )
