"""`lares --licenses`: what the single file holds, and under which licences."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

from appliance.cli.terminal import say
from appliance.errors import StartFailed

NOTICE = "NOTICE"
"""Its part that holds all of that."""


def print_licences() -> int:
    """Print the list and the texts from within the file."""
    held = sys.modules.get("lares_file")
    if held is None or held.__file__ is None:
        say("Lares is under the Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0).")
        say("It runs from Python packages here, each with its own licence; lares.pyz prints all that it holds.")
        return os.EX_OK
    file = Path(held.__file__).parent
    try:
        with zipfile.ZipFile(file) as archive:
            text = archive.read(NOTICE).decode(errors="replace")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise StartFailed(f"{file} cannot be read, copy it to this box again ({error})", os.EX_DATAERR) from None
    say(*text.splitlines())
    return os.EX_OK
