"""The single file from which this process runs, if any."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from appliance.cli.terminal import say
from appliance.errors import StartFailed


def list_targets() -> tuple[str, ...]:
    """Return the targets of the single file. Return an empty tuple if Lares runs from Python packages."""
    file = sys.modules.get("lares_file")
    return () if file is None else tuple(file.TARGETS)


def running_file() -> Path | None:
    """Return the path of the single file, or None if Lares runs from Python packages."""
    file = sys.modules.get("lares_file")
    return None if file is None or file.__file__ is None else Path(file.__file__).parent


NOTICE = "NOTICE"
"""The path of the list of all licences with their texts. The path is inside the single file."""


def print_licences() -> int:
    import zipfile  # noqa: PLC0415 - 0.2 MB that a running hub does not need

    file = running_file()
    if file is None:
        say("Lares is under the Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0).")
        say("It runs from Python packages here, each with a separate licence; lares.pyz lists all of its contents.")
        return os.EX_OK
    try:
        with zipfile.ZipFile(file) as archive:
            text = archive.read(NOTICE).decode(errors="replace")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise StartFailed(f"{file} cannot be read ({error}); copy it to this machine again", os.EX_DATAERR) from None
    say(*text.splitlines())
    return os.EX_OK
