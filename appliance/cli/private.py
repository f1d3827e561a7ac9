"""Files for the eyes of this user only, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from appliance.errors import StartFailed


def write_private(file: Path, data: bytes) -> None:
    """Write the file with mode 0600, on the device when this returns; `StartFailed` if it cannot be written."""
    part = file.with_name(file.name + ".part")
    try:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
        _sync_folder(file.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise StartFailed(f"cannot write {file}: {error.strerror}", os.EX_IOERR) from None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
