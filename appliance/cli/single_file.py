"""The single file from which this process was started, where it was: what it holds, and tidying after an upgrade."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import zipfile
from pathlib import Path

from appliance.cli.terminal import say
from appliance.clock import Clock
from appliance.errors import StartFailed

SEAL_AFTER_SECS = 3.0
"""So soon after the first answer what is unpacked and compiled is kept for good: a power cut does not undo that."""

REMOVE_AFTER_SECS = 60.0
"""So long a version must have served before those before it are removed."""

log = logging.getLogger("hub")


def list_targets() -> tuple[str, ...]:
    """The targets that the file holds; empty where the process was started from something else."""
    file = sys.modules.get("lares_file")
    return () if file is None else tuple(file.TARGETS)


async def finish_upgrade(clock: Clock) -> None:
    """Keep what is unpacked and compiled of this version; once it has served for a while, remove those before it."""
    if list_targets():
        await clock.sleep(SEAL_AFTER_SECS)
        _start("seal", "keep what is unpacked for good")
        await clock.sleep(REMOVE_AFTER_SECS - SEAL_AFTER_SECS)
        _start("seal", "keep what is unpacked for good")
        _start("remove_old_versions", "remove earlier versions")


def _start(step: str, what: str) -> None:
    """Begin the step; no task, for it may take seconds on a slow card, and can be cut off at any point."""
    threading.Thread(target=_do, args=(step, what), name=step, daemon=True).start()


def _do(step: str, what: str) -> None:
    try:
        getattr(importlib.import_module("lares_settle"), step)()
    except (OSError, ValueError) as error:  # also a seal that is damaged
        log.warning("cannot %s: %s", what, getattr(error, "strerror", None) or error)


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
