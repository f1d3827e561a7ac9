"""Setting up: the parts of the automations, as the hub and `lares simulate` put them together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from appliance.automations.automation_executor import AutomationExecutor
from appliance.automations.automations import Automations
from appliance.automations.definition import AutomationDefinition, automation_parser
from appliance.automations.engine import Engine
from appliance.automations.environment import Environment
from appliance.automations.home_names import HomeNames
from appliance.automations.scheduler import Scheduler
from appliance.automations.states import States
from appliance.automations.timers import NO_DEVICES, Timers
from appliance.clock import Clock
from appliance.history.execution_history import ExecutionHistory
from appliance.home.bus import Bus
from appliance.home.events import AdapterStarted, Event
from appliance.home_locale import Locale
from appliance.lua.executor import NewExecutor
from appliance.lua.lua_catalog import Catalog, Describe
from appliance.lua.lua_setup import folder_of
from appliance.settings import AutomationsSettings


class Parts(Struct, frozen=True, kw_only=True):
    """The parts that the hub and a simulation use while the automations are open."""

    automations: Automations
    engine: Engine
    scheduler: Scheduler
    states: States
    timers: Timers

    def hold_until(self, have_started: Callable[[], bool], bus: Bus) -> None:
        """Let no timer and no schedule fire before every adapter has started: it would find devices offline."""
        if have_started():
            return
        release = self.engine.hold_schedules()
        self.timers.pause(NO_DEVICES)

        def on_started(_: Event) -> None:
            if have_started():
                forget()
                self.timers.resume(NO_DEVICES)
                release()

        forget = bus.listen(on_started, AdapterStarted)


def catalog_of(
    settings: AutomationsSettings,
    root: Path,
    describe: Describe,
    locale: Locale,
    clock: Clock,
    known: Callable[[], HomeNames] | None = None,
) -> Catalog[AutomationDefinition]:
    """The catalog of the automations that the section names, not loaded yet; what names nothing that is `known` is a
    warning."""
    default_max = settings.runner.default_max_concurrent
    if known is None:
        parse = automation_parser(locale, clock, default_max)
        return Catalog("automation", folder_of(settings, root), describe, parse)
    parse = automation_parser(locale, clock, default_max, lambda definition: known().warnings_of(definition))
    return Catalog("automation", folder_of(settings, root), describe, parse, lambda source: known().inspect(source))


@asynccontextmanager
async def open_automations(
    catalog: Catalog[AutomationDefinition],
    environment: Environment,
    history: ExecutionHistory,
    new_executor: NewExecutor,
    *,
    is_loaded: bool = True,
) -> AsyncIterator[Parts]:
    """The automations of a catalog, armed until the context is left; none where it is not to be loaded yet."""
    scheduler = Scheduler(environment)
    if is_loaded:
        await catalog.load()
    states, timers = States(environment.storage), Timers(environment)
    executor = AutomationExecutor(environment, states, history, new_executor)
    async with states, environment.variables, timers, executor.executor, scheduler:
        async with Engine(catalog, executor, states, scheduler, environment) as engine:
            if not is_loaded:
                timers.pause()
            timers.begin(scheduler, engine.is_timer_heard)
            engine.on_change = timers.recheck
            yield Parts(
                automations=Automations(catalog, engine, executor, states),
                engine=engine,
                scheduler=scheduler,
                states=states,
                timers=timers,
            )
