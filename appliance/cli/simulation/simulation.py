"""Runs the automations of a configuration in a simulated home and simulated time."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from appliance.adapters.kinds import list_operations, section_kinds_of
from appliance.adapters.lua_kinds.section import list_lua_sections
from appliance.automations.active_triggers import ActiveTrigger
from appliance.automations.automations import Automations, build_automation_catalog
from appliance.automations.definition import AutomationDefinition
from appliance.automations.environment import Environment
from appliance.automations.policy import Policy
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.automations.schedule.scheduled_calls import MICROSECOND, DelayedCall
from appliance.automations.triggers.time import Interval
from appliance.cli.lua_pool import open_pool
from appliance.cli.simulation.clock import SimulatedClock
from appliance.cli.simulation.device_events import FileEvent, FileHook
from appliance.cli.simulation.home import (
    SimulatedContext,
    SimulatedCtxMethods,
    SimulatedDispatcher,
    SimulatedExecutor,
    Turn,
    add_missing_devices,
    apply_event,
    mark_all_observed,
)
from appliance.cli.simulation.printer import MAX_EQUAL_LINES, SimulationPrinter
from appliance.clock import EPOCH, Clock, timestamp
from appliance.config import Config
from appliance.errors import Fault, StartFailed
from appliance.history.execution_history import ExecutionHistory, ExecutionStatus
from appliance.home.bus import Bus
from appliance.home.events import HookCalled
from appliance.home.registry import Registry
from appliance.lua.files.catalog import LoadedFile
from appliance.lua.files.kind_files import DescribeKind, KindFiles, folder_of_kinds
from appliance.lua.running.context import Context, CtxFunction
from appliance.lua.running.executor import Execution, ExecutionRequest, Executor
from appliance.lua.text.source import Source
from appliance.scenes import Scene, Scenes, build_scene_catalog
from appliance.store.clock_trust import ClockTrust
from appliance.store.records import read_devices, read_layout
from appliance.store.storage import DocumentSnapshot
from appliance.tasks import Tasks

WORKER_BYTES = 64 << 20
"""Less memory than the hub's Lua worker has, because the simulation of `POST /simulate` runs next to the hub."""


class DryExecutor(Executor):
    """An `Executor` without Lua. Every execution succeeds at once, without a command."""

    def start(self, execution: Execution) -> None:
        self.finish(execution, ExecutionStatus.OK, None)


