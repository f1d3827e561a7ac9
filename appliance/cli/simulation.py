"""Runs the automations of a configuration in a simulated home and simulated time."""

from __future__ import annotations

import json
import math
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
from msgspec import Struct

from appliance.adapters.kinds import list_operations
from appliance.adapters.lua_kinds.section import LuaSection
from appliance.automations.active import ActiveTrigger
from appliance.automations.automations import Automations, catalog_of
from appliance.automations.ctx import CtxWork
from appliance.automations.definition import AutomationDefinition
from appliance.automations.environment import Environment
from appliance.automations.schedule import MICROSECOND, TimerHandle
from appliance.cli.check import open_pool
from appliance.cli.device_events import HOOK, FileEvent, FileHook, first_instant, read_events, read_instant
from appliance.cli.simulated_home import (
    SimulatedContext,
    SimulatedDispatcher,
    SimulatedExecutor,
    Turn,
    add_missing_devices,
    apply_event,
    mark_all_observed,
)
from appliance.cli.terminal import check_reader, counted, say
from appliance.clock import EPOCH, Clock, timestamp
from appliance.config import Config
from appliance.errors import Fault, StartFailed
from appliance.history.execution_history import ExecutionEntry, ExecutionHistory, ExecutionStatus
from appliance.home.bus import Bus
from appliance.home.events import CommandEnded, Event, HookCalled
from appliance.home.registry import Registry
from appliance.home_locale import Locale
from appliance.lua.catalog import Asset
from appliance.lua.context import Context, CtxFunction
from appliance.lua.executor import Execution, Executor
from appliance.lua.kind_catalog import DescribeKind, catalog_of_kinds
from appliance.scenes import Scene, Scenes, build_catalog
from appliance.simulated_clock import SimulatedClock
from appliance.store.clock_trust import ClockTrust
from appliance.store.record_keys import ALIAS_PREFIX, AUTOMATION_PREFIX, TIMER_PREFIX
from appliance.store.records import read_devices, read_layout
from appliance.store.storage import DocumentSnapshot
from appliance.tables.checks import rounded
from appliance.tasks import Tasks

MAX_EQUAL_LINES = 5
"""Maximum number of printed equal lines per automation. A final line states the number of omitted lines."""

CHECK_READER_EVERY = 1000
"""After this number of omitted lines, the printer checks whether its reader still exists."""

FIRES = "fires"
NOT_RUN = (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED)


class Preparation(Struct, frozen=True, kw_only=True):
    """The period, the events, and the stored state of a simulation. `faults` are the lines and messages of invalid
    events."""

    start: datetime
    end: datetime
    events: Sequence[FileEvent | FileHook]
    faults: Sequence[tuple[int, str]]
    stored: DocumentSnapshot


def prepare(stored: Mapping[str, bytes], locale: Locale, start: str | None, hours: float, events: str) -> Preparation:
    """Prepare a simulation that begins at `start`, otherwise at the first event with a date, otherwise now. Raise
    `Invalid` for an invalid `start`.

    The state of automations and timers is valid only for a simulation from now.
    """
    begins = first_instant(events, locale) if start is None else read_instant(start, locale)
    at = Clock().now() if begins is None else begins
    end = at + timedelta(hours=hours)
    has_alias = any(orjson.loads(value) == HOOK for key, value in stored.items() if key.startswith(ALIAS_PREFIX))
    read, faults = read_events(events, locale, at, end, has_hook_alias=has_alias)
    if begins is not None:
        forgotten = (AUTOMATION_PREFIX, TIMER_PREFIX)
        stored = {key: value for key, value in stored.items() if not key.startswith(forgotten)}
    return Preparation(start=at, end=end, events=read, faults=faults, stored=DocumentSnapshot(stored))


