"""The archive of `lares backup` as bytes, for who asks the running hub for it."""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from pathlib import Path

from appliance.cli.backup import backup
from appliance.errors import Invalid, StartFailed


def pack_backup(config: Path, data_dir: Path) -> bytes:
    """What `lares backup` writes about this configuration and data; `Invalid` says why it cannot be made."""
    with tempfile.TemporaryDirectory(prefix="lares-backup-") as folder:
        file = Path(folder) / "backup"
        arguments = argparse.Namespace(config=str(config), data_dir=str(data_dir), file=str(file))
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                backup(arguments)
        except StartFailed as failed:
            raise Invalid(str(failed)) from None
        return file.read_bytes()
