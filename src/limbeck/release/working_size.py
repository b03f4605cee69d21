"""The size at which the pictures of a release were made, as its certificate states it.

Elixir looks at large pictures averaged down, and sets its pictures up again at the end. What has learnt from the set should
look at them the same way: a network at the full size learns less from pictures without fine detail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limbeck.methods.elixir.working_size import AS_THEY_ARE, at_size
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate

METHOD, SETTING = "elixir", "size"


def working_size(certificate: Certificate) -> int:
    """Pixels of the longer side; 0 where pictures were made as they are.

    Joined sets lose nothing at the largest of their parts' sizes. A set that was distilled has the settings of its source.
    """
    schema = certificate.public_assumptions
    if certificate.joined is None:
        return _stated(schema, certificate.method, certificate.settings)
    sizes = [_stated(schema, str(part.get("method")), _settings(part)) for part in certificate.joined.parts]
    return AS_THEY_ARE if AS_THEY_ARE in sizes else max(sizes)


def working_shape(certificate: Certificate) -> tuple[int, int] | None:
    """Height and width; None where pictures were made as they are."""
    schema, size = certificate.public_assumptions, working_size(certificate)
    if not size:
        return None
    _, height, width = at_size(schema, size).shape
    return height, width


def _settings(part: Mapping[str, Any]) -> Mapping[str, Any]:
    settings = part.get("settings")
    return settings if isinstance(settings, Mapping) else {}


def _stated(schema: Schema, method: str, settings: Mapping[str, Any]) -> int:
    """A certificate may state anything; what is no size is none."""
    size = settings.get(SETTING)
    if method != METHOD or not isinstance(size, int) or isinstance(size, bool) or size < 0:
        return AS_THEY_ARE
    return AS_THEY_ARE if at_size(schema, size) is schema else size