class SimulationPrinter(ExecutionHistory):
    """Prints and counts all results, without a history.

    `zone` is the time zone of printed times. If it is None, each line is a JSON object. With `runs_lua`, an
    automation fires when its Lua begins. If standard output is closed, the printer sets `gone` and calls `stop`.
    `latest` is the source of the latest line.
    """

    def __init__(
        self,
        clock: Clock,
        zone: ZoneInfo | None,
        stop: Callable[[], None],
        *,
        runs_lua: bool,
        write: Callable[[str], None] = say,
    ) -> None:
        super().__init__()
        self._write = write
        self._clock = clock
        self._zone = zone
        self._stop = stop
        self._runs_lua = runs_lua
        self.fired = 0
        self.commands = 0
        self.is_over = False
        self.latest = "an automation"
        self.gone: BrokenPipeError | None = None
        self.only: str | None = None
        """The id of the automation whose lines are printed, or None for all automations."""
        self._repeated: dict[tuple[str, str], tuple[int, datetime]] = {}
        """The number of repetitions and the last time of each line."""

    def on_start(self, source: str) -> None:
        """Print that the Lua of `automation:<id>` or `scene:<id>` begins."""
        if source.startswith("automation:"):
            self._print_fired(self._clock.now(), source)
        else:
            self._print(self._clock.now(), source, "runs", {"runs": True})

    def add(self, entry: ExecutionEntry) -> None:
        """Print a trigger's result: it fired, it failed, or the reason why it did not fire."""
        source = f"automation:{entry.subject}"
        if entry.status in NOT_RUN:
            fields = {"fired": False, "error": entry.error}
            self._print(entry.executed_at, source, f"does not fire: {entry.error}", fields)
        elif entry.status is not ExecutionStatus.OK:
            self._print(self._clock.now(), source, f"fails: {entry.error}", {"fired": True, "error": entry.error})
        elif not self._runs_lua:
            self._print_fired(entry.executed_at, source)

    def on_event(self, event: Event) -> None:
        """Print a command and its result."""
        if not isinstance(event, CommandEnded):
            return
        self.commands += 1
        command = event.command
        value = "" if command.value is None else f" {json.dumps(rounded(command.value))}"
        failure = "" if event.message is None else f", which fails: {event.message}"
        fields = {"capability": command.capability, "action": command.action, "value": command.value}
        fields |= {"device_id": event.device_id, "status": event.status, "message": event.message}
        self._print(
            event.at, event.source, f"commands {event.device_id}: {command}{value}{failure}", {"command": fields}
        )

    def print_action(self, source: str, what: str, fields: Mapping[str, Any]) -> None:
        """Print another action of Lua."""
        self._print(self._clock.now(), source, what, fields)

    def print_repetitions(self) -> None:
        """Print the number of repetitions of each omitted line."""
        for (source, what), (count, last) in self._repeated.items():
            if (more := count - MAX_EQUAL_LINES) > 0:
                self._say(last, source, f"{what} (repeated {counted(more, 'more time')}; this is the last)")

    @property
    def counts_equal_lines(self) -> bool:
        """Whether equal lines after the first are only counted and have no other effect."""
        return self._zone is not None and not self._runs_lua

    def repeat(self, source: str, times: int) -> None:
        """Count `times` further repetitions of the source's only line. When the line occurs next, its time becomes
        the last time."""
        for (of, what), (count, last) in self._repeated.items():
            if of == source:
                self._repeated[of, what] = count + times, last
                self.fired += times * (what == FIRES)

    def _print_fired(self, at: datetime, source: str) -> None:
        self.fired += source.removeprefix("automation:") == self.only or self.only is None
        self._print(at, source, FIRES, {"fired": True, "error": None})

    def _print(self, at: datetime, source: str, what: str, fields: Mapping[str, Any]) -> None:
        if self.is_over:
            return
        kind, _, id_ = source.partition(":")
        self.latest = f"{kind} '{id_}'"
        if self.only is not None and kind == "automation" and id_ != self.only:
            return
        if self._zone is None:
            self._put(json.dumps({"at": timestamp(at), kind: id_, **fields}))
            return
        count = self._repeated.get((source, what), (0, at))[0] + 1
        self._repeated[source, what] = count, at
        if count <= MAX_EQUAL_LINES:
            self._say(at, source, what)
        elif count % CHECK_READER_EVERY == 0:
            self._put(None)

    def _say(self, at: datetime, source: str, what: str) -> None:
        kind, _, id_ = source.partition(":")
        name = id_ if kind == "automation" else f"{kind} {id_}"
        self._put(f"{at.astimezone(self._zone):%a %Y-%m-%d %H:%M:%S %Z}  {name}  {what}")

    def _put(self, line: str | None) -> None:
        """Write the line. Without a line, only check for a reader."""
        try:
            if line is None:
                check_reader()
            else:
                self._write(line)
        except BrokenPipeError as error:
            self.gone = error
            self._stop()


class DryExecutor(Executor):
    """An `Executor` without Lua. Every execution succeeds at once, without a command."""

    def _start(self, execution: Execution) -> None:
        self._leave(execution, ExecutionStatus.OK, None)


