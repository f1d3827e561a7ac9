"""Combines the parts of automations for the API and the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from appliance.automations.automation_states import AutomationStates, Run
from appliance.automations.decider import DISABLED, Decider
from appliance.automations.definition import AutomationDefinition, automation_parser
from appliance.automations.engine import Engine
from appliance.automations.environment import Environment
from appliance.automations.names.home_names import HomeNames
from appliance.automations.policy import NEVER_BEGAN
from appliance.automations.safe_mode import SAFE_SECS, SafeMode
from appliance.automations.timers import NO_DEVICES
from appliance.clock import Clock
from appliance.event_loop import in_steps
from appliance.history.execution_history import ExecutionEntry, ExecutionResult
from appliance.history.period import Period
from appliance.home.bus import Bus
from appliance.home.events import AdapterStarted, Event
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.lua.executable_files import ExecutableFiles
from appliance.lua.files.catalog import Catalog, Dependencies, Describe
from appliance.lua.files.folder import folder_of
from appliance.lua.running.executor import Executor
from appliance.lua.text.source import Source
from appliance.settings import AutomationsSettings
from appliance.tasks import Tasks

log = logging.getLogger("automations")


NOT_YET_ON = "its file has enabled = false; change the file, then switch the automation on"
"""The explanation for an automation that is off because its file contains `enabled = false`, and because nobody has
switched it on."""


class View(Struct, frozen=True, kw_only=True):
    """An automation with its state, for the API. `run` is the latest execution, even from before the hub's start, and
    `last` the latest execution since the hub's start. `running` is the number of current executions. Only
    `list_timed_views` sets `next_run` and `last`."""

    definition: AutomationDefinition
    is_enabled: bool
    run: Run | None
    running: int
    next_run: datetime | None = None
    last: ExecutionEntry | None = None


class Automations(ExecutableFiles[AutomationDefinition]):
    """The automations of a catalog. Triggers are active while the context is open.

    In safe mode, the triggers become active later. Methods raise `NotFound` for unknown ids.
    """

    def __init__(
        self,
        catalog: Catalog[AutomationDefinition],
        environment: Environment,
        executor: Executor,
        safe_mode: SafeMode | None = None,
    ) -> None:
        super().__init__(catalog, executor)
        self.states = AutomationStates(environment.storage)
        self._clock = environment.clock
        self.timers, self.scheduler = environment.timers, environment.scheduler
        self._decider = Decider(environment, self.states, executor)
        self.engine = Engine(catalog, self._decider, self.states, environment)
        self.due_times = self.engine.due_times
        self._variables = environment.variables
        self._safe_mode = safe_mode or SafeMode()
        self._tasks = Tasks()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Automations:
        await self.catalog.load()
        async with AsyncExitStack() as stack:
            for part in (self.states, self._variables, self.timers, self.executor, self.engine, self._tasks):
                await stack.enter_async_context(part)
            if self._safe_mode.reason is None:
                await self.engine.arm()
            else:
                self.timers.pause()
            await stack.enter_async_context(self.scheduler)  # nothing is due before all triggers are active
            if self._safe_mode.is_after_crashes:
                self.scheduler.after("safe mode", SAFE_SECS, self._end_safe_mode)
            self.timers.begin(self.engine.has_timer_listener)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def hold_until(self, have_started: Callable[[], bool], bus: Bus) -> None:
        """Delay all timers and schedules until every adapter has started, because devices are offline until then."""
        if have_started():
            return
        self.engine.schedules.hold()
        self.timers.pause(NO_DEVICES)

        def on_started(_: Event) -> None:
            if have_started():
                forget()
                self.timers.resume(NO_DEVICES)
                self.engine.schedules.release()

        forget = bus.listen(on_started, AdapterStarted)

    def list_views(self) -> list[View]:
        return [self._view(definition) for definition in self.catalog.list_definitions()]

    def list_switches(self) -> Iterator[tuple[str, str, bool]]:
        """Return the id and name of each automation, and whether it is enabled, computed on demand."""
        return ((each.id, each.name, self.states.of(each.id).is_enabled) for each in self.catalog.list_definitions())

    @property
    def revision(self) -> tuple[int, int]:
        """A value that changes when an automation is loaded or switched."""
        return self.catalog.revision, self.states.revision

    def find_last_result(self, id_: str) -> ExecutionResult | Run | None:
        """If the newest decision prevented a run, return this decision. Otherwise, return the last run, which may
        have been before the hub's last start."""
        newest = self.executor.history.find_newest_result(id_)
        return newest if newest is not None and newest.status in NEVER_BEGAN else self.states.of(id_).run

    def list_timed_views(self) -> Iterator[View]:
        """Return each view with the next due time and the newest execution, computed on demand."""
        return (
            replace(
                view,
                next_run=self.due_times.find_next(view.definition.id),
                last=next(self.executor.history.iterate_runs(view.definition.id, Period(limit=1)), None),
            )
            for view in self.list_views()
        )

    def view(self, id_: str) -> View:
        return self._view(self.catalog.get(id_).definition)

    async def switch(self, id_: str, *, is_enabled: bool) -> View:
        """Store the change, then switch the automation on or off. If the change cannot be stored, raise
        `StoreFailed`."""
        is_changed = self.view(id_).is_enabled != is_enabled
        await self.states.switch(id_, is_enabled=is_enabled)
        if is_changed:
            log.info("automation '%s' is switched %s", id_, "on" if is_enabled else "off")
        if is_enabled:
            self.timers.recheck(self.catalog.get(id_).definition.timer_names)
        else:
            await self.executor.skip_waiting(id_, DISABLED.reason)
        return self.view(id_)

    async def run_by_hand(self, id_: str, event: Mapping[str, Value], client: str = "") -> ExecutionEntry:
        """Run the automation with this event if its conditions hold. Return after the run has ended. `client` is the
        key whose client started it."""
        return await self._decider.run_by_hand(self.catalog.get(id_), event, client)

    async def validate(self, id_: str) -> View:
        """Check the automation's file on disk. Raise `ConfigFailed` with the file's faults."""
        file = await self.catalog.read(id_)
        return self._view(file.definition)

    async def list_next(self, id_: str) -> list[datetime]:
        """Return at most the next ten times at which the automation is due, in order."""
        self.catalog.get(id_)
        return await in_steps(self._clock, self.due_times.find_times(id_))

    async def _use_loaded_files(self) -> None:
        """Use the loaded files. An unchanged trigger keeps its waits and its schedule."""
        await self._arm("the automations were reloaded")
        await super()._use_loaded_files()
        for definition in self.catalog.list_definitions():
            if not self.states.of(definition.id).is_enabled:
                await self.executor.skip_waiting(definition.id, DISABLED.reason)

    async def _arm(self, because: str) -> None:
        """Activate the triggers. End a safe mode that began after crashes, unless the hub is stopping."""
        await self.engine.arm()
        if self._safe_mode.is_after_crashes and not self.engine.is_stopping:
            self._safe_mode.end(because)
            self.timers.resume()

    def _end_safe_mode(self, _: float) -> None:
        if self._safe_mode.is_after_crashes:
            because = f"the hub ran for {SAFE_SECS / 60:g} minutes without a crash; automations run again"
            self._tasks.start(self._arm(because), "end of the safe mode")

    def _view(self, definition: AutomationDefinition) -> View:
        state = self.states.of(definition.id)
        return View(
            definition=definition,
            is_enabled=state.is_enabled,
            run=state.run,
            running=self.executor.count_running(definition.id),
        )


def build_automation_catalog(
    settings: AutomationsSettings,
    root: Path,
    describe: Describe,
    locale: Locale,
    clock: Clock,
    known: Callable[[], HomeNames] | None = None,
    dependencies: Dependencies | None = None,
    unsaved: Source | None = None,
) -> Catalog[AutomationDefinition]:
    """Return a catalog of the automations in the section's folder. The catalog is empty until it is loaded. Names
    that are not in `known` cause warnings. `unsaved` replaces a file of the folder."""
    default_max = settings.runner.default_max_concurrent
    find_warnings = None if known is None else lambda definition: known().warnings_of(definition)
    inspect = None if known is None else lambda source: known().inspect(source)
    parse = automation_parser(locale, clock, default_max, find_warnings)
    folder = folder_of(settings, root, unsaved)
    return Catalog("automation", folder, describe, parse, inspect, omits_copies=True, dependencies=dependencies)
