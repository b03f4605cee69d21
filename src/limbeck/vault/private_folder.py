"""The vault's own folder of a run, beside the ledger: for what must outlive a crash and never be released.

    LEDGER'S FOLDER/teachers/GRANT/key       mode 600: 32 bytes seal the checkpoints, 32 share out the records; their digest
    LEDGER'S FOLDER/teachers/GRANT/*.sealed  mode 600: checkpoints of ensembles, encrypted under that key

Folders have mode 700. The folder goes when the grant is closed or given back, the key first.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

NAME = "teachers"
KEY = "key"


def folder_of(ledger: Path, grant: str) -> Path:
    return ledger.parent / NAME / grant


def discard(ledger: Path, grant: str) -> None:
    """Remove a run's folder; nothing happens where there is none. Without its key a checkpoint is noise."""
    folder = folder_of(ledger, grant)
    with contextlib.suppress(OSError):
        (folder / KEY).unlink()
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.parent.rmdir()
