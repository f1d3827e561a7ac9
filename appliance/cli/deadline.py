"""The end of the process: it comes within the time of a stop, whatever hangs.

A thread that waits for a name server cannot be interrupted, and Python would wait for it before it ends.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import NoReturn

STOP_LIMIT_SECS = 4.8
"""How long a stop may take from its signal on; the service managers that ask for five seconds kill after that."""

log = logging.getLogger("hub")


def limit_stop() -> None:
    """End the process `STOP_LIMIT_SECS` from now, if it has not ended by itself.

    Nothing that was acknowledged is lost by it: that is on the card since it was acknowledged.
    """
    timer = threading.Timer(STOP_LIMIT_SECS, _end_late)
    timer.daemon = True
    timer.start()


def end_process(code: int) -> NoReturn:
    """End the process with this exit code now, and wait for no thread."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _end_late() -> None:
    log.error("the stop took longer than %g s; what still hung was cut off", STOP_LIMIT_SECS)
    end_process(os.EX_SOFTWARE)