class Simulation(Struct, frozen=True, kw_only=True):
    """Active automations in simulated time. `operations` contains the operations of each section, or None if they are
    unknown."""

    definitions: Sequence[AutomationDefinition]
    rejected: Sequence[Fault]
    files: Sequence[LoadedFile[AutomationDefinition]]
    scenes: Sequence[LoadedFile[Scene]]
    clock: SimulatedClock
    bus: Bus
    registry: Registry
    printer: SimulationPrinter
    is_busy: Callable[[], bool]
    list_active: Callable[[], Sequence[ActiveTrigger]]
    operations: Mapping[str, Collection[str] | None]

    async def run(self, until: datetime, events: Sequence[FileEvent | FileHook]) -> dict[str, int]:
        """Advance simulated time and apply the events. Return the devices that exist only in the events, with their
        first lines."""
        mark_all_observed(self.registry)
        pretended = add_missing_devices(self.registry, (each for each in events if isinstance(each, FileEvent)))
        async with Tasks() as tasks:
            tasks.start(self._feed(events), "device events")
            for active in self._list_constant() if self.printer.counts_equal_lines else ():
                tasks.start(self._collapse(active, until), f"interval of {active.label}")
            has_ended = await self.clock.run(until, self.is_busy)
        if not has_ended and self.printer.gone is None:
            stuck = f"at {timestamp(self.clock.now())} {self.printer.latest} runs without end in simulated time"
            raise StartFailed(f"{stuck}; add a sleep or an end to its Lua code", os.EX_CONFIG)
        return pretended

    def _list_constant(self) -> list[ActiveTrigger]:
        """Return the interval triggers of automations without conditions and policy. A simulation without Lua need
        not repeat runs of these automations, because every run has the same result."""
        definitions = ((active, active.file.definition) for active in self.list_active())
        plain = (active for active, each in definitions if not each.conditions and each.policy == Policy())
        return [active for active in plain if isinstance(active.trigger, Interval)]

    async def _collapse(self, active: ActiveTrigger, until: datetime) -> None:
        """Combine the times of an interval into one step if their results are equal. Keep the first times and the
        last time separate."""
        timer = active.call
        if not isinstance(timer, DelayedCall) or (every := timer.every) is None:
            return
        await self.clock.sleep(timer.due - self.clock.monotonic() + (MAX_EQUAL_LINES - 0.5) * every)
        secs_left = (until - self.clock.now()).total_seconds() + self.clock.monotonic() - timer.due
        if (more := math.ceil(secs_left / every) - 1) > 1:
            timer.every = more * every  # combine all times up to the last time into one step
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
    unsaved: Source | None = None,
) -> AsyncIterator[Simulation]:
    """Open the automations with the stored state, as the user that owns `home`. Store nothing. `unsaved` replaces a
    Lua file."""
    bus, limits = Bus(), settings.automations.runner
    registry = (environment := _environment(settings, stored, bus, clock)).registry
    work: dict[str, CtxFunction] = {}
    async with open_pool(settings, clock, *home, unsaved=unsaved, worker_bytes=WORKER_BYTES) as pool:
        operations = await _list_operations(settings, home[0], pool.describe, unsaved)
        dispatcher, turn = SimulatedDispatcher(registry, bus, clock, operations), Turn()

        def new_context(request: ExecutionRequest) -> Context:
            printer.on_start(request.label)
            parts = clock, request.kind, request.id, work, None, request.chain
            return SimulatedContext(printer.print_action, turn, *parts)

        executor = partial(SimulatedExecutor, turn) if runs_lua else DryExecutor
        new_executor = partial(executor, pool, new_context, clock)
        catalog = build_automation_catalog(
            settings.automations, settings.root, pool.describe, settings.locale, clock, unsaved=unsaved
        )
        in_scenes = build_scene_catalog(
            settings.scenes, settings.root, pool, limits.default_max_concurrent, unsaved=unsaved
        )
        async with (
            Scenes(in_scenes, new_executor(ExecutionHistory())) as scenes,
            Automations(catalog, environment, new_executor(printer)) as automations,
        ):
            parts = environment, dispatcher, scenes.run, settings.notify.targets
            work.update(SimulatedCtxMethods(printer.print_action, *parts).table())
            bus.listen(printer.on_event)
            yield Simulation(
                definitions=catalog.list_definitions(),
                rejected=(*in_scenes.rejected, *catalog.rejected) if runs_lua else catalog.rejected,
                files=catalog.list_files(),
                scenes=in_scenes.list_files(),
                clock=clock,
                bus=bus,
                registry=registry,
                printer=printer,
                is_busy=lambda: turn.is_taken,
                list_active=automations.engine.list_active,
                operations=operations,
            )


async def _list_operations(
    settings: Config, file: Path, describe: DescribeKind, unsaved: Source | None
) -> Mapping[str, Collection[str] | None]:
    """Return the operations of all sections, including disabled sections. Return None if the operations are
    unknown."""
    sections = list_lua_sections(settings.adapters.values())
    found = dict.fromkeys(settings.adapter_names) | list_operations(settings.adapters)
    if sections:
        folder = folder_of_kinds(file).with_unsaved(unsaved)
        found |= (await KindFiles(folder, describe).read(sections)).list_operations()
    return found


def _environment(settings: Config, stored: DocumentSnapshot, bus: Bus, clock: Clock) -> Environment:
    registry = Registry(bus, clock)
    layout = read_layout(stored)
    registry.restore(layout, read_devices(stored, layout, sections=section_kinds_of(settings.adapters)))
    stopped_at = clock.now() - MICROSECOND  # fire all triggers that are due at the first instant
    watch = ClockWatch(clock, ClockTrust(clock, EPOCH), stopped_at=stopped_at)
    return Environment(registry, bus, watch, stored, limits=settings.automations.runner)
