# ruff: noqa: SLF001 - the loop has no other place to measure
"""`python -m benchmarks._turns FILE run` runs `lares run`, and writes the longest iteration of the event loop to the
file.

The file contains the processor time of the loop's thread, and the callback that took most of this time. Other
programs do not affect the processor time. On SIGUSR1, the process forgets earlier iterations, such as the iterations
during the start.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from asyncio import events
from asyncio.base_events import BaseEventLoop
from pathlib import Path
from typing import Any

from appliance.cli.main import main as lares


def watch(file: Path) -> None:
    """Measure the iterations of all event loops from now on."""
    handles: Any = events.Handle
    loops: Any = BaseEventLoop
    run, run_once = handles._run, loops._run_once
    longest, part = 0.0, (0.0, "")

    def timed_run(handle: Any) -> None:
        nonlocal part
        began = time.thread_time()
        run(handle)
        part = max(part, (1000 * (time.thread_time() - began), _name(handle)))

    def timed_run_once(loop: BaseEventLoop) -> None:
        nonlocal longest, part
        part, began = (0.0, ""), time.thread_time()
        run_once(loop)
        if (took := 1000 * (time.thread_time() - began)) > longest:
            longest = took
            file.write_text(json.dumps([took, f"{part[1]} ({part[0]:.1f} ms)"]))

    def forget(*_: object) -> None:
        nonlocal longest
        longest = 0.0

    handles._run, loops._run_once = timed_run, timed_run_once
    signal.signal(signal.SIGUSR1, forget)


def _name(handle: Any) -> str:
    callback = handle._callback
    owner = getattr(callback, "__self__", None)
    return owner.get_name() if isinstance(owner, asyncio.Task) else getattr(callback, "__qualname__", repr(callback))


if __name__ == "__main__":
    watch(Path(sys.argv.pop(1)))
    sys.exit(lares())
