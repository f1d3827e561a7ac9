"""The priority of a process that simulates. This module imports little, so a process can call it first."""

from __future__ import annotations

import os
from contextlib import suppress

NICE = 10
"""The process's niceness, which gives the hub priority."""


def lower_priority() -> None:
    with suppress(OSError):  # the process already has a lower priority
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
