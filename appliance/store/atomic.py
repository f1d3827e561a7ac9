"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from appliance.store.file_names import PART


def write_file(file: Path, data: bytes, mode: int = 0o600) -> None:
    """Put a file with this content and mode (less the umask) in place of any old one; it is then on the device.

    A power cut leaves the old file or the new one. Raises `OSError`; then the old one is as it was.
    """
    part = file.with_name(file.name + PART)
    try:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        part.replace(file)
        sync_folder(file.parent)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Return once the names in the folder are on the device; raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
