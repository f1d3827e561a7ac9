"""The folder of the running program. The single file unpacks itself to a cache, and a person or another program can
delete this cache while the hub runs."""

from __future__ import annotations

from pathlib import Path

import appliance

PROGRAM_FOLDER = Path(appliance.__file__).parent


def describe_missing_program(folder: Path = PROGRAM_FOLDER) -> str:
    """Return a sentence if the folder is missing, otherwise an empty string."""
    return "" if folder.is_dir() else f"the program's folder {folder} is missing; restart the hub"
