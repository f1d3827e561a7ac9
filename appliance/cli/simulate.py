"""`lares simulate`: shows which automations will run in the next hours, and why other ones will not."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import orjson
from msgspec import Struct

from appliance import config
from appliance.automations.triggers.base import TimedTrigger
from appliance.cli.check import find_wrong_names, is_running
from appliance.cli.device_events import HOOK, FileEvent, FileHook, first_instant, read_events, read_instant
from appliance.cli.hub_client import read_state
from appliance.cli.owner import as_owner, need_access
from appliance.cli.paths import HubPaths
from appliance.cli.simulation import Simulation, SimulationPrinter, open_simulation
from appliance.cli.terminal import say, with_local_times
from appliance.clock import Clock
from appliance.config import Config
from appliance.errors import Fault, Invalid, StartFailed
from appliance.home_locale import Locale
from appliance.lua.folder import folder_of, modules_of
from appliance.simulated_clock import SimulatedClock
from appliance.store.record_keys import ALIAS_PREFIX, AUTOMATION_PREFIX, TIMER_PREFIX
from appliance.store.storage import DocumentSnapshot
from appliance.tables.checks import nearest

MAX_EVENTS_BYTES = 16 << 20


class _SimulatedPeriod(Struct, frozen=True, kw_only=True):
    """The simulated period. The simulated period. With `is_present`, the simulation uses the stored state of
    automations."""

    start: datetime
    end: datetime
    is_present: bool


def simulate(arguments: argparse.Namespace) -> int:
    """Print each trigger and its result. Send no command, and write nothing to the store."""
    paths = HubPaths.of_process(arguments.config, arguments.data_dir)
    file, data_dir = paths.need_config(), paths.find_data_dir()
    need_access(data_dir, file)
    with as_owner(data_dir, file):
        settings, stored = config.load(file, os.environ), read_state(data_dir)
    whole = DocumentSnapshot(stored) if stored or is_running(data_dir) else None
    text = "" if arguments.events is None else _read(arguments.events)
    period = _period(arguments.start, arguments.hours, text, settings.locale)
    events = _events(text, arguments.events, settings.locale, period, stored)
    if not period.is_present:
        stored = {
            key: value for key, value in stored.items() if not key.startswith((AUTOMATION_PREFIX, TIMER_PREFIX))
        }
    clock = SimulatedClock(period.start)
    zone = None if arguments.json else settings.locale.timezone
    printer = SimulationPrinter(clock, zone, clock.stop, runs_lua=arguments.run)
    given = (file, data_dir), period.end, events
    with _errors_only("automations", "scenes", "scripts", "lua"):  # their warnings are printed
        asyncio.run(_simulate(settings, DocumentSnapshot(stored), printer, clock, arguments, *given, whole))
    return os.EX_OK


@contextmanager
def _errors_only(*names: str) -> Iterator[None]:
    """Log only errors of these loggers within the context."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


def _read(name: str) -> str:
    try:
        with as_owner(Path(name)), Path(name).open("rb") as stream:
            data = stream.read(MAX_EVENTS_BYTES + 1)
        if len(data) > MAX_EVENTS_BYTES:
            raise StartFailed(f"{name} is larger than {MAX_EVENTS_BYTES >> 20} MiB", os.EX_DATAERR)
        return data.decode()
    except UnicodeDecodeError:
        raise StartFailed(f"{name} is not UTF-8 text", os.EX_DATAERR) from None
    except OSError as error:
        raise StartFailed(f"{name} cannot be read: {error.strerror or error}", os.EX_NOINPUT) from None


def _period(start: str | None, hours: float, events: str, locale: Locale) -> _SimulatedPeriod:
    """Return the simulated period. It begins at `--from`, by default at the first event with a date, or now."""
    try:
        begins = first_instant(events, locale) if start is None else read_instant(start, locale)
    except Invalid as fault:
        raise StartFailed(f"--from {fault}", os.EX_USAGE) from None
    at = Clock().now() if begins is None else begins
    return _SimulatedPeriod(start=at, end=at + timedelta(hours=hours), is_present=begins is None)


