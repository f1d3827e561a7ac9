"""Runs simulations for `POST /simulate`, like `lares simulate --json`. Each simulation runs in a separate process
with a time limit. In the hub's own process, simulating a large home would block the event loop, and would leave many
objects in memory."""

from __future__ import annotations

import asyncio
import marshal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec.structs import asdict

from appliance.api.simulation import SimulationRequest, SimulationResult
from appliance.errors import Busy, Fault, Invalid, InvalidFile, NotReady
from appliance.lua.running.worker_process import list_import_path
from appliance.program_folder import describe_missing_program

MAX_PROCESS_SECS = 30.0
"""The time limit of a simulation's process, including the process's start on a slow machine."""

MAX_WAITING = 4
"""Maximum number of running and waiting simulations. The hub rejects further requests."""

_START = """
import sys
sys.dont_write_bytecode, sys.path[:] = True, sys.argv[1:]
from appliance.cli.simulation.priority import lower_priority
lower_priority()
from appliance.cli.simulation.process import main
main()
"""


class HubSimulations:
    """Runs one simulation at a time. Each simulation reads the configuration without writing or copying files."""

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def simulate(self, asked: SimulationRequest, stored: Mapping[str, bytes]) -> SimulationResult:
        """Simulate the home with these stored values, and return the result's lines. Raise `Invalid`,
        `InvalidFile`, `NotReady`, or `Busy` on failure."""
        if self._waiting >= MAX_WAITING:
            raise Busy("too many simulations are waiting; try again later")
        self._waiting += 1
        try:
            async with self._lock:
                return await self._run(asked, stored)
        finally:
            self._waiting -= 1

    async def _run(self, asked: SimulationRequest, stored: Mapping[str, bytes]) -> SimulationResult:
        try:
            output = await _run_process(marshal.dumps((str(self._file), asdict(asked), {**stored})))
        except OSError as error:
            raise Busy(f"the simulation cannot start now: {error.strerror or error}; try again later") from None
        return await asyncio.to_thread(_read, output)


async def _run_process(given: bytes) -> bytes:
    """Start a process with this input, and return its output. The process ends when the hub's process ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _START, *list_import_path()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(MAX_PROCESS_SECS):
            return (await process.communicate(given))[0]
    except TimeoutError:
        raise Invalid("the simulation took too long; simulate fewer hours") from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _read(output: bytes) -> SimulationResult:
    """Decode the output of `process`. Raise `Invalid`, `InvalidFile`, or `NotReady` on failure."""
    if not output:
        if fault := describe_missing_program():
            raise NotReady(fault)
        raise Invalid("the simulation ended unexpectedly, perhaps for lack of memory; simulate fewer hours")
    lines, until, is_complete, refusal = marshal.loads(output)  # noqa: S302 - from the hub's own process
    if refusal is not None:
        path, message, faults = refusal
        raise InvalidFile(path, [Fault(*each) for each in faults]) if faults else Invalid(message)
    return SimulationResult(lines=lines, until=datetime.fromisoformat(until), is_complete=is_complete)
