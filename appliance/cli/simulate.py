"""`lares simulate`: what the automations would do in some hours to come, and why some would not run."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from appliance import config
from appliance.automations.alarms import INSTANT
from appliance.automations.definition import Definition
from appliance.automations.home_view import CHANGED
from appliance.automations.setup import Parts, build_environment, catalog_of, open_automations
from appliance.automations.states import AUTOMATION, TOGGLE
from appliance.automations.storage import Storage
from appliance.automations.time_triggers import TimedTrigger
from appliance.automations.timers import TIMER
from appliance.automations.variables import VARIABLE
from appliance.cli import key_socket
from appliance.cli.paths import Places
from appliance.clock import Clock, ClockTrust, SimulatedClock, timestamp
from appliance.config import Config
from appliance.errors import StartFailed
from appliance.history.period import Period
from appliance.history.runs import RunEntry, RunStatus
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.lua.executions import Ending, Execution, Job
from appliance.lua.setup import build_runner
from appliance.store.reading import read_document
from appliance.store.records import DEVICE, EPOCH, GROUP, PLACE, ROOM, Snapshot, read_devices, read_layout
from appliance.store.records import STATE as STATE_OF_DEVICE

STATE = "state"
"""What a hub that runs is asked for."""

SIMULATED = (ROOM, GROUP, PLACE, DEVICE, STATE_OF_DEVICE, TOGGLE, AUTOMATION, VARIABLE, TIMER, CHANGED)
"""What of a home's state a simulation needs, by the prefixes of the keys in the document."""

YEARS = range(1971, 2100)
"""The years that a simulation may begin in."""


class Rehearsal:
    """Takes the place of what runs Lua: every job ends well at once, and nothing is commanded."""

    def __init__(self, clock: Clock, on_end: Callable[[Job, Ending], None]) -> None:
        self._clock = clock
        self._on_end = on_end

    async def __aexit__(self, *_: object) -> None:
        """Nothing is under way."""

    def submit(self, job: Job) -> Execution:
        """Say that the job ran."""
        now = self._clock.now()
        execution = Execution(job, now)
        ending = Ending(executed_at=now, status=RunStatus.OK, error=None, results=(), duration_ms=0)
        execution.ended.set_result(ending)
        self._on_end(job, ending)
        return execution

    def cancel(self, id_: str) -> int:
        """Nothing is under way."""
        return 0

    def skip_waiting(self, id_: str, because: str) -> None:
        """Nothing waits."""

    def give_up(self) -> None:
        """Nothing is under way."""

    def figures(self) -> dict[str, Any]:
        """Nothing runs and nothing waits."""
        return {}


class _Printer:
    """Takes the place of the history: prints every entry, and counts. `gone` is the end of whoever read them."""

    def __init__(self, tell: Callable[[RunEntry], str], stop: Callable[[], None]) -> None:
        self._tell = tell
        self._stop = stop
        self.fired = 0
        self.gone: BrokenPipeError | None = None

    def add(self, entry: RunEntry) -> None:
        """Print what became of a trigger."""
        self.fired += entry.status is RunStatus.OK
        try:
            print(self._tell(entry))
        except BrokenPipeError as error:
            self.gone = error
            self._stop()

    def list_runs(self, subject: str, period: Period) -> list[RunEntry]:
        """Nothing is kept."""
        return []


def simulate(arguments: argparse.Namespace) -> int:
    """Print what would fire and what would not, and why; nothing is commanded and nothing is written."""
    places = Places.of_process(arguments.config, arguments.data_dir)
    file = places.find_config()
    if not file.exists():
        raise StartFailed(f"there is no configuration at {file}; `lares run` writes one there", os.EX_CONFIG)
    settings = config.load(file, os.environ)
    zone, stored = settings.locale.timezone, asyncio.run(_present_state(places.find_data_dir()))
    start = Clock().now() if arguments.start is None else _instant(arguments.start, zone)
    if arguments.start is not None:  # what is remembered now is nothing to a time of its own
        stored = {key: value for key, value in stored.items() if not key.startswith((AUTOMATION, TIMER))}
    clock = SimulatedClock(start, start + timedelta(hours=arguments.hours))
    printer = _Printer(_as_json if arguments.json else _as_text(zone), clock.over.set)
    logging.getLogger("automations").setLevel(logging.ERROR)
    asyncio.run(_rehearse(settings, Snapshot(stored), clock, printer))
    return os.EX_OK


