"""A release that is complete but not yet, or only in part, in the output folder: is it whole?

It is staged in the run's own folder and then moved file by file, so a crash may leave some files here and some there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from limbeck.errors import NotAuthentic
from limbeck.privacy.plan import Plan
from limbeck.release.certificate import NAME
from limbeck.release.statement import Statement
from limbeck.release.verification import check_files, check_statement


def fault_of(folder: Path, state: Path, plan: Plan) -> str | None:
    """What is wrong with the staged release of a run; None if it is whole.

    Guarantee: None only if staged and moved files together are what a valid certificate of this very plan lists, byte for
    byte, and nothing else.
    """
    staged = state / "release"
    try:
        certificate = check_statement(Statement.read(staged if (staged / NAME).exists() else folder))
        stated = (certificate.dataset, certificate.method, certificate.settings, certificate.queries)
        if stated != (plan.dataset, plan.method, plan.settings, plan.queries):
            return "its certificate is for another plan"
        check_files(dict(_present(folder, staged, state)), certificate.files)
    except NotAuthentic as error:
        return error.message.rstrip(".")
    except (OSError, KeyError, TypeError) as error:
        return f"it cannot be read ({type(error).__name__})"
    return None


def _present(folder: Path, staged: Path, state: Path) -> Iterator[tuple[str, Path]]:
    """Every file by its name in the release. What is staged will replace what has its name in the folder."""
    waiting = {entry.name for entry in staged.iterdir()} if staged.is_dir() else set()
    for root in (folder, staged):
        for path in root.rglob("*") if root.is_dir() else ():
            name = path.relative_to(root)
            moved_over = root == folder and (path.is_relative_to(state) or name.parts[0] in waiting)
            if not moved_over and (path.is_symlink() or not path.is_dir()):
                yield name.as_posix(), path
