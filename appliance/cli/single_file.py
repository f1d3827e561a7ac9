"""The single file from which this process was started, where it was: what it holds, and tidying after an upgrade."""

from __future__ import annotations

import importlib
import logging
import sys
import threading

from appliance.clock import Clock

WELL_AFTER_SECS = 60.0
"""So long a version must have served before those before it are removed."""

log = logging.getLogger("hub")


def list_targets() -> tuple[str, ...]:
    """The targets that the file holds; empty where the process was started from something else."""
    file = sys.modules.get("lares_file")
    return () if file is None else tuple(file.TARGETS)


async def settle(clock: Clock) -> None:
    """Once this version has served for a while, keep what Python compiled of it, and remove those before it."""
    if list_targets():
        await clock.sleep(WELL_AFTER_SECS)
        # No task: it may take seconds on a slow card, must not hold up the end, and can be cut off at any point.
        threading.Thread(target=_settle, name="settle", daemon=True).start()


def _settle() -> None:
    try:
        importlib.import_module("lares_settle").settle()
    except OSError as error:
        log.warning("earlier versions cannot be removed: %s", error)