async def _present_state(data_dir: Path) -> Mapping[str, bytes]:
    """What the hub that runs tells of the home now; where none does, what it left on the card."""
    try:
        reply = await key_socket.ask(data_dir, {"do": STATE})
        return {key: orjson.dumps(value) for key, value in reply["values"].items()}
    except (OSError, KeyError, StartFailed):
        return read_document(data_dir).values


async def _rehearse(settings: Config, stored: Snapshot, clock: SimulatedClock, printer: _Printer) -> None:
    bus = Bus()
    registry = Registry(bus, clock)
    layout = read_layout(stored)
    registry.restore(layout, read_devices(stored, layout))
    storage = Storage(stored=stored, remember=lambda key, value: None, put=_put_nothing)
    trust = ClockTrust(clock, EPOCH)
    stopped_at = clock.now() - INSTANT  # so that what is due at the first instant comes
    environment = build_environment(registry, bus, clock, trust, storage, stopped_at=stopped_at)
    zone = settings.locale.timezone
    runner = build_runner(settings.scripts, settings.automations.runner, zone, settings.root, clock)
    async with runner:
        catalog = catalog_of(settings.automations, settings.root, runner.describe, settings.locale, clock)
        async with open_automations(catalog, environment, printer, partial(Rehearsal, clock)) as parts:
            for fault in catalog.left_out:
                print(f"left out: {fault}", file=sys.stderr)
            if any(_is_timed(each) for each in catalog.list_definitions()):
                await clock.over.wait()
            if printer.gone is not None:
                raise printer.gone
            _sum_up(parts, printer.fired, settings)


def _sum_up(parts: Parts, fired: int, settings: Config) -> None:
    """Say on standard error what the lines on standard output do not."""
    definitions = parts.automations.catalog.list_definitions()
    waiting = [each.id for each in definitions if not _is_timed(each)]
    sys.stdout.flush()
    print(f"automations: {len(definitions)}, runs: {fired}", file=sys.stderr)
    if not settings.automations.enabled:
        print("automations.enabled is false in the configuration", file=sys.stderr)
    if waiting:
        names = ", ".join(waiting)
        print(f"not simulated, since they wait for what devices do or what fails: {names}", file=sys.stderr)


def _is_timed(definition: Definition) -> bool:
    return any(isinstance(trigger, TimedTrigger) for trigger in definition.triggers)


async def _put_nothing(values: Mapping[str, Any]) -> None:
    """Nothing that a simulation does is kept."""


def _as_json(entry: RunEntry) -> str:
    fired = entry.status is RunStatus.OK
    at = timestamp(entry.executed_at)
    return json.dumps({"at": at, "automation": entry.subject, "fired": fired, "error": entry.error})


def _as_text(zone: ZoneInfo) -> Callable[[RunEntry], str]:
    """How a line for people reads, with the time that their clocks will show."""

    def tell(entry: RunEntry) -> str:
        local = entry.executed_at.astimezone(zone)
        what = "fires" if entry.status is RunStatus.OK else f"does not fire: {entry.error}"
        return f"{local:%a %Y-%m-%d %H:%M:%S %Z}  {entry.subject}  {what}"

    return tell


def _instant(text: str, zone: ZoneInfo) -> datetime:
    """The instant that somebody wrote; without an offset it is what the home's clocks show."""
    try:
        instant = datetime.fromisoformat(text)
        if instant.year not in YEARS:
            raise ValueError("beyond the calendar")
    except ValueError:
        wanted = "a time like 2026-12-24T18:00 (local) or 2026-12-24T17:00:00Z"
        years = f"in the years {YEARS[0]} to {YEARS[-1]}"
        raise StartFailed(f"--from must be {wanted}, {years}, not {text!r}", os.EX_USAGE) from None
    return (instant if instant.tzinfo is not None else instant.replace(tzinfo=zone)).astimezone(UTC)
