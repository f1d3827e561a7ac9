"""The process that runs one simulation. The process reads the request from standard input, and writes the result
to standard output."""

from __future__ import annotations

import asyncio
import marshal
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from appliance import config
from appliance.api.simulation import SimulationRequest
from appliance.cli.process.memory_protection import protect_memory
from appliance.cli.simulation.clock import SimulatedClock
from appliance.cli.simulation.preparation import prepare
from appliance.cli.simulation.printer import SimulationPrinter
from appliance.cli.simulation.simulation import open_simulation
from appliance.config import Config
from appliance.errors import ConfigFailed, Fault, Invalid, InvalidFile, StartFailed
from appliance.lua.files.kind_files import folder_of_kinds
from appliance.lua.text.source import Source

MAX_SECS = 5.0
"""The time limit of one simulation."""

MAX_LINES = 10_000

MAX_OUTPUT_BYTES = 4 << 20
"""Maximum total size of all lines. The hub reads the whole output into memory."""

EVENTS_FILE = "events"
"""The name of the events file in error messages."""


def main() -> None:
    protect_memory()
    with suppress(OSError):  # if memory is low, the kernel ends the simulation instead of the hub
        Path("/proc/self/oom_score_adj").write_text("1000")
    file, asked, stored = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - from the hub
    try:
        answer = asyncio.run(_simulate(Path(file), SimulationRequest(**asked), stored))
    except Invalid as error:
        faults = error.faults if isinstance(error, InvalidFile) else ()
        path = faults[0].file if faults else ""
        answer = [], "", False, (path, str(error), [(each.file, each.line, each.message) for each in faults])
    sys.stdout.buffer.write(marshal.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # skip the clean-up, because freeing the objects of a large home would take long


async def _simulate(file: Path, asked: SimulationRequest, stored: Mapping[str, bytes]) -> tuple[Any, ...]:
    """Return the simulation's lines, its end as text, whether the simulation is complete, and None in place of an
    error."""
    unsaved = None if asked.path is None or asked.text is None else Source(name=asked.path, text=asked.text.encode())
    settings = _load(file, unsaved)
    try:
        prepared = prepare(stored, settings.locale, asked.start, asked.hours, asked.events)
    except Invalid as fault:
        raise Invalid(f"from {fault}") from None
    if prepared.faults:
        raise InvalidFile(EVENTS_FILE, [Fault(EVENTS_FILE, line, message) for line, message in prepared.faults])
    clock = SimulatedClock(prepared.start)
    output = _Output(clock.stop)
    printer = SimulationPrinter(clock, None, clock.stop, runs_lua=asked.runs_lua, write=output.write)
    is_complete = False
    parts = settings, prepared.stored, clock, printer
    opened = open_simulation(*parts, home=(file,), runs_lua=asked.runs_lua, unsaved=unsaved)
    with suppress(TimeoutError, StartFailed):  # return the lines that were written before the failure
        async with asyncio.timeout(MAX_SECS), opened as simulation:
            try:
                await simulation.run(prepared.end, prepared.events)
                is_complete = not output.is_full
            finally:
                printer.is_over = True
    until = prepared.end if is_complete else clock.now()
    return output.lines, until.isoformat(), is_complete, None


class _Output:
    """The first lines within both limits. Calls `stop` when a limit is reached."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.lines: list[bytes] = []
        self.is_full = False
        self._stop = stop
        self._bytes = 0

    def write(self, line: str) -> None:
        if not self.is_full:
            encoded = line.encode()
            self._bytes += len(encoded)
            if self._bytes <= MAX_OUTPUT_BYTES:
                self.lines.append(encoded)
            self.is_full = self._bytes > MAX_OUTPUT_BYTES or len(self.lines) >= MAX_LINES
        if self.is_full:
            self._stop()


def _kind_in(file: Path, unsaved: Source | None) -> str | None:
    """Return the name of the kind whose file has the unsaved text, if any."""
    kind = folder_of_kinds(file).with_unsaved(unsaved).unsaved
    return None if kind is None else Path(kind.name).stem


def _load(file: Path, unsaved: Source | None) -> Config:
    """Return the configuration with the unsaved text, or the defaults if there is no file. Raise `InvalidFile` on
    failure."""
    path = f"{file.parent.name}/{file.name}"
    try:
        if unsaved is not None and unsaved.name == path:
            return config.parse(unsaved.text.decode(), str(file), os.environ)
        return config.load_or_defaults(file, os.environ, unsaved_kind=_kind_in(file, unsaved))
    except ConfigFailed as failed:
        faults = [Fault(file.name, each.line, each.message) for each in failed.faults]
        raise InvalidFile(path, faults) from None
