"""Files for the eyes of this user only."""

from __future__ import annotations

import os
from pathlib import Path

from appliance.errors import StartFailed
from appliance.store.atomic import write_file


def write_private(file: Path, data: bytes) -> None:
    """Write the file with mode 0600, whole or not at all; `StartFailed` if it cannot be written."""
    try:
        write_file(file, data)
    except OSError as error:
        raise StartFailed(f"cannot write {file}: {error.strerror}", os.EX_IOERR) from None