class Simulation(Struct, frozen=True, kw_only=True):
    """Active automations in simulated time. `operations` contains the operations of each section, or None if they are
    unknown."""

    definitions: Sequence[AutomationDefinition]
    rejected: Sequence[Fault]
    assets: Sequence[Asset[AutomationDefinition]]
    scenes: Sequence[Asset[Scene]]
    clock: SimulatedClock
    bus: Bus
    registry: Registry
    printer: SimulationPrinter
    is_busy: Callable[[], bool]
    list_constant: Callable[[], Sequence[ActiveTrigger]]
    operations: Mapping[str, Collection[str] | None]

    async def run(self, until: datetime, events: Sequence[FileEvent | FileHook]) -> dict[str, int]:
        """Advance simulated time and apply the events. `created` contains the devices that appear only in the events,
        with their first lines."""
        mark_all_observed(self.registry)
        pretended = add_missing_devices(self.registry, (each for each in events if isinstance(each, FileEvent)))
        async with Tasks() as tasks:
            tasks.start(self._feed(events), "device events")
            for active in self.list_constant() if self.printer.counts_equal_lines else ():
                tasks.start(self._collapse(active, until), f"interval of {active.label}")
            has_ended = await self.clock.run(until, self.is_busy)
        if not has_ended and self.printer.gone is None:
            stuck = f"at {timestamp(self.clock.now())} {self.printer.latest} runs on and on while no time passes"
            raise StartFailed(f"{stuck}; let it sleep for some time, or end", os.EX_CONFIG)
        return pretended

    async def _collapse(self, active: ActiveTrigger, until: datetime) -> None:
        """Combine the equal times of an interval to one step, except the first times and the last time."""
        timer = active.due
        if not isinstance(timer, TimerHandle) or (every := timer.every) is None:
            return
        await self.clock.sleep(timer.due - self.clock.monotonic() + (MAX_EQUAL_LINES - 0.5) * every)
        secs_left = (until - self.clock.now()).total_seconds() + self.clock.monotonic() - timer.due
        if (more := math.ceil(secs_left / every) - 1) > 1:
            timer.every = more * every  # the step from the next time to the last time
            await self.clock.sleep(every)
            timer.every = every
            self.printer.repeat(f"automation:{active.id}", more - 1)

    async def _feed(self, events: Sequence[FileEvent | FileHook]) -> None:
        for event in events:
            await self.clock.sleep((event.at - self.clock.now()).total_seconds())
            if isinstance(event, FileHook):
                self.bus.publish(HookCalled(hook=event.hook, data=event.data, query={}))
            else:
                apply_event(self.registry, event)


@asynccontextmanager
async def open_simulation(
    settings: Config,
    stored: DocumentSnapshot,
    clock: SimulatedClock,
    printer: SimulationPrinter,
    *,
    home: Sequence[Path],
    runs_lua: bool,
) -> AsyncIterator[Simulation]:
    """Open the automations with the stored state, as the user of `home`. Store nothing."""
    bus, limits = Bus(), settings.automations.runner
    registry = (environment := _environment(settings, stored, bus, clock)).registry
    work: dict[str, CtxFunction] = {}
    async with open_pool(settings, clock, *home) as pool:
        operations = await _list_operations(settings, home[0], pool.describe)
        dispatcher, turn = SimulatedDispatcher(registry, bus, clock, operations), Turn()
        context = partial(SimulatedContext, registry, dispatcher, clock)
        new_context = partial(_new_context, context, work, printer, turn)
        executor = partial(SimulatedExecutor, turn) if runs_lua else DryExecutor
        new_executor = partial(executor, pool, new_context, clock)
        catalog = catalog_of(settings.automations, settings.root, pool.describe, settings.locale, clock)
        in_scenes = build_catalog(settings.scenes, settings.root, pool, limits.default_max_concurrent)
        async with (
            Scenes(in_scenes, new_executor(ExecutionHistory())) as scenes,
            Automations(catalog, environment, new_executor(printer)) as automations,
        ):
            work.update(CtxWork(environment, automations.timers, scenes.run, settings.notify.targets).table())
            bus.listen(printer.on_event)
            yield Simulation(
                definitions=catalog.list_definitions(),
                rejected=(*in_scenes.rejected, *catalog.rejected) if runs_lua else catalog.rejected,
                assets=catalog.list_assets(),
                scenes=in_scenes.list_assets(),
                clock=clock,
                bus=bus,
                registry=registry,
                printer=printer,
                is_busy=lambda: turn.is_taken,
                list_constant=automations.engine.list_constant,
                operations=operations,
            )


async def _list_operations(
    settings: Config, file: Path, describe: DescribeKind
) -> Mapping[str, Collection[str] | None]:
    """Return the operations of all sections, including disabled sections. The value is None for unknown
    operations."""
    sections = [each for each in settings.adapters.values() if isinstance(each, LuaSection)]
    kinds = catalog_of_kinds(file, sections, describe, Bus())
    if sections:
        await kinds.check()
    unknown = dict.fromkeys(settings.adapter_names)
    return {**unknown, **list_operations(settings.adapters), **kinds.list_operations()}


def _new_context(
    context: Callable[..., SimulatedContext],
    work: dict[str, CtxFunction],
    printer: SimulationPrinter,
    turn: Turn,
    label: str,
    chain: tuple[str, ...],
) -> Context:
    printer.on_start(label)
    made = context(label, work, chain=chain)
    made.on_action, made.turn = printer.print_action, turn
    return made


def _environment(settings: Config, stored: DocumentSnapshot, bus: Bus, clock: Clock) -> Environment:
    registry = Registry(bus, clock)
    layout = read_layout(stored)
    registry.restore(layout, read_devices(stored, layout))
    return Environment(
        registry,
        bus,
        clock,
        ClockTrust(clock, EPOCH),
        stored,
        limits=settings.automations.runner,
        stopped_at=clock.now() - MICROSECOND,  # fire everything that is due at the first instant
    )
