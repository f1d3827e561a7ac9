"""The single file of this process, if there is one: its content, and the cleanup after an upgrade."""

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
"""Seconds after the first answer when unpacked and compiled files are synced, so that they survive a power cut."""

REMOVE_AFTER_SECS = 60.0
"""Seconds that a version must have served before older ones are removed."""

log = logging.getLogger("hub")


def list_targets() -> tuple[str, ...]:
    """Return the targets of the file; empty if this process has no single file."""
    file = sys.modules.get("lares_file")
    return () if file is None else tuple(file.TARGETS)


def running_file() -> Path | None:
    """Return the single file that this process runs; None for Python packages."""
    file = sys.modules.get("lares_file")
    return None if file is None or file.__file__ is None else Path(file.__file__).parent


async def finish_upgrade(clock: Clock) -> None:
    """Sync the unpacked files of this version; remove older versions once it has served for a while."""
    if list_targets():
        await clock.sleep(SEAL_AFTER_SECS)
        _start("seal", "sync the unpacked files")
        await clock.sleep(REMOVE_AFTER_SECS - SEAL_AFTER_SECS)
        _start("seal", "sync the unpacked files")
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
    file = running_file()
    if file is None:
        say("Lares is under the Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0).")
        say("It runs from Python packages here, each with its own licence; lares.pyz prints all that it holds.")
        return os.EX_OK
    try:
        with zipfile.ZipFile(file) as archive:
            text = archive.read(NOTICE).decode(errors="replace")
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise StartFailed(f"{file} cannot be read, copy it to this box again ({error})", os.EX_DATAERR) from None
    say(*text.splitlines())
    return os.EX_OK
