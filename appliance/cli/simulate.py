"""`lares simulate`: lists the automations that will run in the next hours, and explains why the others will not
run."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from appliance import config
from appliance.automations.names.home_names import describe_ambiguous
from appliance.automations.triggers.base import TimedTrigger
from appliance.cli.examination import find_wrong_names
from appliance.cli.hub_client import read_snapshot
from appliance.cli.named_files import reading
from appliance.cli.owner import as_owner, need_access
from appliance.cli.paths import HubPaths
from appliance.cli.simulation.clock import SimulatedClock
from appliance.cli.simulation.preparation import Preparation, prepare
from appliance.cli.simulation.printer import SimulationPrinter
from appliance.cli.simulation.priority import lower_priority
from appliance.cli.simulation.simulation import Simulation, open_simulation
from appliance.cli.terminal import say, with_local_times
from appliance.config import Config
from appliance.errors import Fault, Invalid, StartFailed
from appliance.lua.files.folder import Contents, folder_of
from appliance.store.storage import DocumentSnapshot
from appliance.tables.checks import nearest, suggest
from appliance.tables.plain_files import read_at_most

MAX_EVENTS_BYTES = 16 << 20


def simulate(arguments: argparse.Namespace) -> int:
    """Print each trigger and its result. Send no command, and write nothing to the store."""
    lower_priority()
    paths = HubPaths.of_process(arguments)
    file, data_dir = paths.need_config(), paths.find_data_dir()
    need_access(data_dir, file)
    with as_owner(data_dir, file):
        settings, stored = config.load(file, os.environ), read_snapshot(data_dir)
    text = "" if arguments.events is None else _read(arguments.events)
    try:
        prepared = prepare(
            {} if stored is None else stored.values, settings.locale, arguments.start, arguments.hours, text
        )
    except Invalid as fault:
        raise StartFailed(f"--from {fault}", os.EX_USAGE) from None
    if prepared.faults:
        first, *more = [str(Fault(arguments.events, line, message)) for line, message in prepared.faults]
        raise StartFailed(first, os.EX_DATAERR, *(f"lares: {each}" for each in more))
    clock = SimulatedClock(prepared.start)
    zone = None if arguments.json else settings.locale.timezone
    printer = SimulationPrinter(clock, zone, clock.stop, runs_lua=arguments.run)
    with _errors_only("automations", "scenes", "scripts", "lua"):  # the command itself prints these warnings
        asyncio.run(_simulate(settings, prepared, printer, clock, arguments, (file, data_dir), stored))
    return os.EX_OK


@contextmanager
def _errors_only(*names: str) -> Iterator[None]:
    """Within the context, log only errors of these loggers."""
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
        with reading(name), as_owner(Path(name)), Path(name).open("rb") as stream:
            data = read_at_most(stream, MAX_EVENTS_BYTES + 1)
        if len(data) > MAX_EVENTS_BYTES:
            raise StartFailed(f"{name} is larger than {MAX_EVENTS_BYTES >> 20} MiB", os.EX_DATAERR)
        return data.decode()
    except UnicodeDecodeError:
        raise StartFailed(f"{name} is not UTF-8 text", os.EX_DATAERR) from None


async def _simulate(
    settings: Config,
    prepared: Preparation,
    printer: SimulationPrinter,
    clock: SimulatedClock,
    arguments: argparse.Namespace,
    home: Sequence[Path],
    stored: DocumentSnapshot | None,
) -> None:
    async with open_simulation(
        settings, prepared.stored, clock, printer, home=home, runs_lua=arguments.run
    ) as simulation:
        if arguments.id is not None:
            printer.only = _find_automation(arguments.id, simulation)
        for fault in simulation.rejected:
            say(f"not loaded: {fault}", to=sys.stderr)
        for fault in _warnings(settings, stored, simulation):
            say(f"warning: {with_local_times(str(fault), settings.locale.timezone)}", to=sys.stderr)
        pretended = await simulation.run(prepared.end, prepared.events)
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
        hint = suggest(near, "`lares status` lists all automations")
        raise StartFailed(f"automation '{word}' not found{hint}", os.EX_NOUSER)
    if len(found) > 1:
        raise StartFailed(describe_ambiguous(word, found), os.EX_USAGE)
    return found[0]


def _warnings(settings: Config, stored: DocumentSnapshot | None, simulation: Simulation) -> list[Fault]:
    """Return warnings and unknown names, like `lares check`."""
    folder = folder_of(settings.scripts, settings.root)
    scripts = Contents(sources=(), faults=()) if folder is None else folder.read()
    found = find_wrong_names(settings, stored, simulation.files, simulation.scenes, scripts, simulation.operations)
    for warnings in (*(each.warnings for each in simulation.scenes), *(each.warnings for each in simulation.files)):
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
        if printer.only in (None, each.id) and not any(isinstance(trigger, TimedTrigger) for trigger in each.triggers)
    ]
    if waiting and arguments.events is None:
        names = ", ".join(waiting)
        say(f"these automations wait for devices, hooks, timers, variables, or failures: {names}", to=sys.stderr)