def _events(
    text: str, name: str, locale: Locale, period: _SimulatedPeriod, stored: Mapping[str, bytes]
) -> list[FileEvent | FileHook]:
    has_alias = any(orjson.loads(value) == HOOK for key, value in stored.items() if key.startswith(ALIAS_PREFIX))
    events, faults = read_events(text, name, locale, period.start, period.end, has_hook_alias=has_alias)
    if faults:
        raise StartFailed(str(faults[0]), os.EX_DATAERR, *(f"lares: {each}" for each in faults[1:]))
    return events


async def _simulate(
    settings: Config,
    stored: DocumentSnapshot,
    printer: SimulationPrinter,
    clock: SimulatedClock,
    arguments: argparse.Namespace,
    home: Sequence[Path],
    until: datetime,
    events: Sequence[FileEvent | FileHook],
    whole: DocumentSnapshot | None,
) -> None:
    async with open_simulation(settings, stored, clock, printer, home=home, runs_lua=arguments.run) as simulation:
        if arguments.id is not None:
            printer.only = _find_automation(arguments.id, simulation)
        for fault in simulation.rejected:
            say(f"left out: {fault}", to=sys.stderr)
        for fault in _warnings(settings, whole, simulation):
            say(f"warning: {with_local_times(str(fault), settings.locale.timezone)}", to=sys.stderr)
        pretended = await simulation.run(until, events)
        printer.print_repetitions()
        printer.is_over = True
        if printer.gone is not None:
            raise printer.gone
        for device_id, line in pretended.items():
            say(f"{arguments.events}:{line}: the home has no device '{device_id}'; it is simulated", to=sys.stderr)
        _print_summary(simulation, printer, settings, arguments)


def _find_automation(word: str, simulation: Simulation) -> str:
    """Return the id of the automation with this id or name."""
    names = {each.id: each.name for each in simulation.definitions}
    if word in names:
        return word
    found = [id_ for id_, name in names.items() if name.casefold() == word.casefold()]
    if not found:
        near = nearest(word, [*names, *names.values()])
        hint = "`lares status` lists them" if near is None else f"did you mean '{near}'"
        raise StartFailed(f"automation '{word}' not found; {hint}", os.EX_NOUSER)
    return found[0]


def _warnings(settings: Config, stored: DocumentSnapshot | None, simulation: Simulation) -> list[Fault]:
    """Return warnings and unknown names, as `lares check` does."""
    folder = folder_of(settings.scripts, settings.root, is_deep=True)
    scripts = () if folder is None else folder.read().sources
    ids = [each.definition.id for each in simulation.scenes]
    loaded = [*(each.source for each in simulation.scenes), *(each.source for each in simulation.assets)]
    sources, operations = [*loaded, *scripts], simulation.operations
    found = find_wrong_names(
        settings, stored, simulation.assets, ids, sources, operations, modules_of(folder, scripts)
    )
    for warnings in (*(each.warnings for each in simulation.scenes), *(each.warnings for each in simulation.assets)):
        found += warnings
    return sorted(dict.fromkeys(found))


def _print_summary(
    simulation: Simulation, printer: SimulationPrinter, settings: Config, arguments: argparse.Namespace
) -> None:
    """Print a summary on standard error."""
    commands = f", commands: {printer.commands}" if arguments.run else ""
    say(f"automations: {len(simulation.definitions)}, runs: {printer.fired}{commands}", to=sys.stderr)
    if not settings.automations.enabled:
        say("automations.enabled is false in the configuration", to=sys.stderr)
    waiting = [
        each.id
        for each in simulation.definitions
        if not any(isinstance(trigger, TimedTrigger) for trigger in each.triggers)
    ]
    if waiting and arguments.events is None:
        names = ", ".join(waiting)
        say(f"not simulated, because they wait for devices or for failures: {names}", to=sys.stderr)
