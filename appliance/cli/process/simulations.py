"""Runs simulations for `POST /simulate`, like `lares simulate --json`, but in the hub's process and with a time
limit."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from appliance import config
from appliance.api.simulation import SimulationRequest, SimulationResult
from appliance.cli.simulation.preparation import prepare
from appliance.cli.simulation.printer import SimulationPrinter
from appliance.cli.simulation.simulation import open_simulation
from appliance.config import Config
from appliance.errors import Busy, ConfigFailed, Fault, Invalid, InvalidFile, StartFailed
from appliance.log_limit import IS_MUTED
from appliance.simulated_clock import SimulatedClock
from appliance.tasks import Tasks

MAX_SECS = 5.0
"""The time limit of one simulation."""

MAX_LINES = 10_000

MAX_WAITING = 4
"""Maximum number of running and waiting simulations. The hub rejects further requests."""

EVENTS_FILE = "events"
"""The name of the events file in error messages."""


class HubSimulations:
    """Runs one simulation at a time on copies of the configuration."""

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def simulate(self, asked: SimulationRequest, stored: Mapping[str, Any]) -> SimulationResult:
        """Simulate the home with these stored values, and return the result's lines. Raise `Invalid`, `InvalidFile`,
        or `Busy`."""
        if self._waiting >= MAX_WAITING:
            raise Busy("too many simulations are waiting; try again later")
        self._waiting += 1
        try:
            async with self._lock:
                return await self._run(asked, dict(stored))
        finally:
            self._waiting -= 1

    async def _run(self, asked: SimulationRequest, stored: dict[str, Any]) -> SimulationResult:
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="lares-simulation-"))
        try:
            file = await asyncio.to_thread(_copy, self._file, folder, asked)
            async with Tasks() as tasks:
                return await tasks.finish(_simulate(file, asked, stored), "simulation")
        except OSError as error:
            raise Invalid(f"the simulation cannot run: {error.strerror or error}") from None
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _copy(file: Path, folder: Path, asked: SimulationRequest) -> Path:
    """Copy the configuration into the folder, with the new text of one file. Return the path of the copied main
    file."""
    copied = folder / file.parent.name
    shutil.copytree(file.parent, copied, ignore_dangling_symlinks=True)
    if asked.path is not None and asked.text is not None:
        target = folder / asked.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(asked.text)
    return copied / file.name


async def _simulate(file: Path, asked: SimulationRequest, stored: dict[str, Any]) -> SimulationResult:
    IS_MUTED.set(True)
    settings = await asyncio.to_thread(_load, file)
    encoded = {key: orjson.dumps(value) for key, value in stored.items()}
    try:
        prepared = prepare(encoded, settings.locale, asked.start, asked.hours, asked.events)
    except Invalid as fault:
        raise Invalid(f"from {fault}") from None
    if prepared.faults:
        raise InvalidFile(EVENTS_FILE, [Fault(EVENTS_FILE, line, message) for line, message in prepared.faults])
    clock, lines = SimulatedClock(prepared.start), list[bytes]()

    def write(line: str) -> None:
        lines.append(line.encode())
        if len(lines) >= MAX_LINES:
            clock.stop()

    printer = SimulationPrinter(clock, None, clock.stop, runs_lua=asked.runs_lua, write=write)
    is_complete = False
    opened = open_simulation(settings, prepared.stored, clock, printer, home=(file,), runs_lua=asked.runs_lua)
    with suppress(TimeoutError, StartFailed):  # return the lines before the failure
        async with asyncio.timeout(MAX_SECS), opened as simulation:
            try:
                await simulation.run(prepared.end, prepared.events)
                is_complete = len(lines) < MAX_LINES
            finally:
                printer.is_over = True
    return SimulationResult(
        lines=[orjson.loads(each) for each in lines[:MAX_LINES]],
        until=prepared.end if is_complete else clock.now(),
        is_complete=is_complete,
    )


def _load(file: Path) -> Config:
    """Return the configuration, or the defaults if the file is missing. Raise `InvalidFile` if it is invalid."""
    try:
        return config.load(file, os.environ) if file.exists() else config.parse("", str(file), os.environ)
    except ConfigFailed as failed:
        faults = [Fault(file.name, each.line, each.message) for each in failed.faults]
        raise InvalidFile(f"{file.parent.name}/{file.name}", faults) from None
